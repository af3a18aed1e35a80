//! Errors of budgets, noise and their records.

use lapa_privacy::{AccountError, EventError};

use crate::model::MOST_SAMPLES;

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
    /// σ is negative or not finite.
    #[error(transparent)]
    Sigma(#[from] lapa_privacy::OutOfRange),
    /// Sums on the grid are out of its range.
    #[error(transparent)]
    Grid(#[from] lapa_privacy::mechanism::GridError),
    /// The operating system gives no entropy.
    #[error(transparent)]
    Entropy(#[from] lapa_privacy::mechanism::EntropyError),
    /// An update cannot be sent as amplitudes.
    #[error(transparent)]
    Uplink(#[from] lapa_wireless::uplink::UplinkError),
    /// A shared ledger has a plan with less noise than asked for.
    #[error(
        "privacy.initial_sigma asks for {noise} sensitivities of noise, but the ledger's plan for \
         this data has {planned}: use the plan's, or another ledger"
    )]
    OtherPlan {
        /// The multiplier asked for.
        noise: f64,
        /// The planned one.
        planned: f64,
    },
    /// A shared ledger has nothing left for this data.
    #[error(
        "{}: nothing is left of any device's budget (privacy.epsilon = {epsilon}) on this data",
        ledger.display()
    )]
    NothingLeft {
        /// The ledger.
        ledger: std::path::PathBuf,
        /// The budget.
        epsilon: f64,
    },
    /// A budget that is nothing at the order of a shared ledger.
    #[error(
        "privacy.epsilon = {epsilon} leaves nothing to spend at the Rényi order {order:.3} that the \
         ledger was begun with"
    )]
    BudgetTooSmall {
        /// The budget.
        epsilon: f64,
        /// The order.
        order: f64,
    },
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
    /// A device with more samples than the proof of floating-point sums covers.
    #[error(
        "device {device} has {samples} samples: the rounding of sums of clipped gradients is \
         proved for up to {MOST_SAMPLES}; deal them to more devices, or use privacy.noise = \
         \"discrete-gaussian\", whose sums are exact"
    )]
    TooManySamples {
        /// The device.
        device: usize,
        /// Its samples.
        samples: u32,
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
