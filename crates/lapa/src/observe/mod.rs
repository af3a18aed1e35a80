//! Records of a run: metrics by round and device.
//!
//! Every field is explained in docs/metrics.md.

pub mod device_accuracy;
mod error;
mod metrics;
pub mod number;
mod quantiles;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use device_accuracy::{DeviceAccuracy, OneDevice};
pub use error::{Cancelled, ObserveError};
pub use metrics::{MetricsWriter, for_each_line, read_metrics};

/// One line of metrics.jsonl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Round, from 1.
    pub round: u32,
    /// Test accuracy in [0, 1]; null in rounds without evaluation.
    #[serde(with = "number::optional")]
    pub accuracy: Option<f64>,
    /// Mean test loss; null in rounds without evaluation.
    #[serde(with = "number::optional")]
    pub loss: Option<f64>,
    /// `e^[t]`, the PID-like error that the round's budget was decided with (allocator lapa).
    #[serde(with = "number::optional")]
    pub pid_error: Option<f64>,
    /// `ε^[t]`, the round's budget over all devices (basis paper).
    #[serde(with = "number::optional")]
    pub epsilon_round: Option<f64>,
    /// Source of the round's noise; null if there was none.
    pub noise_mode: Option<NoiseMode>,
    /// Devices with less noise than their cost asks for (control.switch.rule = "sum").
    pub under_noised: u32,
    /// The largest σ_required/σ among them.
    #[serde(with = "number::optional")]
    pub under_noising: Option<f64>,
    /// Wall-clock time of the round.
    #[serde(with = "number")]
    pub seconds: f64,
    /// Number of devices that skipped the round because of a weak link.
    pub outages: u32,
    /// Time for which the radio channel was busy.
    #[serde(with = "number")]
    pub airtime_s: f64,
    /// Energy that all devices together radiated, at most.
    #[serde(with = "number")]
    pub energy_j: f64,
    /// Bytes the devices sent.
    pub uplink_bytes: u64,
    /// Bytes the base station sent.
    pub downlink_bytes: u64,
    /// The devices that took part, or quantiles over them.
    pub devices: DeviceRecords,
}

/// Source of a round's noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseMode {
    /// Every device added all the noise that its cost asks for.
    Artificial,
    /// Some added none, or only a part, and left the rest to the channel.
    Mixed,
    /// No device added any: the channel's noise is all there is.
    Channel,
}

/// The `devices` field of a [`RoundRecord`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DeviceRecords {
    /// `observe.devices = "list"`
    List(Vec<DeviceRecord>),
    /// `observe.devices = "summary"`
    Summary(Box<DeviceSummary>),
}

impl DeviceRecords {
    /// Quantiles over the devices.
    pub fn summary(&self) -> DeviceSummary {
        match self {
            Self::List(list) => DeviceSummary::of(list),
            Self::Summary(summary) => (**summary).clone(),
        }
    }
}

/// By hand, because serde's own reader of untagged enums hides which field is wrong.
impl<'de> Deserialize<'de> for DeviceRecords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrSummary;

        impl<'de> Visitor<'de> for ListOrSummary {
            type Value = DeviceRecords;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a list of devices or quantiles over them")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<DeviceRecords, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(DeviceRecords::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DeviceRecords, A::Error> {
                Box::deserialize(MapAccessDeserializer::new(map)).map(DeviceRecords::Summary)
            }
        }

        deserializer.deserialize_any(ListOrSummary)
    }
}

/// One device in one round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Device, from 0.
    pub device: u32,
    /// Samples the device holds, |D_k|; n̂ where that is not public.
    pub samples: u32,
    /// Aggregation weight G_k.
    #[serde(with = "number")]
    pub weight: f64,
    /// ε of this release: as claimed on basis paper, of the release by itself on certified.
    #[serde(with = "number")]
    pub epsilon: f64,
    /// Standard deviation of the artificial noise on each coordinate.
    #[serde(with = "number")]
    pub sigma_artificial: f64,
    /// Standard deviation of the noise, of whatever source, that the device's cost
    /// asks for.
    #[serde(with = "number")]
    pub sigma_required: f64,
    /// The paper's sum of epsilons so far.
    #[serde(with = "number")]
    pub spent_claimed: f64,
    /// Proven ε of the releases so far.
    #[serde(with = "number")]
    pub spent_provable: f64,
    /// Smoothed angle to the global gradient that the cost was decided with (allocator lapa).
    #[serde(with = "number::optional")]
    pub angle: Option<f64>,
    /// Signal to interference and noise at the base station in dB; ∞ without radio.
    #[serde(with = "number")]
    pub sinr_db: f64,
    /// Symbol error rate at that SINR.
    #[serde(with = "number")]
    pub ser: f64,
    /// True if the device was told to send; else weight, epsilon and noise are 0.
    pub selected: bool,
    /// Standard deviation of the receiver's noise on each coordinate (uplink analog).
    #[serde(with = "number")]
    pub sigma_channel: f64,
    /// Euclidean norm of the upload before device-level clipping and noise. Not observable by the
    /// base station; absent with the operating system's entropy.
    #[serde(default, with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// Share of what could be clipped that was: 0 or 1 for the upload, a fraction for samples. Not
    /// observable; absent with the operating system's entropy.
    #[serde(default, with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub clipped: Option<f64>,
}

/// Numbers of a raw update that only a simulation can show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Insight {
    /// Euclidean norm before device-level clipping.
    pub norm: f64,
    /// Fraction of what could be clipped that was.
    pub clipped: f64,
}

/// Quantiles over the devices of a round; null when no device took part. Links are those of all
/// devices, the rest is of those that sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Devices that sent.
    pub count: u32,
    /// Samples a device holds.
    pub samples: Option<Quantiles>,
    /// Aggregation weight.
    pub weight: Option<Quantiles>,
    /// ε of the releases.
    pub epsilon: Option<Quantiles>,
    /// Artificial noise.
    pub sigma_artificial: Option<Quantiles>,
    /// Noise asked for.
    pub sigma_required: Option<Quantiles>,
    /// The paper's sums of epsilons.
    pub spent_claimed: Option<Quantiles>,
    /// Spent ε, proven.
    pub spent_provable: Option<Quantiles>,
    /// Smoothed angles.
    pub angle: Option<Quantiles>,
    /// SINR in dB.
    pub sinr_db: Option<Quantiles>,
    /// Symbol error rate.
    pub ser: Option<Quantiles>,
    /// Noise of the receiver.
    pub sigma_channel: Option<Quantiles>,
    /// Norm of the upload; not observable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<Quantiles>,
    /// Share clipped; not observable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clipped: Option<Quantiles>,
}

/// Minimum, quartiles and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Smallest value.
    #[serde(with = "number")]
    pub min: f64,
    /// Lower quartile.
    #[serde(with = "number")]
    pub q25: f64,
    /// Median.
    #[serde(with = "number")]
    pub median: f64,
    /// Upper quartile.
    #[serde(with = "number")]
    pub q75: f64,
    /// Largest value.
    #[serde(with = "number")]
    pub max: f64,
}
