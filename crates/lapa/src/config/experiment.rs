//! An experiment: its sections, checked and complete.

use std::path::PathBuf;

use super::control::Control;
use super::defaults;
use super::privacy::Privacy;
use super::radio::{Aggregate, Radio, Transmit};
use crate::data::{CLASSES, DataName};
use crate::partition::Scheme;
use lapa_privacy::Sampling;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most rounds: metrics and plots have a line and a point for each.
const MOST_ROUNDS: u32 = 1_000_000;

/// An experiment of lapa: private federated learning over wireless links.
///
/// It is complete and checked: every key has its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "lapa experiment")]
pub struct Experiment {
    /// Source of the defaults of other keys. Keys that are given win over it.
    pub profile: Profile,
    /// Length of the run, its seed, its threads and its ledger.
    pub run: Run,
    /// The data set.
    pub data: Data,
    /// Division of the training set over the devices.
    pub partition: PartitionSpec,
    /// The model.
    pub model: ModelSpec,
    /// Local computation of a device in a round, and the server's step.
    pub learn: Learn,
    /// Noise that hides a record, and the guarantee that it gives. Without this section there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// Places of the devices, and the channel between them and the base station. `lapa link` shows
    /// the links.
    pub radio: Radio,
    /// Transmission of updates, its power and its receiver.
    pub transmit: Transmit,
    /// Selection of devices, and their weights.
    pub aggregate: Aggregate,
    /// Channel noise in place of artificial noise, and the power of each device. `lapa power`
    /// compares ways to choose powers, `lapa bound` shows the bound by which they are judged.
    pub control: Control,
    /// Contents of the metrics.
    pub observe: Observe,
}

/// Sets the defaults of other keys and nothing else; explicit keys win.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Choices with a proof: per-sample clipping, group norm, basis certified.
    #[default]
    Certified,
    /// The paper's system in the forms that work: device-level clipping, batch norm, basis paper.
    Paper,
    /// As paper, and every formula as it is printed: experiments/paper/printed.toml.
    Printed,
}

/// Length of the run, its seed, its threads and its ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// Communication rounds T.
    #[schemars(range(min = 1, max = MOST_ROUNDS))]
    pub rounds: u32,
    /// Seed of every random choice; the same seed gives the same run.
    pub seed: u64,
    /// Seed of the first model, batches, noise and channel errors. Default: seed. Runs that differ in
    /// it alone have the same devices, records and links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [1]))]
    pub training_seed: Option<u64>,
    /// Worker threads; 0 means one per core. Results do not depend on it.
    #[schemars(range(max = 1024))]
    pub threads: usize,
    /// Fraction of the devices that take part in a round.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub participation: f64,
    /// Rounds between evaluations on the test set; the last round is always evaluated.
    #[schemars(range(min = 1))]
    pub evaluate_every: u32,
    /// Rounds between checkpoints.
    #[schemars(range(min = 1))]
    pub checkpoint_every: u32,
    /// Source of noise and batches.
    pub entropy: Entropy,
    /// File that records every release; runs on the same data that share it share the budget.
    /// Default: ledger.db in the run's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["PATH"]))]
    pub ledger: Option<PathBuf>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            rounds: 150,
            seed: 0,
            training_seed: None,
            threads: 0,
            participation: 1.0,
            evaluate_every: 5,
            checkpoint_every: 10,
            entropy: Entropy::Seed,
            ledger: None,
        }
    }
}

impl Run {
    /// The seed of the first model, batches, noise and channel errors.
    pub fn training_seed(&self) -> u64 {
        self.training_seed.unwrap_or(self.seed)
    }
}

/// The data set.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The data set. synthetic is drawn by code, idx:PATH is a folder of IDX files.
    #[schemars(with = "String", extend(
        "pattern" = "^(mnist|fashion-mnist|synthetic|idx:.+)$",
        "examples" = ["mnist", "fashion-mnist", "synthetic", "idx:PATH"]
    ))]
    pub name: DataName,
    /// Data idx:PATH: number of classes; labels are below it. Default: the largest label of the
    /// test set, which is public, and one more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 256), extend("examples" = [CLASSES]))]
    pub classes: Option<u32>,
}

/// Division of the training set over the devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionSpec {
    /// Scheme by which the training set is divided.
    pub scheme: Scheme,
}

/// The model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSpec {
    /// The architecture.
    pub name: ModelName,
    /// The normalization layer. The default follows profile; mlp and logistic have none.
    pub norm: Norm,
    /// The parameters that training starts from. Not in the paper.
    pub start: Start,
}

impl Default for ModelSpec {
    fn default() -> Self {
        let (name, start) = Default::default();
        Self { name, norm: defaults::norm(Profile::default(), name), start }
    }
}

/// Start of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Random parameters.
    #[default]
    Random,
    /// The base station first trains on digits drawn by code, which are public: no privacy is
    /// spent. Not with data.name = "synthetic", which are these digits.
    Digits,
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

/// The normalization layer of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Batch norm, as in the paper; not with per-sample clipping.
    Batch,
    /// Group norm (4 groups).
    Group,
    /// No normalization.
    None,
}

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
    /// Vector that is clipped to clip_norm. The default follows profile.
    pub clip: Clip,
    /// Clipping norm C; not with clip = "none". The default follows clip, update, local_epochs and
    /// batch_fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1e-6, max = 1e12))]
    pub clip_norm: Option<f64>,
}

impl Default for Learn {
    /// That of the default profile, without privacy.
    fn default() -> Self {
        let (clip, update) = (defaults::clip(Profile::default()), Update::default());
        let sampling = defaults::sampling(None, update);
        let batch_fraction = defaults::batch_fraction(sampling);
        Self {
            update,
            local_epochs: 1,
            sampling,
            batch_fraction,
            learning_rate: defaults::learning_rate(&DataName::default(), clip, update),
            momentum: defaults::momentum(update),
            averaging: defaults::averaging(clip, false),
            clip,
            clip_norm: defaults::clip_norm(clip, update, batch_fraction, 1),
        }
    }
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

/// Source of noise and batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entropy {
    /// The run's seed: a simulation, no guarantee against anyone who knows the seed.
    #[default]
    Seed,
    /// The operating system: real releases, which no seed repeats.
    Os,
}

/// Contents of the metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// Form of the devices in the metrics. Default: a list; a summary where a hundred or more take part
    /// in a round.
    pub devices: ObserveDevices,
}

/// Form of the devices in the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ObserveDevices {
    /// One entry per device.
    #[default]
    List,
    /// Quantiles over the devices, for runs with many of them.
    Summary,
}
