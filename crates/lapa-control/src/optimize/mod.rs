//! Ways to choose transmit amplitudes.

pub mod cma_es;
pub mod ddpg;
mod known;
mod random;
mod search;

pub use cma_es::CmaEs;
pub use ddpg::Ddpg;
pub use known::Known;
pub use random::RandomSearch;

use std::ops::ControlFlow;

use lapa::simulation::Cancelled;

use crate::power::{Evaluation, Objective, ObjectiveError};

/// Progress of an optimizer.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Evaluations so far.
    pub evaluations: u64,
    /// Evaluations in all.
    pub of: u64,
    /// The least objective so far.
    pub best: f64,
}

/// Result of an optimizer.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// The best amplitudes it evaluated; feasible.
    pub amplitudes: Vec<f64>,
    /// Their evaluation.
    pub evaluation: Evaluation,
    /// Number of evaluations.
    pub evaluations: u64,
    /// (evaluations so far, least objective so far), wherever the latter fell, and at the end.
    pub curve: Vec<(u64, f64)>,
}

/// Error of an optimizer.
#[derive(Debug, thiserror::Error)]
pub enum OptimizeError {
    /// An allocation could not be judged.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// The listener broke off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// No allocation that was tried has a finite objective.
    #[error("{optimizer}: none of {evaluations} power allocations has a finite objective")]
    NothingFinite {
        /// Name of the optimizer.
        optimizer: &'static str,
        /// Number of evaluations.
        evaluations: u64,
    },
}

/// Chooses amplitudes with the least objective it can find. The same seed gives the same choice.
pub trait Optimizer {
    /// Its name: as in `control.power`, or `random-search`, which is a yardstick only.
    fn name(&self) -> &'static str;

    /// Searches. `on_progress` may break off.
    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError>;
}
