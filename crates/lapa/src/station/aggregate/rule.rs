//! Aggregation weights of a run, and their memory between rounds.

use serde::{Deserialize, Serialize};

use super::histogram::{global, shares};
use super::{FedAdp, GroundMetric, fedavg, noise_aware, wasserstein};
use crate::config::{Aggregate, Rule};
use crate::radio::Received;

/// Aggregation weights by the configured rule.
#[derive(Clone, Debug)]
pub struct Weighting {
    rule: Rule,
    metric: GroundMetric,
    floor: f64,
    noise_weight: f64,
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
    /// The weights of a configuration, for this many devices.
    pub fn new(aggregate: &Aggregate, devices: usize) -> Self {
        let metric = aggregate.metric.unwrap_or_default();
        let fedadp = (aggregate.rule == Rule::Fedadp).then(|| FedAdp::new(devices));
        Self {
            rule: aggregate.rule,
            metric,
            floor: aggregate.floor.unwrap_or(wasserstein::default_floor(metric)),
            noise_weight: aggregate.noise_weight.unwrap_or(noise_aware::NOISE_WEIGHT),
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
        self.labels = Labels::new(self.metric, &counts);
        self.state.labels = Some(counts);
    }

    /// Weights before anything of the round was received. For FedAdp, whose weights follow from
    /// the updates, those of FedAvg; where they follow from noise, those of noise by 1/|D_k|, as it
    /// is for equal budgets.
    pub fn prior(&self, devices: &[u32], samples: &[u32]) -> Vec<f64> {
        match self.rule {
            Rule::Wasserstein if self.knows_labels() => {
                let distances: Vec<f64> =
                    devices.iter().map(|&device| self.labels.distances[device as usize]).collect();
                wasserstein::weights(samples, &distances, self.floor)
            }
            Rule::NoiseAware if self.knows_labels() => {
                let variances = samples.iter().map(|&n| f64::from(n).powi(-2));
                self.noise_aware(devices, samples, &variances.collect::<Vec<_>>())
            }
            Rule::Fedavg | Rule::Fedadp | Rule::Wasserstein | Rule::NoiseAware => fedavg(samples),
        }
    }

    fn noise_aware(&self, devices: &[u32], samples: &[u32], variances: &[f64]) -> Vec<f64> {
        let labels = &self.labels;
        let distributions: Vec<&[f64]> =
            devices.iter().map(|&device| &*labels.distributions[device as usize]).collect();
        noise_aware::weights(&distributions, &labels.global, samples, variances, self.noise_weight)
    }

    /// Weights of the devices that an update was received from; they sum to 1.
    pub fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64> {
        let devices: Vec<u32> = received.iter().map(Received::device).collect();
        if let Some(fedadp) = &mut self.state.fedadp {
            let gradients: Vec<&[f32]> = received.iter().map(Received::gradient).collect();
            return fedadp.weights(&devices, samples, &gradients);
        }
        if self.rule == Rule::NoiseAware && self.knows_labels() {
            let variances: Vec<f64> = received.iter().map(|r| r.sigma().powi(2)).collect();
            return self.noise_aware(&devices, samples, &variances);
        }
        self.prior(&devices, samples)
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
                self.labels = Labels::new(self.metric, labels);
            }
            self.state = state;
        }
        fits
    }
}
