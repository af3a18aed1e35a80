//! Why a device or a base station cannot go on.

use std::path::PathBuf;

use crate::federation::FederationError;
use crate::privatize::{PrivatizeError, Refusal};
use crate::run::RunError;

/// Why a device or a base station cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A configuration that is none of a real federation.
    #[error("{what}: devices that share no memory need {instead}")]
    Config {
        /// What it has.
        what: String,
        /// What is needed.
        instead: &'static str,
    },
    /// Devices that do not fit together or not the configuration.
    #[error("{0}")]
    Devices(String),
    /// Records that are none.
    #[error("{0}")]
    Records(String),
    /// A device refuses, or noise cannot be set or recorded.
    #[error(transparent)]
    Privatize(#[from] PrivatizeError),
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
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
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
    /// A stored answer is damaged.
    #[error("{} is damaged: {what}", path.display())]
    Answer {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl RemoteError {
    /// The refusal, if a device refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Privatize(PrivatizeError::Refused(refusal)) => Some(refusal),
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
