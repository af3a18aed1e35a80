//! Who may spend how much of a budget in which round.
//!
//! An allocator reads what the base station received, which is noisy, and public numbers, and
//! nothing else: a filter can then bound what its choices cost. On [`Basis::Paper`] one ε^T is
//! shared by all rounds and all K devices; a device that takes no part leaves its part unspent. On
//! [`Basis::Certified`] every device has a capacity of its own.

mod arb;
mod error;
pub mod lapa;
mod optimal_split;
mod uniform;

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use arb::{Arb, ArbScalars};
pub use error::AllocateError;
pub use lapa::pid::PidError;
pub use lapa::{Lapa, LapaConfig, LapaScalars};
pub use optimal_split::OptimalSplit;
pub use uniform::Uniform;

/// Which formulas bound the privacy loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The paper's formulas as printed.
    Paper,
    /// A guarantee that can be proved.
    Certified,
}

/// The allocators of a configuration, each with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AllocatorConfig {
    /// The same share for every round and device, fixed in advance.
    Uniform,
    /// A shared share that follows the norm of the global gradient (our reconstruction).
    Arb,
    /// The paper's: by training progress over time, by contribution over devices.
    Lapa(LapaConfig),
    /// The split over devices with the least total noise (basis paper only).
    OptimalSplit,
}

impl AllocatorConfig {
    /// The allocator for `rounds` of `devices`: of ε^T = `total` on the paper's basis, else of each
    /// device's own capacity.
    pub fn build(
        self,
        total: Option<f64>,
        rounds: u32,
        devices: u32,
    ) -> Result<Box<dyn Allocator>, AllocateError> {
        Ok(match (self, total) {
            (Self::Uniform, Some(total)) => Box::new(Uniform::paper(total, rounds, devices)?),
            (Self::Uniform, None) => Box::new(Uniform::certified(rounds)?),
            (Self::Arb, Some(total)) => Box::new(Arb::paper(total, rounds, devices)?),
            (Self::Arb, None) => Box::new(Arb::certified(rounds)?),
            (Self::Lapa(config), Some(total)) => {
                Box::new(Lapa::paper(total, rounds, devices, config)?)
            }
            (Self::Lapa(config), None) => Box::new(Lapa::certified(rounds, devices, config)?),
            (Self::OptimalSplit, Some(total)) => {
                Box::new(OptimalSplit::paper(total, rounds, devices)?)
            }
            (Self::OptimalSplit, None) => return Err(AllocateError::OnePot),
        })
    }
}

/// What the base station holds after a round: received values and public numbers only. Values
/// that are not finite were refused before.
#[derive(Clone, Copy, Debug)]
pub struct Transcript<'a> {
    /// Round t, from 1.
    pub round: u32,
    /// The devices of the round.
    pub devices: &'a [DeviceTranscript<'a>],
    /// Σ G_k·g̃_k
    pub global: &'a [f32],
}

/// What the base station holds of one device after a round.
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

/// What an allocator may know of a device when it decides; all of it public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Number k of the device, from 0.
    pub device: u32,
    /// What is left of the device's capacity, in the currency of its filter. Without meaning on
    /// the paper's basis.
    pub left: f64,
    /// G_k, as expected.
    pub weight: f64,
    /// Claimed Δs_k.
    pub sensitivity: f64,
}

/// What the devices of a round may spend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// For each device asked for: ε_k on the paper's basis, else a part of what is left in the
    /// filter's currency. No noise is large enough for 0: such a device must not send.
    pub shares: Vec<f64>,
    /// What the round may spend over all K devices (paper's basis).
    pub round_budget: Option<f64>,
    /// The PID-like error that the round's budget was decided with.
    pub pid_error: Option<f64>,
    /// For each device asked for, the smoothed angle that its share was decided with.
    pub angles: Vec<Option<f64>>,
}

impl Shares {
    /// Shares decided without error or angles.
    fn plain(shares: Vec<f64>, round_budget: Option<f64>) -> Self {
        let angles = vec![None; shares.len()];
        Self { shares, round_budget, pid_error: None, angles }
    }
}

/// Decides what devices may spend.
pub trait Allocator: Send {
    /// The shares of `asks` in `round`. Called once a round at most, in the order of rounds.
    fn allocate(&mut self, round: u32, asks: &[Ask]) -> Shares;

    /// Learns from a finished round.
    fn observe(&mut self, transcript: &Transcript<'_>, rng: &mut dyn Rng);

    /// Everything that later decisions depend on, apart from the settings.
    fn state(&self) -> AllocatorState;

    /// Goes back to a state of an allocator with the same settings: all later decisions are the
    /// same, bit by bit.
    fn restore(&mut self, state: AllocatorState) -> Result<(), AllocateError>;
}

/// What a checkpoint keeps of an allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AllocatorState {
    /// Everything but gradients. All numbers are finite.
    pub scalars: Scalars,
    /// Received global gradients, the oldest first.
    pub vectors: Vec<Vec<f32>>,
}

/// The part of a state that is not gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "allocator")]
pub enum Scalars {
    /// [`Uniform`] remembers nothing.
    Uniform,
    /// [`OptimalSplit`] remembers nothing.
    OptimalSplit,
    /// Of [`Arb`].
    Arb(ArbScalars),
    /// Of [`Lapa`].
    Lapa(LapaScalars),
}

impl Scalars {
    /// Refuses the state of another allocator.
    fn instead_of(&self, expected: &'static str) -> AllocateError {
        let found = match self {
            Self::Uniform => "uniform",
            Self::OptimalSplit => "optimal-split",
            Self::Arb(_) => "arb",
            Self::Lapa(_) => "lapa",
        };
        AllocateError::OtherAllocator { expected, found }
    }
}

/// Rounds to go at the start of round t: T − t + 1, but at least 1.
fn rounds_left(rounds: u32, round: u32) -> f64 {
    f64::from(rounds.saturating_sub(round)) + 1.0
}
