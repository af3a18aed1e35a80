//! The folder of a run: what is in it, how it appears, who may write to it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ManifestData, RunError};
use crate::atomic::write_atomically;
use crate::config::{AllocatorName, Entropy, Experiment, Histograms};

/// An open run folder. No other process can open it for writing while this lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

/// manifest.json: what ran where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this library.
    pub version: String,
    /// The run's name in a ledger.
    pub run: String,
    /// Hash of all that decides a release: the resolved config (threads apart), version and
    /// kernels.
    pub experiment: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// Where noise and batches come from.
    pub entropy: String,
    /// Which kernels compute: results are the same to the bit only for the same ones.
    pub kernels: String,
    /// The data set.
    pub data: ManifestData,
    /// The machine.
    pub machine: Machine,
    /// Worker threads of the process that began the run.
    pub threads: usize,
    /// Model parameters q.
    pub parameters: usize,
    /// What the devices send.
    pub upload: String,
    /// Start of the run, seconds since 1970 (UTC).
    pub started_unix: u64,
}

/// The machine in a [`Manifest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Cores available.
    pub cores: usize,
}

impl Machine {
    fn this() -> Self {
        Self {
            os: std::env::consts::OS.into(),
            arch: std::env::consts::ARCH.into(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

impl Manifest {
    pub(super) fn new(
        federation: &crate::federation::Federation,
        run: &str,
        data: ManifestData,
    ) -> Self {
        let q = federation.network().parameter_count();
        let privacy = &federation.experiment().privacy;
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            run: run.into(),
            experiment: fingerprint(federation.experiment()),
            seed: federation.experiment().run.seed,
            entropy: match privacy.entropy {
                Entropy::Seed => {
                    "seed: simulation, no guarantee against whoever knows the seed".into()
                }
                Entropy::Os => "the operating system's, through ChaCha20".into(),
            },
            kernels: crate::model::kernels_in_use().into(),
            data,
            machine: Machine::this(),
            threads: federation.threads(),
            parameters: q,
            upload: format!(
                "{q} gradient values per device and round, {}; {}",
                match privacy.allocator {
                    AllocatorName::None => "not noised",
                    _ => "each with noise",
                },
                match federation.experiment().aggregate.histograms {
                    None => "nothing else",
                    Some(Histograms::Noisy) => "once a histogram of its labels, with noise",
                    Some(Histograms::Public) => "once a histogram of its labels, declared public",
                    Some(Histograms::Exact) => "once a histogram of its labels, not noised",
                }
            ),
            started_unix: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        }
    }
}

/// Hash of all that decides a release: the experiment (threads apart), version and kernels.
pub fn fingerprint(experiment: &Experiment) -> String {
    let mut experiment = experiment.clone();
    experiment.run.threads = 0;
    let (version, kernels) = (env!("CARGO_PKG_VERSION"), crate::model::kernels_in_use());
    let hash = Sha256::digest(format!("{version} {kernels}\n{}", experiment.to_toml()));
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl RunFolder {
    /// Fills a new folder by `fill`, then renames it to the first of `paths` that is free: whoever
    /// sees that path sees a run that can be resumed. All paths have the same parent.
    pub(super) fn create(
        paths: impl IntoIterator<Item = PathBuf>,
        fill: impl FnOnce(&Path) -> Result<(), RunError>,
    ) -> Result<Self, RunError> {
        let mut paths = paths.into_iter().peekable();
        let taken = paths.peek().cloned().unwrap_or_default();
        let Some(path) = paths.find(|path| is_free(path)) else {
            return Err(RunError::Exists(taken));
        };
        let name = path.file_name().ok_or_else(|| RunError::NoName(path.clone()))?;
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(RunError::io("create", parent))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let partial = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".partial")
            .tempdir_in(parent)
            .map_err(RunError::io("create a folder in", parent))?;
        let lock = lock(partial.path(), &path)?;
        fill(partial.path())?;
        // Another process may have taken the path meanwhile: go on to the next one.
        for path in std::iter::once(path.clone()).chain(paths) {
            match fs::rename(partial.path(), &path) {
                Ok(()) => {
                    // Renamed away: there is nothing left to clean up.
                    let _ = partial.keep();
                    return Ok(Self { path, _lock: lock });
                }
                Err(_) if !is_free(&path) => {}
                Err(source) => return Err(RunError::Io { action: "create", path, source }),
            }
        }
        Err(RunError::Exists(path))
    }

    /// Opens the folder of an earlier run.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        if !path.join(CONFIG).is_file() || !path.join(super::checkpoint::FILE).is_file() {
            return Err(RunError::NotARun(path.into()));
        }
        Ok(Self { path: path.into(), _lock: lock(path, path)? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The experiment as resolved when the run began.
    pub fn experiment(&self) -> Result<Experiment, RunError> {
        let path = self.path.join(CONFIG);
        let text = fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        Ok(Experiment::from_toml(&text, &path.display().to_string(), &[])?)
    }

    /// What the run wrote about itself when it began.
    pub fn manifest(&self) -> Result<Manifest, RunError> {
        let path = self.path.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(RunError::io("read", &path))?;
        serde_json::from_str(&text).map_err(|source| RunError::Json { path, source })
    }
}

/// Whether a run can begin at `path`: nothing is there, or an empty folder.
pub fn is_free(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// Name of the resolved config in a run folder.
pub(super) const CONFIG: &str = "config.resolved.toml";
/// Name of the manifest in a run folder.
pub(super) const MANIFEST: &str = "manifest.json";

fn lock(folder: &Path, named: &Path) -> Result<File, RunError> {
    let path = folder.join(".lock");
    let file = File::create(&path).map_err(RunError::io("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RunError::Busy(named.into())),
        Err(TryLockError::Error(source)) => Err(RunError::Io { action: "lock", path, source }),
    }
}

/// Writes pretty JSON, atomically.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    use std::io::Write;
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|source| RunError::Json { path: path.into(), source })?;
    text.push('\n');
    write_atomically(path, |file| file.write_all(text.as_bytes()))
        .map_err(RunError::io("write", path))
}
