//! Whether what was received agrees with what the ledger says was released.

mod checks;
mod records;
mod run;

pub use checks::{Checks, Heard, Worst};
pub(crate) use records::{disagreements, update_releases};
pub use run::run;
