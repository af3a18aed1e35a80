//! `[learn]`: local computation.

use lapa_privacy::Sampling;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Local computation of a device in a round, and the server's step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Learn {
    /// Upload of a device.
    pub update: Update,
    /// Passes over a device's samples in a round; more than 1 only with update = "epoch".
    #[schemars(range(min = 1, max = 1000))]
    pub local_epochs: u32,
    /// Draw of a device's batches. The default follows privacy and update.
    pub sampling: BatchSampling,
    /// Batch size as a fraction of the device's samples. The default follows sampling.
    #[schemars(range(min = 1e-6, max = 1))]
    pub batch_fraction: f64,
    /// Learning rate. The default follows data.name, clip and update.
    #[schemars(range(min = 1e-12))]
    pub learning_rate: f64,
    /// Server momentum. The default follows update.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub momentum: f64,
    /// Averaging of the global models of about the last 1/(1 - averaging) rounds, for evaluation; 0
    /// means the latest alone. It costs no privacy. The default follows privacy.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub averaging: f64,
    /// Weight decay: the base station adds weight_decay · w, the gradient of weight_decay·‖w‖²/2, to the
    /// gradient of every round. It reads no record, so it costs no privacy. Not in the paper.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1), extend("default" = 0.0))]
    pub weight_decay: f64,
    /// Vector that is clipped to clip_norm. The default follows profile.
    pub clip: Clip,
    /// Clipping norm C; not with clip = "none". The default follows clip, update, local_epochs and
    /// batch_fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-6, max = 1e12))]
    pub clip_norm: Option<f64>,
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// Upload of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// One minibatch gradient per round.
    #[default]
    Gradient,
    /// Passes over the local data, one by default; uploads (w₀ − w)/λ.
    Epoch,
}

/// Vector that is clipped to the norm C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clip {
    /// Nothing.
    None,
    /// The device's upload.
    Device,
    /// Each sample's gradient.
    Sample,
}

/// Draw of a device's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BatchSampling {
    /// All samples.
    Full,
    /// The same number every round, without replacement.
    Fixed,
    /// Each sample by itself with probability learn.batch_fraction.
    Poisson,
}

impl BatchSampling {
    /// The same as an event declares it, with batches of `fraction`.
    pub fn declared(self, fraction: f64) -> Sampling {
        match self {
            Self::Full => Sampling::Full,
            Self::Fixed => Sampling::Fixed,
            Self::Poisson => Sampling::Poisson { rate: fraction },
        }
    }

    /// Denominator of the sum of a batch's clipped gradients, always a public number: n̂,
    /// b = n̂·fraction rounded, or b̄ = q·n̂.
    pub fn denominator(self, fraction: f64, public_samples: u32) -> f64 {
        let public = f64::from(public_samples);
        match self {
            Self::Full => public,
            Self::Fixed => (fraction * public).round().max(1.0),
            Self::Poisson => fraction * public,
        }
    }
}
