//! Why an audit cannot be done.

use std::io;
use std::path::PathBuf;

use lapa::federation::FederationError;
use lapa::plot::PlotError;
use lapa::privatize::PrivatizeError;

/// Why an audit cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The run cannot be repeated.
    #[error(transparent)]
    Federation(#[from] FederationError),
    /// Its budgets cannot be read.
    #[error(transparent)]
    Privatize(#[from] PrivatizeError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A confidence that is none.
    #[error("confidence {confidence}: allowed is a number above 0 and below 1")]
    Confidence {
        /// What was given.
        confidence: f64,
    },
    /// Real releases are not repeated.
    #[error(
        "run.entropy = \"os\" makes real releases, which no audit repeats: it would spend the \
         devices' budgets. Audit the same configuration with run.entropy = \"seed\""
    )]
    RealReleases,
    /// Canaries that memory should not hold.
    #[error(
        "images of {pixels} pixels and {parameters} parameters: {canaries} canaries and their \
         gradients need {needed} bytes, and {allowed} are allowed"
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
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The releases of a device cannot be drawn again.
    #[error("a device's update is not finite, which this configuration refuses to release")]
    NotFinite,
    /// The listener broke off.
    #[error("the audit was stopped")]
    Stopped,
}
