//! Stage 7: what a run reports.
//!
//! Every field is explained in docs/metrics.md.

mod error;
mod metrics;
pub mod number;
mod parquet;
mod quantiles;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

pub use error::ObserveError;
pub use metrics::{MetricsWriter, read_metrics};
pub use parquet::write_parquet;

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
    /// Wall-clock time of the round.
    #[serde(with = "number")]
    pub seconds: f64,
    /// Bytes the devices sent.
    pub uplink_bytes: u64,
    /// Bytes the base station sent.
    pub downlink_bytes: u64,
    /// The devices that took part, or quantiles over them.
    pub devices: DeviceRecords,
}

/// The `devices` field of a [`RoundRecord`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DeviceRecords {
    /// `observe.devices = "list"`
    List(Vec<DeviceRecord>),
    /// `observe.devices = "summary"`
    Summary(DeviceSummary),
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
                DeviceSummary::deserialize(MapAccessDeserializer::new(map))
                    .map(DeviceRecords::Summary)
            }
        }

        deserializer.deserialize_any(ListOrSummary)
    }
}

/// One device in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Device, from 0.
    pub device: u32,
    /// Samples the device holds, |D_k|.
    pub samples: u32,
    /// Aggregation weight G_k.
    #[serde(with = "number")]
    pub weight: f64,
    /// Euclidean norm of the upload before device-level clipping.
    #[serde(with = "number")]
    pub gradient_norm: f64,
    /// Share of what could be clipped that was: 0 or 1 for the upload, a fraction for samples.
    #[serde(with = "number")]
    pub clipped: f64,
}

/// Quantiles over the devices of a round; null when no device took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Devices that took part.
    pub count: u32,
    /// Samples a device holds.
    pub samples: Option<Quantiles>,
    /// Aggregation weight.
    pub weight: Option<Quantiles>,
    /// Norm of the upload.
    pub gradient_norm: Option<Quantiles>,
    /// Share clipped.
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
