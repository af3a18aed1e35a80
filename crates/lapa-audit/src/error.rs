//! Errors of an audit.

use lapa::blame::Blame;
use lapa::budget::PrivacyError;
use lapa::device::NoiseError;
use lapa::error::FederationError;
use lapa::files::FileError;
use lapa::simulation::Cancelled;
use lapa_report::plot::PlotError;

/// Error of an audit.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The run cannot be repeated.
    #[error(transparent)]
    Federation(FederationError),
    /// Its budgets cannot be read.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// Noise cannot be drawn.
    #[error(transparent)]
    Noise(#[from] NoiseError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A confidence outside (0, 1).
    #[error("confidence = {0}: expected a number above 0 and below 1")]
    Confidence(f64),
    /// Real releases are not repeated.
    #[error(
        "run.entropy = \"os\" makes real releases; an audit would repeat them and spend the \
         devices' budgets. Audit the same configuration with run.entropy = \"seed\""
    )]
    RealReleases,
    /// Canaries that memory should not hold.
    #[error(
        "{canaries} canaries of {pixels} pixels and their gradients of {parameters} parameters need \
         {needed} bytes; the limit is {allowed}"
    )]
    TooLarge {
        /// Pixels of an image.
        pixels: u64,
        /// Parameters of the model.
        parameters: u64,
        /// Canaries.
        canaries: u64,
        /// Bytes for them.
        needed: u64,
        /// The most there may be.
        allowed: u64,
    },
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The releases of a device cannot be drawn again.
    #[error(
        "the update of a device is not finite, and this configuration does not release such updates"
    )]
    NotFinite,
    /// The listener broke off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<FederationError> for AuditError {
    fn from(error: FederationError) -> Self {
        match error {
            FederationError::Cancelled(cancelled) => cancelled.into(),
            other => Self::Federation(other),
        }
    }
}

impl Blame for AuditError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Federation(error) => error.is_usage(),
            Self::RealReleases | Self::Confidence(_) | Self::TooLarge { .. } => true,
            _ => false,
        }
    }
}
