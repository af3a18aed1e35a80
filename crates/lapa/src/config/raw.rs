//! The configuration file as written: every key may be absent.
//!
//! These types are also the reference of the file. Their doc comments and ranges become the JSON
//! Schema, and from it come the check of single values, the error texts and the template.

use super::control::{BoundForm, EvaluationChoice, NoiseControl, Pilot, PowerChoice, SwitchRule};
use super::experiment::{
    AllocatorName, BatchSampling, Clip, Entropy, ModelName, Norm, ObserveDevices, Profile, Scheme,
    Start, Update,
};
use super::radio::{
    Access, Histograms, ModulationName, NoneSelected, RegionSpec, Rule, SymbolKind, UplinkName,
};
use crate::station::aggregate::GroundMetric;
use lapa_privacy::allocate::{Basis, PidError};
use lapa_privacy::{Adjacency, NoiseKind};
use lapa_wireless::fading::Fading;
use lapa_wireless::noma::Receiver;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// Most rounds: metrics and plots have a line and a point for each.
const MOST_ROUNDS: u32 = 1_000_000;
/// Most devices: each has a place, a channel and an account in the ledger.
pub(super) const MOST_DEVICES: u32 = 1_000_000;

/// An experiment of lapa: private federated learning over wireless links.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "lapa experiment")]
pub(super) struct RawExperiment {
    /// Which defaults other keys take. Keys that are given win over it.
    pub profile: Option<Profile>,
    /// How long the run is, with which seed, on how many threads.
    pub run: RawRun,
    /// The data set.
    pub data: RawData,
    /// Who holds which training samples.
    pub partition: RawPartition,
    /// What is trained.
    pub model: RawModel,
    /// What a device computes in a round, and how the server steps.
    pub learn: RawLearn,
    /// How much noise hides a record, what that is claimed and proved to be worth, and where it
    /// is recorded.
    pub privacy: RawPrivacy,
    /// Where the devices are, and what lies between them and the base station. `lapa link` shows
    /// what follows.
    pub radio: RawRadio,
    /// How updates are sent, with which power, and how they are decoded.
    pub transmit: RawTransmit,
    /// Whom the base station listens to, and with which weight.
    pub aggregate: RawAggregate,
    /// When channel noise stands in for artificial noise, and how much power each device spends.
    /// `lapa power` compares ways to choose powers, `lapa bound` shows what they are judged by.
    pub control: RawControl,
    /// What the metrics record.
    pub observe: RawObserve,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRun {
    /// Communication rounds.
    #[schemars(range(min = 1, max = MOST_ROUNDS))]
    pub rounds: Option<u32>,
    /// Seed of every random choice; the same seed gives the same run.
    pub seed: Option<u64>,
    /// Worker threads; 0 means one per core. Results do not depend on it.
    #[schemars(range(max = 1024))]
    pub threads: Option<u32>,
    /// Share of the devices that take part in a round.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub participation: Option<f64>,
    /// Evaluate on the test set every so many rounds, and always after the last.
    #[schemars(range(min = 1))]
    pub evaluate_every: Option<u32>,
    /// Write a checkpoint every so many rounds.
    #[schemars(range(min = 1))]
    pub checkpoint_every: Option<u32>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawData {
    /// The data set. synthetic is drawn by code, idx:PATH is a folder of IDX files.
    #[schemars(extend(
        "pattern" = "^(mnist|fashion-mnist|synthetic|idx:.+)$",
        "examples" = ["mnist", "fashion-mnist", "synthetic", "idx:PATH"]
    ))]
    pub name: Option<String>,
    /// Data idx:PATH: number of classes; labels are below it. Default: the largest label of the
    /// test set, which is public, and one more.
    #[schemars(range(min = 2, max = 256))]
    pub classes: Option<u32>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPartition {
    /// How the training set is split over the devices.
    pub scheme: Option<Scheme>,
    /// Number of devices. Scheme mix: the sum of iid and non_iid.
    #[schemars(range(min = 1, max = MOST_DEVICES))]
    pub devices: Option<u32>,
    /// Scheme mix: devices that hold all labels equally.
    #[schemars(range(max = MOST_DEVICES))]
    pub iid: Option<u32>,
    /// Scheme mix: devices that hold only a few labels.
    #[schemars(range(max = MOST_DEVICES))]
    pub non_iid: Option<u32>,
    /// Scheme mix: how many labels a non-IID device holds.
    pub labels: Option<RawRange>,
    /// Scheme mix: samples of an IID device. Scheme iid: samples of a device; the whole training
    /// set when absent.
    pub iid_samples: Option<RawRange>,
    /// Scheme mix: samples of a non-IID device.
    pub non_iid_samples: Option<RawRange>,
    /// Scheme dirichlet: concentration of the label shares; the smaller, the more uneven.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub concentration: Option<f64>,
    /// Scheme shards: label-sorted shards dealt to each device.
    #[schemars(range(min = 1))]
    pub shards: Option<u32>,
}

