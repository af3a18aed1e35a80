//! The folder of a run: what is in it, how it appears, who may write to it.

use std::fs::{self, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::{ManifestData, Result, RunError};
use crate::aggregate::Histograms;
use crate::config::{Entropy, Experiment};
use crate::files::{self, Folder, FolderLock};

/// An open run folder. No other process can open it for writing while this lives.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: FolderLock,
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
    /// Source of noise and batches.
    pub entropy: String,
    /// Kernels: results are the same to the bit only for the same ones.
    pub kernels: String,
    /// The data set.
    pub data: ManifestData,
    /// The machine.
    pub machine: Machine,
    /// Worker threads of the process that began the run.
    pub threads: usize,
    /// Model parameters q.
    pub parameters: usize,
    /// Upload of the devices.
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

impl Manifest {
    pub(super) fn new(
        experiment: &Experiment,
        run: &str,
        data: ManifestData,
        parameters: usize,
        threads: usize,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            run: run.into(),
            experiment: fingerprint(experiment),
            seed: experiment.run.seed,
            entropy: String::from(match experiment.run.entropy {
                Entropy::Seed => "seed: simulation, no guarantee against anyone who knows the seed",
                Entropy::Os => "the operating system's, through ChaCha20",
            }),
            kernels: crate::model::kernels_in_use().into(),
            data,
            machine: Machine {
                os: std::env::consts::OS.into(),
                arch: std::env::consts::ARCH.into(),
                cores: std::thread::available_parallelism().map_or(1, usize::from),
            },
            threads,
            parameters,
            upload: format!(
                "{parameters} gradient values per device and round, {}; {}",
                match experiment.privacy {
                    None => "not noised",
                    Some(_) => "each with noise",
                },
                match experiment.aggregate.rule.histograms() {
                    None => "nothing else",
                    Some(Histograms::Noisy(_)) => "once a histogram of its labels, with noise",
                    Some(Histograms::Public) => "once a histogram of its labels, declared public",
                    Some(Histograms::Exact) => "once a histogram of its labels, not noised",
                }
            ),
            started_unix: crate::clock::unix_seconds(),
        }
    }
}

/// Hash of all that decides a release: the experiment (threads apart), version and kernels.
pub fn fingerprint(experiment: &Experiment) -> String {
    fingerprint_under(env!("CARGO_PKG_VERSION"), crate::model::kernels_in_use(), experiment)
}

/// The same under another version and other kernels.
pub(super) fn fingerprint_under(version: &str, kernels: &str, experiment: &Experiment) -> String {
    let mut experiment = experiment.clone();
    experiment.run.threads = 0;
    let hash = Sha256::digest(format!("{version} {kernels}\n{}", experiment.to_toml()));
    files::hex(&hash[..16])
}

