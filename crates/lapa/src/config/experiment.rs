//! An experiment: its sections, checked and complete.

use std::path::PathBuf;

use super::aggregate::Aggregate;
use super::control::Control;
use super::privacy::Privacy;
use crate::data::{Data, Dataset, Inputs};
use crate::device::{Batches, Learn, NoiseError, grid};
use crate::model::ModelSpec;
use crate::partition::{Partition, PartitionError, Scheme, Skew, deal};
use crate::radio::settings::{Radio, Transmit};
use crate::radio::{Selector, Setting};
use crate::seed::{Draws, Entropy};
use lapa_privacy::sampler::Grid;
use lapa_privacy::{Adjacency, NoiseKind};
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

/// Devices of a round from which on they are many: metrics have quantiles in place of lists, and a
/// transcript that nobody reads is not kept.
pub(crate) const MANY_DEVICES: usize = 100;

/// The parts of a run, as the experiment sets them.
impl Experiment {
    /// The data that it trains on.
    pub fn inputs(&self) -> Inputs {
        Inputs { data: self.data.clone(), features: self.model.feature_map() }
    }

    /// The training set divided over devices that have no record in common, its features skewed.
    pub fn deal(&self, data: &mut Dataset) -> Result<Partition, PartitionError> {
        deal(&*self.partition.scheme, self.partition.skew(), data, self.run.seed)
    }

    /// The setting of its radio.
    pub fn setting(&self) -> Setting<'_> {
        let Self { radio, transmit, aggregate, .. } = self;
        let selector = Selector {
            threshold: aggregate.threshold,
            below_threshold: aggregate.below_threshold,
            none_selected: aggregate.none_selected,
        };
        let devices = self.partition.scheme.devices();
        Setting { radio, transmit, selector, devices, seed: self.run.seed }
    }

    /// Source of what devices and channels draw in rounds.
    pub(crate) fn draws(&self) -> Draws {
        Draws { entropy: self.run.entropy, seed: self.run.training_seed() }
    }

    /// Batches of a device of `public_samples`.
    pub fn batches(&self, public_samples: u32) -> Batches {
        Batches {
            sampling: self.learn.sampling,
            public_samples,
            zero_if_not_finite: self.is_certified(),
            keeps_places: self.adjacency() != Adjacency::AddRemove,
        }
    }

    /// The grid of discrete noise; `None` for other noise.
    pub fn grid(&self) -> Result<Option<Grid>, NoiseError> {
        let clip_norm =
            self.learn.clip_norm.filter(|_| self.noise() == NoiseKind::DiscreteGaussian);
        clip_norm.map(grid).transpose()
    }

    /// Devices of a round, out of `all`.
    pub fn taking_part(&self, all: usize) -> usize {
        ((self.run.participation * all as f64).round() as usize).clamp(1, all.max(1))
    }
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
    /// First round that may be evaluated. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("examples" = [100]))]
    pub evaluate_from: Option<u32>,
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
            evaluate_from: None,
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

    /// True for a round whose model is evaluated.
    pub fn is_evaluated(&self, round: u32) -> bool {
        let is_late = self.evaluate_from.is_none_or(|first| round >= first);
        round == self.rounds || is_late && round.is_multiple_of(self.evaluate_every)
    }
}

/// Division of the training set over the devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PartitionSpec {
    /// Scheme by which the training set is divided.
    pub scheme: Scheme,
    /// Feature skew: each device turns its images by an angle of its own, uniform from minus to plus this
    /// many degrees. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 180), extend("examples" = [45.0]))]
    pub rotation: Option<f64>,
    /// Feature skew: standard deviation of the noise on the values of the last device; that of device k of
    /// K is k/K of it. 1 is the range of a byte. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10), extend("examples" = [0.3]))]
    pub noise: Option<f64>,
}

impl PartitionSpec {
    /// Feature skew.
    pub fn skew(&self) -> Skew {
        Skew { rotation: self.rotation, noise: self.noise }
    }
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
