//! Neighboring inputs of one device, many draws, the optimal test.
//!
//! A device's releases over a whole run are drawn again and again, with a record and without, by
//! the code that runs: local update, noise, release. What is audited stands behind the trait
//! [`Releases`], so that a test can put a damaged one in its place.

mod device;
mod distinguish;
mod draws;
mod run;

pub use device::{Device, DeviceReleases, Neighbors};
pub use distinguish::Distinguisher;
pub use draws::{Bounds, Scores, draw};
pub use run::run;

use crate::AuditError;

/// Everything that one device releases in a run, on either of two neighboring inputs.
pub trait Releases: Sync {
    /// All released vectors, one after the other, of draw `draw` on the input with the record or
    /// on the one without it. The same for the same arguments, and independent otherwise.
    fn vectors(&self, with: bool, draw: u64) -> Result<Vec<f32>, AuditError>;
}
