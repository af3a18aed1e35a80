//! Allocators: the cost that each device may spend in each round.
//!
//! An allocator reads what the base station received, which is noisy, and public numbers, and
//! nothing else: a filter can then bound what its choices cost. On [`Basis::Paper`] one ε^T is
//! shared by all rounds and all K devices; a device that takes no part leaves its part unspent. On
//! [`Basis::Certified`] every device has a capacity of its own.

mod arb;
pub mod lapa;
mod optimal_split;
mod uniform;

use rand::Rng;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use arb::{Arb, ArbConfig};
pub use lapa::angle::Split;
pub use lapa::pid::PidError;
pub use lapa::schedule::Schedule;
pub use lapa::{Lapa, LapaConfig};
pub use optimal_split::{OptimalSplit, OptimalSplitConfig};
pub use uniform::{Uniform, UniformConfig};

use crate::OutOfRange;

/// Invalid parameters or state of an allocator.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllocateError {
    /// A number is out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// An allocator of the paper's basis alone.
    #[error("{0} divides one total budget over the devices: epsilon is required")]
    NeedsTotal(&'static str),
    /// The state cannot be read.
    #[error("the state of the allocator: {0}")]
    State(String),
    /// The state was taken from another allocator.
    #[error("the state belongs to the allocator {found}: expected {expected}")]
    OtherAllocator {
        /// The allocator to be restored.
        expected: &'static str,
        /// The one the state was taken from.
        found: String,
    },
}

/// Formulas that bound the privacy loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The paper's formulas as printed.
    Paper,
    /// A guarantee that can be proved.
    Certified,
}

crate::choices! {
    /// Allocators of a configuration, each with its parameters.
    #[derive(Copy)]
    pub enum AllocatorConfig: BuildAllocator {
        /// The same cost for every round and device, fixed in advance.
        Uniform(UniformConfig),
        /// One cost for all devices that follows the norm of the global gradient (our reconstruction).
        Arb(ArbConfig),
        /// The paper's: by training progress over time, by contribution over devices.
        Lapa(LapaConfig),
        /// The split over devices with the least total noise (basis paper only).
        OptimalSplit(OptimalSplitConfig),
    }
}

/// Budget and extent of a run, over which an allocator divides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Horizon {
    /// ε^T on the paper's basis; `None` where each device has a capacity of its own.
    pub total: Option<f64>,
    /// T
    pub rounds: u32,
    /// K
    pub devices: u32,
}

/// Parameters that an allocator is built from.
pub trait BuildAllocator {
    /// The allocator for all of a run.
    fn build(&self, over: Horizon) -> Result<Box<dyn Allocator>, AllocateError>;

    /// True if all costs follow from public numbers, before round 1.
    fn is_fixed(&self) -> bool {
        false
    }

    /// True if it divides one total over the devices, so that it needs basis paper.
    fn needs_total(&self) -> bool {
        false
    }
}

/// Transcript of a round: received values and public numbers only. Values that are not finite were
/// refused before.
#[derive(Clone, Copy, Debug)]
pub struct Transcript<'a> {
    /// Round t, from 1.
    pub round: u32,
    /// The devices of the round.
    pub devices: &'a [DeviceTranscript<'a>],
    /// Σ G_k·g̃_k
    pub global: &'a [f32],
}

/// Transcript of one device in a round.
#[derive(Clone, Copy, Debug)]
pub struct DeviceTranscript<'a> {
    /// Number k of the device, from 0.
    pub device: u32,
    /// G_k, as used in the global gradient.
    pub weight: f64,
    /// g̃_k, as received.
    pub gradient: &'a [f32],
    /// Declared standard deviation of the noise in each coordinate of g̃_k.
    pub sigma: f64,
}

/// Public numbers of a device that an allocator decides by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Number k of the device, from 0.
    pub device: u32,
    /// Rest of the device's capacity, in the currency of its filter. Without meaning on
    /// the paper's basis.
    pub left: f64,
    /// G_k, as expected.
    pub weight: f64,
    /// Claimed Δs_k.
    pub sensitivity: f64,
}

/// Costs that the devices of a round may spend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// For each device asked for: ε_k on the paper's basis, else a part of what is left in the
    /// filter's currency. No noise is large enough for 0: such a device must not send.
    pub by_device: Vec<f64>,
    /// Budget of the round over all K devices (paper's basis).
    pub round_budget: Option<f64>,
    /// The PID-like error that the round's budget was decided with.
    pub pid_error: Option<f64>,
    /// For each device asked for, the smoothed angle that its cost was decided with.
    pub angles: Vec<Option<f64>>,
}

impl Costs {
    /// Costs decided without error or angles.
    pub fn plain(by_device: Vec<f64>, round_budget: Option<f64>) -> Self {
        let angles = vec![None; by_device.len()];
        Self { by_device, round_budget, pid_error: None, angles }
    }
}

/// Decides what devices may spend. The filters of the devices hold whatever it decides: an allocator
/// cannot overspend a budget.
pub trait Allocator: Send {
    /// Its name in a checkpoint.
    fn name(&self) -> &'static str;

    /// The costs of `asks` in `round`. Called once a round at most, in the order of rounds.
    fn allocate(&mut self, round: u32, asks: &[Ask]) -> Costs;

    /// Learns from a finished round.
    fn observe(&mut self, _transcript: &Transcript<'_>, _rng: &mut dyn Rng) {}

    /// False if [`Allocator::observe`] learns nothing, so that updates need not be kept for it.
    fn reads_updates(&self) -> bool {
        true
    }

    /// Everything that later decisions depend on, apart from the settings.
    fn state(&self) -> AllocatorState {
        AllocatorState::new(self.name(), &json!({}), Vec::new())
    }

    /// Goes back to a state of an allocator with the same settings: all later decisions are the
    /// same, bit by bit.
    fn restore(&mut self, state: AllocatorState) -> Result<(), AllocateError> {
        state.scalars::<Value>(self.name()).map(drop)
    }
}

/// State of an allocator in a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocatorState {
    /// The allocator's name, and all that it remembers but gradients. All numbers are finite.
    pub scalars: Value,
    /// Received global gradients, the oldest first.
    pub vectors: Vec<Vec<f32>>,
}

impl AllocatorState {
    /// The state of the allocator `name`, which remembers `scalars`, an object, and `vectors`.
    pub fn new(name: &str, scalars: &impl Serialize, vectors: Vec<Vec<f32>>) -> Self {
        let mut scalars = serde_json::to_value(scalars).unwrap_or_default();
        scalars[ALLOCATOR] = name.into();
        Self { scalars, vectors }
    }

    /// The scalars of the allocator `expected`. Refuses those of another.
    pub fn scalars<T: DeserializeOwned>(&self, expected: &'static str) -> Result<T, AllocateError> {
        let found = self.scalars[ALLOCATOR].as_str().unwrap_or("unknown").to_owned();
        if found != expected {
            return Err(AllocateError::OtherAllocator { expected, found });
        }
        T::deserialize(&self.scalars).map_err(|error| AllocateError::State(error.to_string()))
    }
}

/// Key of the name among the scalars.
const ALLOCATOR: &str = "allocator";

/// Rounds to go at the start of round t: T − t + 1, but at least 1.
fn rounds_left(rounds: u32, round: u32) -> f64 {
    f64::from(rounds.saturating_sub(round)) + 1.0
}
