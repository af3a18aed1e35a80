//! `[control]`: noise of the channel in place of artificial noise, and transmit powers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults;
use crate::optimize::{BuildOptimizer, Optimizers, PowerChoice};
use crate::partition::Scheme;
use crate::radio::settings::Transmit;

/// Channel noise in place of artificial noise, and the power of each device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Control {
    /// Artificial noise beside the channel's. All but always need privacy.channel_trust above 0.
    pub noise: NoiseControl,
    /// Source of the devices' transmit powers. Powers are optimized after a pilot run.
    pub power: PowerChoice,
    /// The most that all devices together may send with, in watts. Default: for each device 0.075,
    /// or transmit.max_power_w if that is less.
    #[schemars(range(min = 1e-12, max = 1e9))]
    pub total_power_w: f64,
    /// The least that all devices together send with, in watts. Default: a hundredth of
    /// total_power_w.
    #[schemars(range(min = 0, max = 1e9))]
    pub least_power_w: f64,
    /// Data of the pilot.
    pub pilot: Pilot,
    /// Pilots whose mean powers are fitted to: with one, they fit its accidents too. Pilots share
    /// devices, records and links, and have other noise.
    #[schemars(range(min = 1, max = 100))]
    pub pilots: u32,
    /// Judge of powers.
    pub evaluation: EvaluationChoice,
    /// Form of the convergence bound by which powers are judged.
    pub bound: BoundForm,
    /// Smoothness L of the loss, for the bound. `lapa bound` estimates it. It must not follow from
    /// private data.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub smoothness: f64,
    /// Strong convexity mu of the loss, for the bound; as smoothness.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub convexity: f64,
    /// Dissimilarity delta of the devices, for the bound; as smoothness.
    #[schemars(range(min = 1, max = 1e6))]
    pub dissimilarity: f64,
    /// Parameters of the optimizers.
    #[serde(flatten)]
    pub optimizers: Optimizers,
}

impl Default for Control {
    /// L and μ as `lapa bound` finds them (with F* = 0) for the CNN at λ = 0.01 (docs/guide.md).
    /// δ = 1 is enough for full gradients; with the δ that it finds the bound says nothing.
    fn default() -> Self {
        let devices = Scheme::default().devices();
        let total_power_w = defaults::total_power_w(devices, Transmit::default().max_power_w);
        Self {
            noise: NoiseControl::default(),
            power: PowerChoice::default(),
            total_power_w,
            least_power_w: defaults::least_power_w(total_power_w),
            pilot: Pilot::default(),
            pilots: 1,
            evaluation: EvaluationChoice::default(),
            bound: BoundForm::default(),
            smoothness: 45.0,
            convexity: 0.3,
            dissimilarity: 1.0,
            optimizers: Optimizers::default(),
        }
    }
}

/// Devices with a fitted power, at most: numbers of up to 28 characters in a file of 8 MiB.
pub const MOST_FITTED: u32 = 250_000;
/// Rounds times devices of a pilot, at most.
pub const MOST_CELLS: u64 = 10_000_000;
/// Bytes of a round and device of a pilot: its record, and its numbers in trace and problem.
const CELL_BYTES: u64 = 256;

/// A run that is recorded round by round and device by device, and is too large for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`run.rounds` = {rounds} with {devices} devices: each round and device is recorded for a pilot, \
     which makes {} records of about {:.1} GB; the limit is {MOST_CELLS} ({:.1} GB): lower run.rounds or the \
     number of devices",
    self.cells(),
    gigabytes(self.cells()),
    gigabytes(MOST_CELLS)
)]
pub struct PilotTooLarge {
    /// Rounds.
    pub rounds: u32,
    /// Devices.
    pub devices: u32,
}

impl PilotTooLarge {
    /// Refuses a pilot of more than [`MOST_CELLS`].
    pub fn check(rounds: u32, devices: u32) -> Result<(), Self> {
        let pilot = Self { rounds, devices };
        if pilot.cells() > MOST_CELLS { Err(pilot) } else { Ok(()) }
    }

    fn cells(&self) -> u64 {
        u64::from(self.rounds) * u64::from(self.devices)
    }
}

fn gigabytes(cells: u64) -> f64 {
    (cells * CELL_BYTES) as f64 / 1e9
}

impl Control {
    /// P_max/K, or P_0 (`most_w`) where that is less: what all devices send with unless powers are
    /// given or optimized. (`equal` and `full` differ only in how they get there.)
    pub fn average_power_w(&self, devices: u32, most_w: f64) -> f64 {
        (self.total_power_w / f64::from(devices)).min(most_w)
    }

    /// True if powers are fitted to the results of a pilot run.
    pub fn needs_pilot(&self) -> bool {
        self.optimizers.get(self.power).is_some_and(BuildOptimizer::needs_pilot)
    }
}

/// Artificial noise beside the channel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseControl {
    /// Artificial noise in every round, whatever the channel adds.
    #[default]
    Always,
    /// Artificial noise in full until the channel's suffices, then the channel's alone (the paper).
    Switch(SwitchConfig),
    /// Artificial noise adds only what the channel's noise lacks.
    TopUp,
}

/// Parameters of noise switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchConfig {
    /// Rule by which the channel's noise suffices.
    pub rule: SwitchRule,
}

/// Rule by which the channel's noise suffices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchRule {
    /// By the sum over the devices, every round anew. It leaves single devices with too little noise,
    /// so it must be asked for.
    Sum,
    /// As sum, and once the required noise has fallen to the channel's, artificial noise never returns:
    /// the paper's one T_th, eq. (23).
    SumLatched,
    /// For each device by itself, in each round.
    #[default]
    PerDevice,
}

impl NoiseControl {
    /// True where the sum over the devices decides.
    pub fn goes_by_sum(self) -> bool {
        matches!(self, Self::Switch(switch) if switch.rule != SwitchRule::PerDevice)
    }
}

/// Data of the pilot of an optimized power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pilot {
    /// Digits drawn by code: no privacy is spent.
    #[default]
    Synthetic,
    /// The devices' own data: what the pilot releases is charged like the run's own releases. On
    /// basis paper, which enforces no budget, it is recorded, and counts in the proven epsilon.
    Private(PrivatePilot),
}

/// Parameters of a private pilot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrivatePilot {
    /// Fraction of each device's budget that the pilot may spend.
    #[schemars(range(min = 0.02, max = 0.9))]
    pub budget_fraction: f64,
}

impl Default for PrivatePilot {
    fn default() -> Self {
        Self { budget_fraction: 0.1 }
    }
}

/// Judge of a power allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvaluationChoice {
    /// With the noise that one pilot asked for: microseconds.
    #[default]
    Trace,
    /// By training with these powers, each time: as the paper's environment does.
    Live,
}

/// A form of the paper's Theorem 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoundForm {
    /// Late noise weighs most, as follows from the recursion.
    #[default]
    Corrected,
    /// As printed: early noise weighs most.
    Printed,
}
