//! Budgets: what each device declared before round 1, may still spend, and has spent.
//!
//! Everything here is a public number. A simulated device, a real device and a base station hold the
//! same types: a `DeviceBudget` prices one release, [`Books`] keep the accounts of many devices in
//! one ledger. Nothing here draws noise: that takes a [`Recorded`](lapa_privacy::ledger::Recorded),
//! which only the ledger makes.

mod account;
mod amplitudes;
mod books;
mod declare;
mod device_budget;
mod error;
mod noise_control;
mod odometer;
mod proof;
mod spending;
mod summary;

pub use account::kind_of_costs;
pub use amplitudes::{Trusted, power_scale};
pub use books::{Books, Granted};
pub(crate) use declare::{declare, of_whole_updates, public_samples, total_epsilon};
pub(crate) use device_budget::{DeviceBudget, Priced, floor};
pub use error::{PrivacyError, Result};
pub use noise_control::{NoiseRule, top_up};
pub(crate) use odometer::Odometer;
pub use proof::{ProofFacts, adversary, proof};
pub use spending::Spent;
pub use summary::{PrivacySummary, round_up};
