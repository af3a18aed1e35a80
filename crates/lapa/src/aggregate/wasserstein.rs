//! Rule wasserstein, the paper's weights: data volume times how close a device's labels are to everybody's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::histogram::{global, shares};
use super::softmax::softmax;
use super::{BuildRule, Histograms, Rule, fedavg};
use crate::radio::Received;

/// Parameters of rule wasserstein.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WassersteinConfig {
    /// Distance between two labels.
    pub metric: GroundMetric,
    /// Least distance: smaller ones count as this, so that no device takes all. The default follows
    /// metric.
    #[schemars(range(min = 1e-3, max = 100))]
    pub floor: f64,
    /// Way of label histograms to the base station. The default follows privacy.
    pub histograms: Histograms,
}

impl Default for WassersteinConfig {
    fn default() -> Self {
        let metric = GroundMetric::default();
        Self { metric, floor: default_floor(metric), histograms: Histograms::Exact }
    }
}

impl BuildRule for WassersteinConfig {
    fn build(&self, _: usize) -> Box<dyn Rule> {
        let Self { metric, floor, .. } = *self;
        Box::new(ByDistance::new(floor, move |p, g| distance(metric, p, g)))
    }

    fn histograms(&self) -> Option<Histograms> {
        Some(self.histograms)
    }
}

/// A rule by the distance of each device's label distribution from that of all devices together.
pub(super) struct ByDistance<D> {
    floor: f64,
    distance: D,
    /// Distance of each device, once labels are known.
    distances: Vec<f64>,
}

impl<D: Fn(&[f64], &[f64]) -> f64> ByDistance<D> {
    /// The rule of a distance, of which less than `floor` counts as `floor`.
    pub fn new(floor: f64, distance: D) -> Self {
        Self { floor, distance, distances: Vec::new() }
    }
}

impl<D: Fn(&[f64], &[f64]) -> f64 + Send> Rule for ByDistance<D> {
    fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64> {
        let devices: Vec<u32> = received.iter().map(Received::device).collect();
        self.prior(&devices, samples)
    }

    fn prior(&self, devices: &[u32], samples: &[u32]) -> Vec<f64> {
        if self.distances.is_empty() {
            return fedavg(samples);
        }
        let distances: Vec<f64> =
            devices.iter().map(|&device| self.distances[device as usize]).collect();
        weights(samples, &distances, self.floor)
    }

    fn reads_updates(&self) -> bool {
        false
    }

    fn learn_labels(&mut self, counts: &[Vec<f64>]) {
        let global = global(counts);
        let distance = |counts: &Vec<f64>| (self.distance)(&shares(counts), &global);
        self.distances = counts.iter().map(distance).collect();
    }
}

/// Distance between two labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroundMetric {
    /// 1 between any two labels: the order of labels means nothing.
    #[default]
    TotalVariation,
    /// |i − j| between labels i and j.
    LabelDistance,
}

/// W₁ between the label distributions `p` and `g`, eq. (20): ½Σ|p_i − g_i| where labels are all 1
/// apart, Σ|P_i − G_i| over the cumulative distributions where they are |i − j| apart.
///
/// Differs from the paper in total variation: ‖x − y‖ of two labels is |i − j| as printed.
pub fn distance(metric: GroundMetric, p: &[f64], g: &[f64]) -> f64 {
    debug_assert_eq!(p.len(), g.len());
    let differences = p.iter().zip(g).map(|(p, g)| p - g);
    match metric {
        GroundMetric::TotalVariation => differences.map(f64::abs).sum::<f64>() / 2.0,
        GroundMetric::LabelDistance => {
            let mut cumulative = 0.0;
            differences.fold(0.0, |sum, difference| {
                cumulative += difference;
                sum + f64::abs(cumulative)
            })
        }
    }
}

/// W_k of every device, from the label counts of all: the distance between the device's label
/// distribution and that of all devices together.
pub fn distances(metric: GroundMetric, counts: &[Vec<f64>]) -> Vec<f64> {
    let global = global(counts);
    counts.iter().map(|counts| distance(metric, &shares(counts), &global)).collect()
}

/// G_k = |D_k|·e^{1/max(W_k, floor)} / Σ_j |D_j|·e^{1/max(W_j, floor)}, eq. (21), over the devices
/// of the round.
///
/// Differs from the paper: floor. At W_k = 0 the power is infinite, and of devices that all hold nearly
/// the global distribution the luckiest takes most of the weight. Below the floor, which is
/// positive, all are equally close.
pub fn weights(samples: &[u32], distances: &[f64], floor: f64) -> Vec<f64> {
    debug_assert!(floor > 0.0 && floor.recip().is_finite(), "floor {floor} is not positive");
    let exponents: Vec<f64> = distances.iter().map(|w| w.max(floor).recip()).collect();
    softmax(samples, &exponents)
}

/// The floor on W_k unless one is given: 0.2 in total variation, 0.5 in label distance.
pub fn default_floor(metric: GroundMetric) -> f64 {
    match metric {
        GroundMetric::TotalVariation => 0.2,
        GroundMetric::LabelDistance => 0.5,
    }
}
