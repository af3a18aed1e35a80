//! Errors of remote devices and base stations.

use std::path::{Path, PathBuf};

use lapa_privacy::ledger::LedgerError;
use lapa_privacy::sampler::EntropyError;

use super::Refusal;
use crate::budget::PrivacyError;
use crate::device::NoiseError;
use crate::error::FederationError;
use crate::run::RunError;

/// Result of work on remote devices and base stations.
pub type Result<T, E = RemoteError> = std::result::Result<T, E>;

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
    /// A device's ledger that is gone, or that is not one device's.
    #[error("{0}")]
    Ledger(String),
    /// A stored file is damaged: the file, and the mistake.
    #[error("{} is damaged: {}", .0.display(), .1)]
    Damaged(PathBuf, String),
}

impl RemoteError {
    /// The refusal, if a device refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    pub(super) fn damaged<E: ToString>(path: &Path) -> impl Fn(E) -> Self {
        |what| Self::Damaged(path.into(), what.to_string())
    }
}

impl From<LedgerError> for RemoteError {
    fn from(error: LedgerError) -> Self {
        PrivacyError::from(error).into()
    }
}

impl From<EntropyError> for RemoteError {
    fn from(error: EntropyError) -> Self {
        PrivacyError::from(error).into()
    }
}

impl From<NoiseError> for RemoteError {
    fn from(error: NoiseError) -> Self {
        FederationError::from(error).into()
    }
}
