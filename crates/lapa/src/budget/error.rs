//! Errors of budgets, noise and their records.

use lapa_privacy::{AccountError, EventError};

/// Result of work on budgets.
pub type Result<T, E = PrivacyError> = std::result::Result<T, E>;

/// Noise that cannot be set or recorded.
#[derive(Debug, thiserror::Error)]
pub enum PrivacyError {
    /// An accountant refuses.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A release has no provable sensitivity.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The ledger refuses.
    #[error(transparent)]
    Ledger(#[from] lapa_privacy::ledger::LedgerError),
    /// The allocator refuses.
    #[error(transparent)]
    Allocate(#[from] lapa_privacy::allocate::AllocateError),
    /// The operating system gives no entropy.
    #[error(transparent)]
    Entropy(#[from] lapa_privacy::sampler::EntropyError),
    /// An update cannot be sent as amplitudes.
    #[error(transparent)]
    Uplink(#[from] lapa_wireless::uplink::UplinkError),
    /// A budget, or noise of it, that cannot be had from a ledger or for a number of samples.
    #[error("{0}")]
    Budget(String),
    /// A noise level that no budget goes with.
    #[error(
        "privacy.initial_sigma = {sigma} makes epsilon {epsilon} over all rounds: \
         allowed is what makes it from 0.001 to 1000000"
    )]
    InitialSigma {
        /// σ₀
        sigma: f64,
        /// The ε that follows from it.
        epsilon: f64,
    },
    /// A real release without a record that lasts.
    #[error(
        "run.entropy = \"os\" makes real releases, which need a ledger in a file: \
         use Setup::record_in"
    )]
    NotRecorded,
    /// A ledger that lacks releases which the checkpoint knows of.
    #[error(
        "the ledger knows run {run} up to round {recorded}, but its checkpoint, after round \
         {round}, knows of releases in round {asked}: this is not the ledger that the run has written to, or config.resolved.toml was \
         changed since"
    )]
    LedgerBehind {
        /// The run.
        run: String,
        /// The last round in the ledger.
        recorded: u32,
        /// The last round with releases that the checkpoint knows of.
        asked: u32,
        /// The round of the checkpoint.
        round: u32,
    },
}
