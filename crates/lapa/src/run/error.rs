//! Errors of runs.

use std::io;
use std::path::{Path, PathBuf};

use lapa_privacy::ledger::LedgerError;

use crate::budget::PrivacyError;
use crate::config::ConfigError;
use crate::error::FederationError;
use crate::files::FileError;
use crate::observe::ObserveError;

/// Result of work on runs.
pub type Result<T, E = RunError> = std::result::Result<T, E>;

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
        .0.display()
    )]
    Edited(PathBuf),
    /// A file or folder that is damaged, or that contradicts other files or this program.
    #[error("{}: {what}", path.display())]
    Invalid {
        /// The file or folder.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
    /// The data set is not the one the run began with.
    #[error(
        "{}: the data set's files differ from those in manifest.json; \
         a run can only be resumed on the data it began with",
        .0.display()
    )]
    OtherData(PathBuf),
    /// The config is not the one the run began with.
    #[error("{} was changed since the run began: its releases could not be repeated", .0.display())]
    Changed(PathBuf),
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
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
        source: LedgerError,
    },
    /// The metrics could not be written.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

fn way_out(path: &Path) -> String {
    if path.join(super::folder::CONFIG).is_file() {
        format!("go on with --resume {}, or choose another folder", path.display())
    } else {
        "choose another folder".into()
    }
}

impl RunError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| FileError::on(action, path)(source).into()
    }

    pub(super) fn invalid<E: ToString>(path: &Path) -> impl Fn(E) -> Self {
        |what| Self::Invalid { path: path.into(), what: what.to_string() }
    }
}

impl From<LedgerError> for RunError {
    fn from(error: LedgerError) -> Self {
        Self::Privacy(error.into())
    }
}
