//! Optimizers of the devices' transmit amplitudes.
//!
//! A decision is a vector of *amplitudes* p_k ≥ 0; device k sends with |p_k|² watts. An [`Optimizer`]
//! sees the [`Objective`] alone: public numbers and noisy transcripts.

mod closed_form;
pub mod cma_es;
pub mod ddpg;
mod known;
mod limits;
mod objective;
mod random;
mod search;

use std::any::Any;
use std::fmt;
use std::ops::ControlFlow;

use lapa_privacy::{OutOfRange, word_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use closed_form::{ClosedForm, closed_form};
pub use cma_es::CmaEs;
pub use ddpg::{Ddpg, DdpgConfig};
pub use known::{Equal, Full, Known};
pub use limits::{Limits, LimitsError};
pub use objective::{Evaluation, Objective, ObjectiveError};
pub use random::{RandomSearch, RandomSearchConfig};

use crate::observe::Cancelled;

/// The words of `control.power` and the tables of `[control]`, from a list of what builds an
/// optimizer; `in` names the table of its parameters, if it has any.
macro_rules! optimizers {
    (@ $this:ident $parameters:ident) => { &$parameters };
    (@ $this:ident $parameters:ident $table:ident) => { &$this.$table };
    ($($(#[$meaning:meta])* $name:ident($parameters:ident) $(in $table:ident)?,)+) => {
        /// Source of the devices' transmit powers.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum PowerChoice {
            /// transmit.power_w: no pilot, nothing is optimized.
            #[default]
            File,
            $($(#[$meaning])* $name,)+
        }

        impl PowerChoice {
            /// All that choose powers, the cheap ones first.
            pub const METHODS: &[Self] = &[$(Self::$name),+];
        }

        /// Parameters of the optimizers that have some. They are read whichever is chosen.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, rename_all = "kebab-case")]
        #[allow(missing_docs, reason = "a table has the description of its type")]
        pub struct Optimizers {
            $($(pub $table: $parameters,)?)+
        }

        impl Optimizers {
            /// The builder of an optimizer; `None` for powers of the file.
            pub fn get(&self, choice: PowerChoice) -> Option<&dyn BuildOptimizer> {
                Some(match choice {
                    PowerChoice::File => return None,
                    $(PowerChoice::$name => optimizers!(@ self $parameters $($table)?),)+
                })
            }
        }
    };
}

optimizers! {
    /// The same for all: total_power_w over the number of devices.
    Equal(Equal),
    /// transmit.max_power_w for all, scaled down to total_power_w.
    Full(Full),
    /// In proportion to weight over channel gain, after a pilot.
    ClosedForm(ClosedForm),
    /// The best of random powers, after a pilot: a yardstick. It draws as many as DDPG takes steps.
    RandomSearch(RandomSearchConfig),
    /// The best that CMA-ES finds, after a pilot.
    CmaEs(CmaEs) in cma_es,
    /// The best that DDPG finds, after a pilot (the paper).
    Ddpg(DdpgConfig) in ddpg,
}

impl fmt::Display for PowerChoice {
    /// Its word in a configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&word_of(self))
    }
}

/// Numbers that an optimizer is built for.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// Limits of the amplitudes.
    pub limits: &'a Limits,
    /// b_k of each device, whose channel noise in the objective is b_k/p_k².
    pub channel_terms: &'a [f64],
    /// Parameters of all optimizers.
    pub optimizers: &'a Optimizers,
}

/// Parameters that an optimizer is built from.
pub trait BuildOptimizer {
    /// The optimizer.
    fn build(&self, given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange>;

    /// True if powers are fitted to the results of a pilot run.
    fn needs_pilot(&self) -> bool {
        true
    }

    /// Refuses, before there is a pilot, parameters that do not go with this number of devices.
    fn check(&self, _devices: usize) -> Result<(), OutOfRange> {
        Ok(())
    }
}

/// Chooses amplitudes with the least objective it can find. The same seed gives the same choice.
pub trait Optimizer: Any {
    /// Its name: as in `control.power`.
    fn name(&self) -> &'static str;

    /// Searches. `on_progress` may break off.
    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError>;
}

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
