//! Which weights a run uses, and what they remember between rounds.

use serde::{Deserialize, Serialize};

use super::{FedAdp, GroundMetric, fedavg, wasserstein};
use crate::config::{Aggregate, Rule};
use crate::transmit::Received;

/// How devices are weighted.
#[derive(Clone, Debug)]
pub struct Weighting {
    rule: Rule,
    metric: GroundMetric,
    floor: f64,
    devices: usize,
    state: WeightingState,
    /// W_k of each device, once labels are known.
    distances: Vec<f64>,
}

/// What weights remember: functions of what was received, so a checkpoint may hold it.
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
            devices,
            state: WeightingState { fedadp, labels: None },
            distances: Vec::new(),
        }
    }

    /// Whether label histograms have arrived.
    pub(crate) fn knows_labels(&self) -> bool {
        self.state.labels.is_some()
    }

    /// Takes the label counts of all devices, as they were sent.
    pub(crate) fn learn_labels(&mut self, counts: Vec<Vec<f64>>) {
        self.distances = wasserstein::distances(self.metric, &counts);
        self.state.labels = Some(counts);
    }

    /// Weights before anything of the round was received. For FedAdp, whose weights follow from
    /// the updates, those of FedAvg.
    pub fn prior(&self, devices: &[u32], samples: &[u32]) -> Vec<f64> {
        match self.rule {
            Rule::Wasserstein if self.knows_labels() => {
                let distances: Vec<f64> =
                    devices.iter().map(|&device| self.distances[device as usize]).collect();
                wasserstein::weights(samples, &distances, self.floor)
            }
            Rule::Fedavg | Rule::Fedadp | Rule::Wasserstein => fedavg(samples),
        }
    }

    /// Weights of the devices that an update was received from; they sum to 1.
    pub fn weights(&mut self, devices: &[u32], samples: &[u32], received: &[Received]) -> Vec<f64> {
        match &mut self.state.fedadp {
            Some(fedadp) => {
                let gradients: Vec<&[f32]> = received.iter().map(Received::gradient).collect();
                fedadp.weights(devices, samples, &gradients)
            }
            None => self.prior(devices, samples),
        }
    }

    /// What a checkpoint must hold.
    pub fn state(&self) -> &WeightingState {
        &self.state
    }

    /// Goes on from a checkpoint. False if it is of other devices.
    pub fn restore(&mut self, state: WeightingState) -> bool {
        let fits = state.fedadp.as_ref().is_none_or(|fedadp| fedadp.fits(self.devices))
            && state.labels.as_ref().is_none_or(|labels| labels.len() == self.devices);
        if fits {
            if let Some(labels) = &state.labels {
                self.distances = wasserstein::distances(self.metric, labels);
            }
            self.state = state;
        }
        fits
    }
}
