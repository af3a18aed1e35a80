//! Comparison of the received values with the releases on the ledger.

mod checks;
mod records;
mod run;

pub use checks::{Checks, ReceivedUpdate, Worst};
pub(crate) use records::{disagreements, update_releases};
pub use run::run;
