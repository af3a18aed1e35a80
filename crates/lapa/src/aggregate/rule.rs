//! Rules of aggregation: the seam, the rules of a configuration, and the memory of a run's rule.

use lapa_privacy::choices;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    FedadpConfig, FedavgConfig, Histograms, JsConfig, KlConfig, NoiseAwareConfig,
    WassersteinConfig, fedavg,
};
use crate::radio::Received;

choices! {
    /// Rules of a configuration, each with its parameters.
    #[derive(Copy)]
    pub enum RuleConfig: BuildRule {
        /// By their numbers of samples.
        Fedavg(FedavgConfig),
        /// By samples and the angle between a device's update and the mean one (the paper's BEDA).
        Fedadp(FedadpConfig),
        /// By samples and how far a device's labels are from all devices' labels (the paper's rule).
        Wasserstein(WassersteinConfig),
        /// As wasserstein, by the Kullback-Leibler divergence of the labels.
        Kl(KlConfig),
        /// As wasserstein, by the Jensen-Shannon divergence of the labels.
        Js(JsConfig),
        /// So that labels are mixed as over all devices and little noise is left.
        NoiseAware(NoiseAwareConfig),
    }
}

impl Default for RuleConfig {
    fn default() -> Self {
        Self::Fedavg(FedavgConfig {})
    }
}

/// Parameters that a rule is built from.
pub trait BuildRule {
    /// The rule for this many devices.
    fn build(&self, devices: usize) -> Box<dyn Rule>;

    /// The way of label histograms to the base station; `None` where weights do not go by labels.
    fn histograms(&self) -> Option<Histograms> {
        None
    }
}

/// Aggregation weights from received values and public numbers.
pub trait Rule: Send {
    /// Weights of the devices that an update was received from; they sum to 1. `samples` are the
    /// public numbers of samples of these devices.
    fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64>;

    /// Weights before anything of the round was received, by which allocators decide: those of
    /// FedAvg unless the rule knows better.
    fn prior(&self, _devices: &[u32], samples: &[u32]) -> Vec<f64> {
        fedavg(samples)
    }

    /// False if the weights are those of [`Rule::prior`] whatever was received, so that updates need
    /// not be kept.
    fn reads_updates(&self) -> bool {
        true
    }

    /// Takes the label counts of all devices, as they were sent.
    fn learn_labels(&mut self, _counts: &[Vec<f64>]) {}

    /// Everything that later weights depend on, apart from settings and labels: functions of what
    /// was received, so a checkpoint may hold it.
    fn state(&self) -> Value {
        Value::Null
    }

    /// Goes on from a state. False if it is not one of this rule.
    fn restore(&mut self, state: Value) -> bool {
        state.is_null()
    }
}

/// The rule of a run, and the label counts that it was told.
pub struct Weighting {
    rule: Box<dyn Rule>,
    devices: usize,
    labels: Option<Vec<Vec<f64>>>,
}

/// Memory of the weights, for a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WeightingState {
    /// State of the rule.
    pub rule: Value,
    /// Label counts of each device as they were sent.
    pub labels: Option<Vec<Vec<f64>>>,
}

impl Weighting {
    /// The weights of a rule, for this many devices.
    pub fn new(rule: Box<dyn Rule>, devices: usize) -> Self {
        Self { rule, devices, labels: None }
    }

    /// The rule.
    pub fn rule(&self) -> &dyn Rule {
        &*self.rule
    }

    /// Weights of the devices that an update was received from.
    pub fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64> {
        self.rule.weights(samples, received)
    }

    /// Label counts of each device as they were sent, once they have arrived.
    pub fn labels(&self) -> Option<&[Vec<f64>]> {
        self.labels.as_deref()
    }

    /// Takes the label counts of all devices, as they were sent.
    pub(crate) fn learn_labels(&mut self, counts: Vec<Vec<f64>>) {
        self.rule.learn_labels(&counts);
        self.labels = Some(counts);
    }

    /// State for a checkpoint.
    pub fn state(&self) -> WeightingState {
        WeightingState { rule: self.rule.state(), labels: self.labels.clone() }
    }

    /// Goes on from a checkpoint. False if it is of another rule or other devices.
    pub fn restore(&mut self, state: WeightingState) -> bool {
        let fits = state.labels.as_ref().is_none_or(|labels| labels.len() == self.devices)
            && self.rule.restore(state.rule);
        if let Some(labels) = state.labels.filter(|_| fits) {
            self.learn_labels(labels);
        }
        fits
    }
}
