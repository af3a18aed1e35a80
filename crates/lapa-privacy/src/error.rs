//! Errors of events and accountants.

use crate::event::{Adjacency, Mechanism, Sampling};
use crate::range::{OutOfRange, check, positive};

/// Error of a release without a provable sensitivity.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EventError {
    /// A number of the release is out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// No sensitivity is known for this way to draw batches under this adjacency.
    #[error(
        "{sampling} batches have no proven sensitivity under {adjacency} adjacency: use {instead}"
    )]
    Pair {
        /// Sampling of the batches.
        sampling: Sampling,
        /// The adjacency.
        adjacency: Adjacency,
        /// The pairs that are known.
        instead: &'static str,
    },
}

/// Error of an accountant.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AccountError {
    /// A number is out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// The accountant has no theorem for this mechanism.
    #[error("the {accountant} accountant does not support {mechanism}")]
    Unsupported {
        /// Name of the accountant.
        accountant: &'static str,
        /// The mechanism.
        mechanism: Mechanism,
    },
    /// Bounds under different adjacencies do not add up.
    #[error("a release under {other} adjacency cannot be composed with those under {first}")]
    MixedAdjacency {
        /// The adjacency of the releases so far.
        first: Adjacency,
        /// The adjacency of the one that is refused.
        other: Adjacency,
    },
    /// The accountant's numerical error is larger than the δ asked for.
    #[error(
        "delta = {delta:e}: the {accountant} accountant resolves delta down to {smallest:e} here"
    )]
    DeltaTooSmall {
        /// Name of the accountant.
        accountant: &'static str,
        /// The requested δ.
        delta: f64,
        /// The smallest δ its error bound supports.
        smallest: f64,
    },
    /// No noise reaches the target.
    #[error(
        "no noise multiplier up to {largest:e} reaches epsilon = {epsilon} at delta = {delta:e}"
    )]
    OutOfReach {
        /// The target ε.
        epsilon: f64,
        /// The target δ.
        delta: f64,
        /// The largest noise multiplier tried.
        largest: f64,
    },
    /// The event has no cost.
    #[error(transparent)]
    Event(#[from] EventError),
}

/// δ must be in (0, 1).
pub(crate) fn check_delta(delta: f64) -> Result<f64, OutOfRange> {
    check("delta", delta, delta > 0.0 && delta < 1.0, "a number above 0 and below 1")
}

/// z must be positive and finite, q in (0, 1].
pub(crate) fn check_mechanism(mechanism: &Mechanism) -> Result<(), OutOfRange> {
    let (noise_multiplier, rate) = match *mechanism {
        Mechanism::Gaussian { noise_multiplier }
        | Mechanism::DiscreteGaussian { noise_multiplier } => (noise_multiplier, 1.0),
        Mechanism::PoissonGaussian { rate, noise_multiplier, .. } => (noise_multiplier, rate),
        Mechanism::NonPrivate => return Ok(()),
    };
    positive("noise multiplier", noise_multiplier)?;
    check_rate(rate)?;
    Ok(())
}

/// q must be in (0, 1].
pub(crate) fn check_rate(rate: f64) -> Result<f64, OutOfRange> {
    check("sampling rate", rate, rate > 0.0 && rate <= 1.0, "a number above 0 and at most 1")
}
