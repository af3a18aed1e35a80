//! Stage 7: what a run reports.

use serde::{Deserialize, Serialize};

/// One line of metrics.jsonl.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// Round, from 1.
    pub round: u32,
    /// Test accuracy in [0, 1]; null in rounds without evaluation.
    pub accuracy: Option<f64>,
    /// Mean test loss; null in rounds without evaluation.
    pub loss: Option<f64>,
    /// Wall-clock time of the round.
    pub seconds: f64,
    /// Bytes the devices sent.
    pub uplink_bytes: u64,
    /// Bytes the base station sent.
    pub downlink_bytes: u64,
    /// The devices that took part, or quantiles over them.
    pub devices: DeviceRecords,
}

/// The `devices` field of a [`RoundRecord`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DeviceRecords {
    /// `observe.devices = "list"`
    List(Vec<DeviceRecord>),
    /// `observe.devices = "summary"`
    Summary(DeviceSummary),
}

/// One device in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Device, from 0.
    pub device: u32,
    /// Samples the device holds, |D_k|.
    pub samples: u32,
    /// Aggregation weight G_k.
    pub weight: f64,
    /// Euclidean norm of the upload before device-level clipping.
    pub gradient_norm: f64,
    /// Share of what could be clipped that was: 0 or 1 for the upload, a fraction for samples.
    pub clipped: f64,
}

/// Quantiles over the devices of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Devices that took part.
    pub count: u32,
    /// Samples a device holds.
    pub samples: Quantiles,
    /// Aggregation weight.
    pub weight: Quantiles,
    /// Norm of the upload.
    pub gradient_norm: Quantiles,
    /// Share clipped.
    pub clipped: Quantiles,
}

/// Minimum, quartiles and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Smallest value.
    pub min: f64,
    /// Lower quartile.
    pub q25: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub q75: f64,
    /// Largest value.
    pub max: f64,
}
