//! Aggregation weights of a run, and their memory between rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::histogram::{global, shares};
use super::{
    FedAdp, GroundMetric, NoiseAwareConfig, WassersteinConfig, fedavg, noise_aware, wasserstein,
};
use crate::budget::Histograms;
use crate::radio::Received;

/// The rules of a configuration, each with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// By their numbers of samples.
    #[default]
    Fedavg,
    /// By samples and the angle between a device's update and the mean one (the paper's BEDA).
    Fedadp,
    /// By samples and how far a device's labels are from all devices' labels (the paper's rule).
    Wasserstein(WassersteinConfig),
    /// So that labels are mixed as over all devices and little noise is left.
    NoiseAware(NoiseAwareConfig),
}

impl Rule {
    /// The way of label histograms to the base station; `None` where weights do not go by labels.
    pub fn histograms(&self) -> Option<Histograms> {
        match self {
            Self::Fedavg | Self::Fedadp => None,
            Self::Wasserstein(config) => Some(config.histograms),
            Self::NoiseAware(config) => Some(config.histograms),
        }
    }

    /// The ground metric of label distances.
    fn metric(&self) -> GroundMetric {
        match self {
            Self::Wasserstein(config) => config.metric,
            Self::Fedavg | Self::Fedadp | Self::NoiseAware(_) => GroundMetric::default(),
        }
    }
}

/// How devices are weighted.
#[derive(Clone, Debug)]
pub struct Weighting {
    rule: Rule,
    devices: usize,
    state: WeightingState,
    labels: Labels,
}

/// Figures of the label counts, once they are known.
#[derive(Clone, Debug, Default)]
struct Labels {
    /// W_k of each device.
    distances: Vec<f64>,
    /// The label distribution of each device.
    distributions: Vec<Vec<f64>>,
    /// That of all together.
    global: Vec<f64>,
}

impl Labels {
    fn new(metric: GroundMetric, counts: &[Vec<f64>]) -> Self {
        Self {
            distances: wasserstein::distances(metric, counts),
            distributions: counts.iter().map(|counts| shares(counts)).collect(),
            global: global(counts),
        }
    }
}

/// Memory of the weights: functions of what was received, so a checkpoint may hold it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WeightingState {
    /// Angles of FedAdp.
    pub fedadp: Option<FedAdp>,
    /// Label counts of each device as they were sent.
    pub labels: Option<Vec<Vec<f64>>>,
}

impl Weighting {
    /// The weights of a rule, for this many devices.
    pub fn new(rule: Rule, devices: usize) -> Self {
        let fedadp = (rule == Rule::Fedadp).then(|| FedAdp::new(devices));
        Self {
            rule,
            devices,
            state: WeightingState { fedadp, labels: None },
            labels: Labels::default(),
        }
    }

    /// True once label histograms have arrived.
    pub(crate) fn knows_labels(&self) -> bool {
        self.state.labels.is_some()
    }

    /// Takes the label counts of all devices, as they were sent.
    pub(crate) fn learn_labels(&mut self, counts: Vec<Vec<f64>>) {
        self.labels = Labels::new(self.rule.metric(), &counts);
        self.state.labels = Some(counts);
    }

    /// Weights before anything of the round was received. For FedAdp, whose weights follow from
    /// the updates, those of FedAvg; where they follow from noise, those of noise by 1/|D_k|, as it
    /// is for equal budgets.
    pub fn prior(&self, devices: &[u32], samples: &[u32]) -> Vec<f64> {
        match self.rule {
            Rule::Wasserstein(config) if self.knows_labels() => {
                let distances: Vec<f64> =
                    devices.iter().map(|&device| self.labels.distances[device as usize]).collect();
                wasserstein::weights(samples, &distances, config.floor)
            }
            Rule::NoiseAware(config) if self.knows_labels() => {
                let variances: Vec<f64> = samples.iter().map(|&n| f64::from(n).powi(-2)).collect();
                self.noise_aware(devices, samples, &variances, config)
            }
            Rule::Fedavg | Rule::Fedadp | Rule::Wasserstein(_) | Rule::NoiseAware(_) => {
                fedavg(samples)
            }
        }
    }

    fn noise_aware(
        &self,
        devices: &[u32],
        samples: &[u32],
        variances: &[f64],
        config: NoiseAwareConfig,
    ) -> Vec<f64> {
        let (labels, weight) = (&self.labels, config.noise_weight);
        let distributions: Vec<&[f64]> =
            devices.iter().map(|&device| &*labels.distributions[device as usize]).collect();
        noise_aware::weights(&distributions, &labels.global, samples, variances, weight)
    }

    /// Weights of the devices that an update was received from; they sum to 1.
    pub fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64> {
        let devices: Vec<u32> = received.iter().map(Received::device).collect();
        if let Some(fedadp) = &mut self.state.fedadp {
            let gradients: Vec<&[f32]> = received.iter().map(Received::gradient).collect();
            return fedadp.weights(&devices, samples, &gradients);
        }
        match self.rule {
            Rule::NoiseAware(config) if self.knows_labels() => {
                let variances: Vec<f64> = received.iter().map(|r| r.sigma().powi(2)).collect();
                self.noise_aware(&devices, samples, &variances, config)
            }
            _ => self.prior(&devices, samples),
        }
    }

    /// State for a checkpoint.
    pub fn state(&self) -> &WeightingState {
        &self.state
    }

    /// Goes on from a checkpoint. False if it is of other devices.
    pub fn restore(&mut self, state: WeightingState) -> bool {
        let fits = state.fedadp.as_ref().is_none_or(|fedadp| fedadp.fits(self.devices))
            && state.labels.as_ref().is_none_or(|labels| labels.len() == self.devices);
        if fits {
            if let Some(labels) = &state.labels {
                self.labels = Labels::new(self.rule.metric(), labels);
            }
            self.state = state;
        }
        fits
    }
}