/// A number, or the smallest and the largest of a range.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RawRange {
    One(#[schemars(range(min = 1))] u32),
    Between(#[schemars(inner(range(min = 1)))] [u32; 2]),
}

impl From<RawRange> for [u32; 2] {
    fn from(range: RawRange) -> Self {
        match range {
            RawRange::One(number) => [number, number],
            RawRange::Between(pair) => pair,
        }
    }
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawModel {
    /// The architecture.
    pub name: Option<ModelName>,
    /// The normalization layer. The default follows profile; mlp and logistic have none.
    pub norm: Option<Norm>,
    /// What training starts from. Not in the paper.
    pub start: Option<Start>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLearn {
    /// What a device uploads.
    pub update: Option<Update>,
    /// Batch size as a share of the device's samples.
    #[schemars(range(min = 1e-6, max = 1))]
    pub batch_fraction: Option<f64>,
    /// Learning rate. The default follows data.name, clip and update.
    #[schemars(range(min = 1e-12))]
    pub learning_rate: Option<f64>,
    /// Server momentum. The default follows update.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub momentum: Option<f64>,
    /// Evaluate an average of the global models of about the last 1/(1 - averaging) rounds; 0 means
    /// the latest alone. It costs no privacy. The default follows privacy.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub averaging: Option<f64>,
    /// What is clipped to clip_norm. The default follows profile.
    pub clip: Option<Clip>,
    /// Clipping norm; not with clip = "none". The default follows clip, update and batch_fraction.
    #[schemars(range(min = 1e-6, max = 1e12))]
    pub clip_norm: Option<f64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPrivacy {
    /// Which formulas set the noise. The default follows profile.
    pub basis: Option<Basis>,
    /// Who gets how much of the budget when. Without epsilon and initial_sigma the default is
    /// none; with one of them it follows basis.
    pub allocator: Option<AllocatorName>,
    /// Total budget: of each device on basis certified, of all devices together on basis paper.
    #[schemars(range(min = 1e-3, max = 1e6))]
    pub epsilon: Option<f64>,
    /// Probability that the guarantee fails. Keep it well below one over a device's samples.
    #[schemars(range(min = 1e-18, max = 1e-2))]
    pub delta: Option<f64>,
    /// Instead of epsilon: the standard deviation of the noise on each coordinate in round 1, for
    /// a device of mean size; epsilon follows.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub initial_sigma: Option<f64>,
    /// How a device draws its batches. The default follows basis, allocator and learn.update.
    pub sampling: Option<BatchSampling>,
    /// What neighboring data sets are. The default follows sampling.
    pub adjacency: Option<Adjacency>,
    /// The distribution of the noise.
    pub noise: Option<NoiseKind>,
    /// Where noise and batches come from.
    pub entropy: Option<Entropy>,
    /// File that records every release; runs on the same data that share it share the budget.
    /// Default: ledger.db in the run's folder.
    #[schemars(extend("examples" = ["PATH"]))]
    pub ledger: Option<PathBuf>,
    /// Basis certified: share of each device's budget that this run may spend; the rest is left to
    /// other runs on the same ledger. Default: all of it.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub budget_share: Option<f64>,
    /// Share of the variance of the receiver's noise that is counted as privacy, from 0 (nothing)
    /// to 1. Above 0 it needs coordinates sent as amplitudes; radio.noise_power_w is then a
    /// promise: a better receiver would break it.
    #[schemars(range(min = 0, max = 1))]
    pub channel_trust: Option<f64>,
    /// Allocator lapa: weight K_p of the latest change of the global gradient.
    #[schemars(range(min = 0, max = 1000))]
    pub pid_proportional: Option<f64>,
    /// Allocator lapa: weight K_s of the mean change over the window.
    #[schemars(range(min = 0, max = 1000))]
    pub pid_integral: Option<f64>,
    /// Allocator lapa: global gradients in the window, m.
    #[schemars(range(min = 2, max = 1000))]
    pub pid_window: Option<u32>,
    /// Allocator lapa: how a change of the global gradient is measured. The default follows basis.
    pub pid_error: Option<PidError>,
    /// Allocator lapa: decay factor β of the map from angles to shares.
    #[schemars(range(max = 1000), extend("exclusiveMinimum" = 0))]
    pub decay: Option<f64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRadio {
    /// Position of the base station, [x, y, z] in meters.
    #[schemars(inner(range(min = -1e6, max = 1e6)))]
    pub base_station: Option<[f64; 3]>,
    /// Position of each device, [x, y, z] in meters; instead of regions.
    #[schemars(length(min = 1), inner(inner(range(min = -1e6, max = 1e6))))]
    pub positions: Option<Vec<[f64; 3]>>,
    /// Rectangles on the ground, in meters. Devices are dealt to them at random, in proportion to
    /// `devices`, and placed at random inside.
    #[schemars(length(min = 1))]
    pub regions: Option<Vec<RegionSpec>>,
    /// Antennas of the base station, half a wavelength apart.
    #[schemars(range(min = 1, max = 1024))]
    pub antennas: Option<u32>,
    /// Carrier frequency.
    #[schemars(range(min = 1e3, max = 1e12))]
    pub carrier_hz: Option<f64>,
    /// Path loss exponent; 2 is free space.
    #[schemars(range(min = 1, max = 10))]
    pub path_loss_exponent: Option<f64>,
    /// Antenna gain of the base station in dBi.
    #[schemars(range(min = -100, max = 100))]
    pub base_gain_dbi: Option<f64>,
    /// Antenna gain of a device in dBi.
    #[schemars(range(min = -100, max = 100))]
    pub device_gain_dbi: Option<f64>,
    /// Noise power at each antenna in watts. The paper prints 1e-3, with which no device is heard.
    #[schemars(range(min = 1e-25, max = 1))]
    pub noise_power_w: Option<f64>,
    /// How the antennas' coefficients vary.
    pub fading: Option<Fading>,
    /// Rounds for which fading stays the same; 0 means for the whole run.
    pub redraw_every: Option<u32>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTransmit {
    /// How updates are sent.
    pub uplink: Option<UplinkName>,
    /// Transmit power in watts: of every device, or a list with one number for each device.
    pub power_w: Option<RawPowers>,
    /// The most that a device may send with, in watts.
    #[schemars(range(min = 1e-12, max = 1e6))]
    pub max_power_w: Option<f64>,
    /// Who sends when.
    pub access: Option<Access>,
    /// How the base station separates devices that send at once.
    pub receiver: Option<Receiver>,
    /// Take interference to be cancelled without a rest, as the paper does.
    pub perfect_sic: Option<bool>,
    /// What symbol error rates are about, and what digital symbols are.
    pub modulation: Option<ModulationName>,
    /// Symbols per second.
    #[schemars(range(min = 1, max = 1e12))]
    pub symbol_rate_hz: Option<f64>,
    /// Uplink signal: what the symbols carry.
    pub symbols: Option<SymbolKind>,
    /// Digital symbols: bits per coordinate.
    #[schemars(range(min = 1, max = 16))]
    pub bits: Option<u32>,
    /// Digital symbols: coordinates are quantized from -range to range; larger ones are cut. It must
    /// not follow from private data. The default follows learn.clip, clip_norm and update.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub range: Option<f64>,
}

/// One power, or one for each device.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RawPowers {
    All(#[schemars(range(min = 0, max = 1e6))] f64),
    Each(#[schemars(length(min = 1), inner(range(min = 0, max = 1e6)))] Vec<f64>),
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAggregate {
    /// How devices are weighted.
    pub rule: Option<Rule>,
    /// Rule wasserstein: how far one label is from another.
    pub metric: Option<GroundMetric>,
    /// Rule wasserstein: distances below this count as this, so that no device takes all. The
    /// default follows metric.
    #[schemars(range(min = 1e-3, max = 100))]
    pub floor: Option<f64>,
    /// Rule noise-aware: what the noise that is left counts beside how labels are mixed.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub noise_weight: Option<f64>,
    /// Rules wasserstein and noise-aware: how label histograms reach the base station. The default
    /// follows privacy.
    pub histograms: Option<Histograms>,
    /// Noisy histograms: their share of each device's budget.
    #[schemars(range(min = 1e-6, max = 0.5))]
    pub histogram_share: Option<f64>,
    /// Only devices with at most this symbol error rate send. Default: all devices send.
    #[schemars(range(min = 1e-12, max = 1))]
    pub ser_threshold: Option<f64>,
    /// Only devices with at least this SINR send. Default: all devices send.
    #[schemars(range(min = -300, max = 300))]
    pub sinr_threshold_db: Option<f64>,
    /// What happens in a round in which no device has a link that is good enough.
    pub none_selected: Option<NoneSelected>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawControl {
    /// What artificial noise does beside the channel's. All but always need
    /// privacy.channel_trust above 0.
    pub noise: Option<NoiseControl>,
    /// Noise switch: when the channel's noise suffices.
    pub switch_rule: Option<SwitchRule>,
    /// Where the devices' transmit powers come from. What is optimized, is after a pilot run.
    pub power: Option<PowerChoice>,
    /// The most that all devices together may send with, in watts. Default: for each device 0.075,
    /// or transmit.max_power_w if that is less.
    #[schemars(range(min = 1e-12, max = 1e9))]
    pub total_power_w: Option<f64>,
    /// The least that all devices together send with, in watts. Default: a hundredth of
    /// total_power_w.
    #[schemars(range(min = 0, max = 1e9))]
    pub least_power_w: Option<f64>,
    /// What the pilot trains on.
    pub pilot: Option<Pilot>,
    /// Pilot private: its share of each device's budget.
    #[schemars(range(min = 0.02, max = 0.9))]
    pub pilot_share: Option<f64>,
    /// How powers are judged.
    pub evaluation: Option<EvaluationChoice>,
    /// Which form of the convergence bound powers are judged by.
    pub bound: Option<BoundForm>,
    /// Smoothness L of the loss, for the bound. `lapa bound` estimates it. It must not follow from
    /// private data.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub smoothness: Option<f64>,
    /// Strong convexity mu of the loss, for the bound; as smoothness.
    #[schemars(range(min = 1e-9, max = 1e9))]
    pub convexity: Option<f64>,
    /// Dissimilarity delta of the devices, for the bound; as smoothness.
    #[schemars(range(min = 1, max = 1e6))]
    pub dissimilarity: Option<f64>,
    /// Evaluations of CMA-ES. (The random search takes as many as DDPG: episodes times steps.)
    #[schemars(range(min = 1, max = 100_000_000))]
    pub evaluations: Option<u32>,
    /// DDPG: episodes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub episodes: Option<u32>,
    /// DDPG: steps of an episode.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps: Option<u32>,
    /// DDPG: width of the two hidden layers of actor and critic.
    #[schemars(range(min = 1, max = 4096))]
    pub hidden: Option<u32>,
    /// DDPG: transitions in a batch.
    #[schemars(range(min = 1, max = 65_536))]
    pub batch: Option<u32>,
    /// DDPG: discount factor.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub discount: Option<f64>,
    /// DDPG: how far target networks move in a step. The paper has 0.001.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub soft_update: Option<f64>,
    /// DDPG: learning rate of the actor.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub actor_rate: Option<f64>,
    /// DDPG: learning rate of the critic.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub critic_rate: Option<f64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawObserve {
    /// How devices appear in the metrics.
    pub devices: Option<ObserveDevices>,
}
