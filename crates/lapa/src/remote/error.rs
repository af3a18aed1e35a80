//! Errors of remote devices and base stations.

use std::path::PathBuf;

use super::Refusal;
use crate::budget::PrivacyError;
use crate::error::FederationError;
use crate::run::RunError;

/// A device or a base station cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Not valid for a real federation.
    #[error("{what}: devices that share no memory need {instead}")]
    Config {
        /// Its value.
        what: String,
        /// The value that is needed.
        instead: &'static str,
    },
    /// Devices that do not fit together or not the configuration.
    #[error("{0}")]
    Devices(String),
    /// Invalid records.
    #[error("{0}")]
    Records(String),
    /// A device refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Noise cannot be set or recorded.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The federation cannot be set up, or cannot go on.
    #[error(transparent)]
    Federation(#[from] FederationError),
    /// The base station's folder refuses.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A call out of turn.
    #[error("{0}")]
    Turn(&'static str),
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A device that has answered, without its ledger.
    #[error(
        "{} is missing or empty, but {} has this device's answers: what was released, and what is \
         left of the budget, is no longer known. Put the ledger back from a backup. Without one the \
         budget counts as spent: remove the folder only if these records may be released anew",
        ledger.display(),
        answers.display()
    )]
    LostLedger {
        /// The ledger's path.
        ledger: PathBuf,
        /// The folder of answers.
        answers: PathBuf,
    },
    /// A device's ledger with a budget for each of several numbers.
    #[error(
        "{}: it has accounts of devices {numbers:?}, but a ledger is one device's, whatever its \
         number, and has one budget; what these released cannot be told apart any more: take it as \
         spent, and use a new ledger for records that this one was never used for only",
        ledger.display()
    )]
    SeveralAccounts {
        /// The ledger.
        ledger: PathBuf,
        /// The numbers.
        numbers: Vec<u32>,
    },
    /// A stored answer is damaged.
    #[error("{} is damaged: {what}", path.display())]
    Answer {
        /// The file.
        path: PathBuf,
        /// The mistake.
        what: String,
    },
}

impl RemoteError {
    /// The refusal, if a device refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub(super) fn io(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
