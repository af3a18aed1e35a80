//! What one experiment is made of, checked and complete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A complete, checked experiment: every key has its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// Which defaults the other keys had.
    pub profile: Profile,
    /// `[run]`
    pub run: Run,
    /// `[data]`
    pub data: Data,
    /// `[partition]`
    pub partition: PartitionSpec,
    /// `[model]`
    pub model: ModelSpec,
    /// `[learn]`
    pub learn: Learn,
    /// `[observe]`
    pub observe: Observe,
}

/// Sets the defaults of other keys and nothing else; explicit keys win.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Per-sample clipping, group norm.
    #[default]
    Certified,
    /// The paper's printed choices: device-level clipping, batch norm.
    Paper,
}

/// `[run]`: how long, with which seed, on how many threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Number of communication rounds T.
    pub rounds: u32,
    /// Seed of every random stream.
    pub seed: u64,
    /// Worker threads; 0 means one per core. Results do not depend on it.
    pub threads: usize,
    /// Share of the devices that take part in a round, in (0, 1].
    pub participation: f64,
    /// Evaluate on the test set every so many rounds (and always after the last).
    pub evaluate_every: u32,
    /// Write a checkpoint every so many rounds.
    pub checkpoint_every: u32,
}

/// `[data]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Data {
    /// The data set: `mnist`, `fashion-mnist`, `synthetic` or `idx:PATH`.
    pub name: crate::data::DataName,
}

/// `[partition]`: who holds which samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartitionSpec {
    /// The scheme.
    pub scheme: Scheme,
    /// Number of devices K.
    pub devices: u32,
    /// `mix`: how many devices hold all labels equally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iid: Option<u32>,
    /// `mix`: how many devices hold only a few labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_iid: Option<u32>,
    /// `mix`: fewest and most labels of a non-IID device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<[u32; 2]>,
    /// `mix`: fewest and most samples of an IID device. `iid` scheme too, when given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iid_samples: Option<[u32; 2]>,
    /// `mix`: fewest and most samples of a non-IID device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_iid_samples: Option<[u32; 2]>,
    /// `dirichlet`: concentration of the label shares; small means heterogeneous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concentration: Option<f64>,
    /// `shards`: label-sorted shards dealt to each device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
}

/// How the training set is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// x IID devices and y devices with few labels: the paper's scheme.
    #[default]
    Mix,
    /// Label shares per device drawn from a Dirichlet distribution.
    Dirichlet,
    /// The label-sorted training set cut into shards, a few dealt to each device.
    Shards,
    /// Every device holds an equal share of a shuffled training set.
    Iid,
}

/// `[model]`
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelSpec {
    /// The architecture.
    pub name: ModelName,
    /// The normalisation layer.
    pub norm: Norm,
}

/// The built-in models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// The paper's convolutional network.
    #[default]
    Cnn,
    /// One hidden layer of 100 units.
    Mlp,
    /// Multinomial logistic regression.
    Logistic,
}

/// The normalisation layer of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Batch norm, as in the paper; not with per-sample clipping.
    Batch,
    /// Group norm (4 groups).
    Group,
    /// No normalisation.
    None,
}

/// `[learn]`: what a device computes in a round, and what the server does with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Learn {
    /// What a device uploads.
    pub update: Update,
    /// Batch size as a share of the device's samples, in (0, 1].
    pub batch_fraction: f64,
    /// Learning rate λ.
    pub learning_rate: f64,
    /// Server momentum, in [0, 1).
    pub momentum: f64,
    /// What is clipped.
    pub clip: Clip,
    /// Clipping norm C. Absent when nothing is clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
}

/// What a device uploads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// One minibatch gradient per round.
    #[default]
    Gradient,
    /// One pass over the local data; uploads (w₀ − w)/λ.
    Epoch,
}

/// What is clipped to the norm C.
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

/// `[observe]`: what is recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Observe {
    /// Devices in the metrics.
    pub devices: ObserveDevices,
}

/// How devices appear in the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObserveDevices {
    /// One entry per device.
    #[default]
    List,
    /// Quantiles over the devices, for runs with many of them.
    Summary,
}
