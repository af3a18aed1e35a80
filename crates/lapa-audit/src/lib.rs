//! Attacks on private federated learning, and what they prove.
//!
//! An audit can only refute. An attack that succeeds gives a lower bound on ε that holds with a
//! stated confidence; if that bound is above what was claimed, the claim is false. An attack that
//! fails proves nothing: a better one may succeed.
//!
//! Attacks read what the paper's honest-but-curious base station has: the configuration, the
//! models, what it received, and a data set of its own that overlaps the devices'. To know who was
//! a member, they repeat the run in a simulation with records of their own in it.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod audit;
pub mod canary;
pub mod epsilon_bound;
mod error;
mod finding;
pub mod inversion;
mod leakage;
pub mod ledger;
pub mod mechanism;
pub mod membership;
mod options;
mod repeat;
mod report;
mod scale;
mod subject;

pub use audit::Audit;
pub use error::AuditError;
pub use finding::{Attack, Exhibit, Finding, Verdict};
pub use options::{Effort, Listener, Options, Progress};
pub use repeat::{Repeated, repeat};
pub use report::{CAVEAT, at_least};
pub use scale::Scale;
pub use subject::{Statement, Subject};
