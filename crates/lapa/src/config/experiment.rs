//! What one experiment is made of, checked and complete.

use std::path::PathBuf;

use super::control::Control;
use super::radio::{Aggregate, Radio, Transmit};
use lapa_privacy::allocate::{Basis, PidError};
use lapa_privacy::{Adjacency, NoiseKind, Sampling};
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
    /// `[privacy]`
    pub privacy: Privacy,
    /// `[radio]`
    pub radio: Radio,
    /// `[transmit]`
    pub transmit: Transmit,
    /// `[aggregate]`
    pub aggregate: Aggregate,
    /// `[control]`
    pub control: Control,
    /// `[observe]`
    pub observe: Observe,
}

/// Sets the defaults of other keys and nothing else; explicit keys win.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// What can be proved: per-sample clipping, group norm, basis certified.
    #[default]
    Certified,
    /// The paper's printed choices: device-level clipping, batch norm, basis paper.
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Data {
    /// The data set: `mnist`, `fashion-mnist`, `synthetic` or `idx:PATH`.
    pub name: crate::data::DataName,
    /// `idx:PATH`: number of classes; that of the test labels where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<u32>,
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

impl PartitionSpec {
    /// The largest of the configured sizes; none where the configuration leaves them open.
    pub fn largest_samples(&self) -> Option<u32> {
        let largest = |range: Option<[u32; 2]>| range.map(|[_, max]| max);
        match self.scheme {
            Scheme::Mix => largest(self.iid_samples).max(largest(self.non_iid_samples)),
            _ => largest(self.iid_samples),
        }
    }

    /// The middle of the configured sizes, over all devices; none where the configuration leaves
    /// them open.
    pub fn middle_samples(&self) -> Option<u32> {
        let middle = |range: Option<[u32; 2]>| {
            range.map(|[min, max]| (f64::from(min) + f64::from(max)) / 2.0)
        };
        let middle = match (self.iid, self.non_iid) {
            (Some(iid), Some(non_iid)) => {
                let (a, b) = (middle(self.iid_samples)?, middle(self.non_iid_samples)?);
                (f64::from(iid) * a + f64::from(non_iid) * b) / f64::from(self.devices)
            }
            _ => middle(self.iid_samples)?,
        };
        Some(middle.round().max(1.0) as u32)
    }
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
    /// The normalization layer.
    pub norm: Norm,
    /// What training starts from.
    #[serde(default, skip_serializing_if = "Start::is_random")]
    pub start: Start,
}

/// What training starts from.
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

impl Start {
    fn is_random(&self) -> bool {
        *self == Self::Random
    }
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
    /// γ of the average of the latest models, in [0, 1); 0 means none.
    pub averaging: f64,
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

/// `[privacy]`: how much noise, by whose formulas, recorded where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Privacy {
    /// Which formulas set the noise.
    pub basis: Basis,
    /// Who gets how much of the budget when.
    pub allocator: AllocatorName,
    /// Total budget ε; absent without noise, or with `initial_sigma`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ
    pub delta: f64,
    /// σ₀ of a device of mean size in round 1, instead of ε.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_sigma: Option<f64>,
    /// How a device draws its batches.
    pub sampling: BatchSampling,
    /// What neighboring data sets are.
    pub adjacency: Adjacency,
    /// The distribution of the noise.
    pub noise: NoiseKind,
    /// Where noise and batches come from.
    pub entropy: Entropy,
    /// A ledger shared with other runs; absent: `ledger.db` in the run's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
    /// Share of each device's budget that this run may spend; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_share: Option<f64>,
    /// κ, the share of the channel noise's variance that is counted.
    pub channel_trust: f64,
    /// `lapa`: K_p
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_proportional: Option<f64>,
    /// `lapa`: K_s
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_integral: Option<f64>,
    /// `lapa`: m
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_window: Option<u32>,
    /// `lapa`: how a change of the global gradient is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid_error: Option<PidError>,
    /// `lapa`: β
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
}

/// Who gets how much of the budget when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AllocatorName {
    /// No noise: ε = ∞.
    None,
    /// The same share for every round and device, fixed in advance.
    Uniform,
    /// A shared share that follows the norm of the global gradient (our reconstruction).
    Arb,
    /// The paper's: by training progress over time, by contribution over devices.
    Lapa,
    /// The split over devices with the least total noise (basis paper only).
    OptimalSplit,
}

/// How a device draws its batches.
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

    /// What the sum of a batch's clipped gradients is divided by, always a public number: n̂,
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

/// Where noise and batches come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entropy {
    /// The run's seed: a simulation, no guarantee against whoever knows the seed.
    #[default]
    Seed,
    /// The operating system: real releases, which no seed repeats.
    Os,
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
