//! `[control]`, checked and complete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[control]`: when channel noise stands in for artificial noise, and how much power each device
/// spends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Control {
    /// What artificial noise does beside the channel's.
    pub noise: NoiseControl,
    /// `switch`: when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch_rule: Option<SwitchRule>,
    /// Where the devices' transmit powers come from.
    pub power: PowerChoice,
    /// The most that all devices together send with, P_max.
    pub total_power_w: f64,
    /// The least that all devices together send with, P_min.
    pub least_power_w: f64,
    /// What the pilot of an optimized power trains on.
    pub pilot: Pilot,
    /// `private` pilot: its share of each device's budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pilot_share: Option<f64>,
    /// How a power allocation is judged.
    pub evaluation: EvaluationChoice,
    /// Which form of the convergence bound it is judged by.
    pub bound: BoundForm,
    /// L of the bound.
    pub smoothness: f64,
    /// μ of the bound.
    pub convexity: f64,
    /// δ of the bound.
    pub dissimilarity: f64,
    /// Evaluations of CMA-ES.
    pub evaluations: u32,
    /// Episodes of DDPG.
    pub episodes: u32,
    /// Steps of an episode.
    pub steps: u32,
    /// Width of the two hidden layers of DDPG's networks.
    pub hidden: u32,
    /// Transitions in a batch of DDPG.
    pub batch: u32,
    /// Discount factor of DDPG, the paper's Υ.
    pub discount: f64,
    /// Soft update τ of DDPG's target networks.
    pub soft_update: f64,
    /// Learning rate of DDPG's actor.
    pub actor_rate: f64,
    /// Learning rate of DDPG's critic.
    pub critic_rate: f64,
}

impl Control {
    /// P_max/K, or P_0 (`most_w`) where that is less: what all devices send with unless powers are
    /// given or optimized. (`equal` and `full` differ only in how they get there.)
    pub fn average_power_w(&self, devices: u32, most_w: f64) -> f64 {
        (self.total_power_w / f64::from(devices)).min(most_w)
    }
}

/// What artificial noise does beside the channel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseControl {
    /// Artificial noise in every round, whatever the channel adds.
    #[default]
    Always,
    /// Artificial noise in full until the channel's suffices, then the channel's alone (the paper).
    Switch,
    /// Only as much artificial noise as the channel's leaves wanting.
    TopUp,
}

/// When the channel's noise suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchRule {
    /// When the sum over the devices does: as printed. It leaves single devices with too little.
    Sum,
    /// For each device by itself, in each round.
    PerDevice,
}

/// Where the devices' transmit powers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PowerChoice {
    /// transmit.power_w: no pilot, nothing is optimized.
    #[default]
    File,
    /// The same for all: total_power_w over the number of devices.
    Equal,
    /// transmit.max_power_w for all, scaled down to total_power_w.
    Full,
    /// In proportion to weight over channel gain, after a pilot.
    ClosedForm,
    /// The best that CMA-ES finds, after a pilot.
    CmaEs,
    /// The best that DDPG finds, after a pilot (the paper).
    Ddpg,
}

impl PowerChoice {
    /// Whether powers are fitted to what a pilot run leaves.
    pub fn needs_pilot(self) -> bool {
        match self {
            Self::File | Self::Equal | Self::Full => false,
            Self::ClosedForm | Self::CmaEs | Self::Ddpg => true,
        }
    }
}

/// What the pilot of an optimized power trains on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pilot {
    /// Digits drawn by code: no privacy is spent.
    #[default]
    Synthetic,
    /// The devices' own data: what the pilot releases is charged like the run's own releases.
    Private,
}

/// How a power allocation is judged.
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