impl RunFolder {
    /// Fills a new folder by `fill`, then renames it to the first of `paths` that is free: a
    /// run at that path can be resumed. All paths have the same parent.
    pub(super) fn create(
        paths: impl IntoIterator<Item = PathBuf>,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Self> {
        let mut paths = paths.into_iter().peekable();
        let taken = paths.peek().cloned().unwrap_or_default();
        let Some(path) = paths.find(|path| is_free(path)) else {
            return Err(RunError::Exists(taken));
        };
        let name = path.file_name().ok_or_else(|| RunError::NoName(path.clone()))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let parent = path.parent().filter(|parent| *parent != "").unwrap_or(".".as_ref());
        fs::create_dir_all(parent).map_err(RunError::io("create", parent))?;
        remove_leftovers(parent);
        let (partial, lock) = new_partial(parent, &prefix)?;
        fill(partial.path())?;
        // Another process may have taken the path meanwhile: go on to the next one.
        for path in std::iter::once(path.clone()).chain(paths) {
            match fs::rename(partial.path(), &path) {
                Ok(()) => {
                    // Renamed away: there is nothing left to clean up.
                    let _ = partial.keep();
                    // The name must last as long as the records in the folder.
                    let synced = Folder::open(parent).and_then(|parent| parent.sync());
                    synced.map_err(RunError::io("write", parent))?;
                    return Ok(Self { path, _lock: lock });
                }
                Err(_) if !is_free(&path) => {}
                Err(source) => return Err(RunError::io("create", &path)(source)),
            }
        }
        Err(RunError::Exists(path))
    }

    /// Opens the folder of an earlier run in order to go on with it.
    pub fn open(path: &Path) -> Result<Self> {
        let folder = open_run(path)?;
        let lock = folder.lock().map_err(|error| not_locked(error, path))?;
        folder.remove_temporaries().map_err(RunError::io("clean up", path))?;
        Ok(Self { path: path.into(), _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The experiment as resolved when the run began.
    pub fn experiment(&self) -> Result<Experiment> {
        read_experiment(&self.path)
    }

    /// The manifest, as written when the run began.
    pub fn manifest(&self) -> Result<Manifest> {
        read_manifest(&self.path)
    }
}

/// Names that a run, its report and its audit write under in its folder. None may be a link.
const OWN: [&str; 21] = [
    ".lock",
    CONFIG,
    MANIFEST,
    super::METRICS,
    "metrics.parquet",
    super::checkpoint::FILE,
    super::checkpoint::MODEL,
    super::SUMMARY,
    super::LEDGER,
    "ledger.db-wal",
    "ledger.db-shm",
    "ledger.db-journal",
    "plots",
    "report.html",
    "tensorboard",
    "audit",
    "asked.json",
    super::DEVICES,
    "staged.toml",
    "power.json",
    "agent.safetensors",
];

/// Opens the folder of a run whose files are its own.
pub(super) fn open_run(path: &Path) -> Result<Folder> {
    let folder = Folder::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => RunError::NotARun(path.into()),
        _ => RunError::io("open", path)(error),
    })?;
    if let Some(name) = folder.link_among(&OWN) {
        return Err(RunError::Link(path.join(name)));
    }
    for name in [CONFIG, super::checkpoint::FILE] {
        match folder.open_file(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(RunError::NotARun(path.into()));
            }
            opened => opened.map_err(RunError::io("open", &path.join(name)))?,
        };
    }
    Ok(folder)
}

pub(super) fn not_locked(error: TryLockError, path: &Path) -> RunError {
    match error {
        TryLockError::WouldBlock => RunError::Busy(path.into()),
        TryLockError::Error(error) => RunError::io("lock", path)(error),
    }
}

/// The experiment of the run in `folder`, as resolved when it began.
pub fn read_experiment(folder: &Path) -> Result<Experiment> {
    let path = folder.join(CONFIG);
    let text = files::read_to_string(&path).map_err(RunError::io("read", &path))?;
    Ok(Experiment::from_toml(&text, &path.display().to_string(), &[])?)
}

pub(super) fn read_manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join(MANIFEST);
    let text = files::read_to_string(&path).map_err(RunError::io("read", &path))?;
    serde_json::from_str(&text).map_err(RunError::invalid(&path))
}

/// Name of a folder in the making: `.NAME.RANDOM.partial`.
const PARTIAL: &str = ".partial";

/// A new folder in `parent`, locked and private to its owner.
fn new_partial(parent: &Path, prefix: &str) -> Result<(TempDir, FolderLock)> {
    let cannot = || RunError::io("create a folder in", parent);
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(PARTIAL);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    loop {
        let partial = builder.tempdir_in(parent).map_err(cannot())?;
        let lock = match Folder::open(partial.path()).map(|folder| folder.lock()) {
            Ok(Ok(lock)) => Some(lock),
            Ok(Err(TryLockError::WouldBlock)) => None,
            Ok(Err(TryLockError::Error(source))) | Err(source) if partial.path().is_dir() => {
                return Err(cannot()(source));
            }
            _ => None,
        };
        // Before it was locked, another process may have taken it for a leftover.
        if let Some(lock) = lock.filter(|_| partial.path().is_dir()) {
            return Ok((partial, lock));
        }
    }
}

/// Removes what killed processes left of runs that never began; nothing was released in them. A
/// folder that a process holds, that has anything else in it, or that cannot be removed, stays.
fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let is_partial = name.starts_with('.') && name.ends_with(PARTIAL);
        if !is_partial || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        // Looked at before it is locked, since a lock leaves a file in it, and after.
        if never_began(&path)
            && let Ok(folder) = Folder::open(&path)
            && let Ok(_lock) = folder.lock()
            && never_began(&path)
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// True if a folder holds nothing but the first files of a run.
fn never_began(partial: &Path) -> bool {
    let first = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let empty = || entry.metadata().is_ok_and(|found| found.len() == 0);
        // A ledger in the making, with what SQLite keeps beside it.
        let ledger = name.starts_with(".ledger.") && name.contains(PARTIAL);
        let own = OWN.contains(&&*name) || files::is_temporary(&name) || ledger;
        own && (name != super::METRICS || empty())
    };
    fs::read_dir(partial).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(first)))
}

/// True if a run can begin at `path`: nothing is there, or an empty folder.
pub fn is_free(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        // A link to nothing is something.
        Err(error) => error.kind() == ErrorKind::NotFound && !path.is_symlink(),
    }
}

/// Name of the resolved config in a run folder.
pub(super) const CONFIG: &str = "config.resolved.toml";
/// Name of the manifest in a run folder.
pub(super) const MANIFEST: &str = "manifest.json";
