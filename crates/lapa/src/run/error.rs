//! Errors of runs.

use std::io;
use std::path::{Path, PathBuf};

use crate::budget::PrivacyError;
use crate::config::ConfigError;
use crate::error::FederationError;
use crate::observe::ObserveError;

/// A run that cannot begin, go on, or be written down.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder for a new run is taken.
    #[error("{} exists already and is not empty: {}", .0.display(), way_out(.0))]
    Exists(PathBuf),
    /// A path that names no folder.
    #[error("`{}` does not name a folder", .0.display())]
    NoName(PathBuf),
    /// Not the folder of a run.
    #[error(
        "{} is not the folder of a run: it needs config.resolved.toml and checkpoint.safetensors",
        .0.display()
    )]
    NotARun(PathBuf),
    /// Another process has the folder.
    #[error("{} is in use by another process", .0.display())]
    Busy(PathBuf),
    /// A link in the place of a run's own file or folder.
    #[error(
        "{} is a symbolic link: the files and folders of a run must be its own, since writing to \
         a link would change what it points to",
        .0.display()
    )]
    Link(PathBuf),
    /// The config is not the one that the manifest is about.
    #[error(
        "{} was changed since the run began: what it says is not what ran (manifest.json has a \
         hash of it)",
        path.display()
    )]
    Edited {
        /// The resolved config.
        path: PathBuf,
    },
    /// Another version wrote the config in another way.
    #[error(
        "{}: the run was made with version {began}, this is {now}: whether its configuration was \
         changed since cannot be told; use version {began}",
        path.display()
    )]
    OtherVersion {
        /// The folder.
        path: PathBuf,
        /// The program that began the run.
        began: String,
        /// This version.
        now: &'static str,
    },
    /// The folder says of the run what its other files contradict.
    #[error("{}: {what}; the folder was changed since the run ended", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// Values, and what the other files say.
        what: String,
    },
    /// The data set is not the one the run began with.
    #[error(
        "{}: the data set's files differ from those in manifest.json; \
         a run can only be resumed on the data it began with",
        path.display()
    )]
    OtherData {
        /// The folder.
        path: PathBuf,
    },
    /// Another program would round differently.
    #[error(
        "{}: the run began with {began}, this is {now}; \
         going on would mix two roundings in one run",
        path.display()
    )]
    OtherProgram {
        /// The folder.
        path: PathBuf,
        /// The program that began the run.
        began: String,
        /// The run's state.
        now: String,
    },
    /// The config is not the one the run began with.
    #[error(
        "{} was changed since the run began: its releases could not be repeated",
        path.display()
    )]
    Changed {
        /// The resolved config.
        path: PathBuf,
    },
    /// The checkpoint does not fit the experiment.
    #[error("{}: damaged checkpoint: {what}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A JSON file is damaged.
    #[error("{}: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The mistake.
        source: serde_json::Error,
    },
    /// A tensor file is damaged.
    #[error("{}: {source}", path.display())]
    Tensors {
        /// The file.
        path: PathBuf,
        /// The mistake.
        source: safetensors::SafeTensorError,
    },
    /// The resolved config does not parse.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A round failed.
    #[error(transparent)]
    Federation(#[from] FederationError),
    /// Releases cannot be recorded, or noise cannot be set.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// A run has made releases, and the record of them is gone.
    #[error(
        "{}: its ledger {} is missing; without the record of what was released a run cannot go on",
        path.display(),
        ledger.display()
    )]
    NoLedger {
        /// The folder.
        path: PathBuf,
        /// The ledger.
        ledger: PathBuf,
    },
    /// The ledger is an older copy of itself.
    #[error(
        "{} shows {what}: {} is an older copy, which has forgotten releases; put the newest one \
         back to go on",
        metrics.display(),
        ledger.display()
    )]
    Forgotten {
        /// The metrics.
        metrics: PathBuf,
        /// The ledger.
        ledger: PathBuf,
        /// Releases that the metrics have and the ledger has not.
        what: String,
    },
    /// A ledger refuses the run.
    #[error("ledger {}: {source}", path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// The cause.
        source: lapa_privacy::ledger::LedgerError,
    },
    /// The metrics could not be written.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

fn way_out(path: &Path) -> String {
    match path.join(super::folder::CONFIG).is_file() {
        true => format!("go on with --resume {}, or choose another folder", path.display()),
        false => "choose another folder".into(),
    }
}

impl RunError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
