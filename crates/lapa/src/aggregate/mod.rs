//! Stage 6: what the base station makes of what it received.

use crate::learn::LocalUpdate;
use crate::model::add_scaled;

/// FedAvg (McMahan et al. 2017): G_k = |D_k| / Σ_j |D_j| over the devices of the round, so that
/// ΣG_k = 1 as in the paper's eq. (2).
pub fn fedavg(updates: &[LocalUpdate]) -> Vec<f64> {
    let total: f64 = updates.iter().map(|update| f64::from(update.samples)).sum();
    updates.iter().map(|update| f64::from(update.samples) / total).collect()
}

/// The weighted sum of what the devices sent: Σ_k G_k·∇F_k, eq. (2).
#[derive(Clone, Debug, Default)]
pub struct GlobalDelta {
    /// Σ G_k · gradient
    pub gradient: Vec<f32>,
    /// Σ G_k · statistics
    pub statistics: Vec<f32>,
}

impl GlobalDelta {
    /// Sums in the order of the devices, so that the result does not depend on threads.
    pub fn combine(&mut self, weights: &[f64], updates: &[LocalUpdate]) {
        let Some(first) = updates.first() else { return };
        for (sum, len) in [
            (&mut self.gradient, first.gradient.len()),
            (&mut self.statistics, first.statistics.len()),
        ] {
            sum.clear();
            sum.resize(len, 0.0);
        }
        for (&weight, update) in weights.iter().zip(updates) {
            add_scaled(&mut self.gradient, weight as f32, &update.gradient);
            add_scaled(&mut self.statistics, weight as f32, &update.statistics);
        }
    }
}

/// What the base station keeps between rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalModel {
    /// Parameters w.
    pub parameters: Vec<f32>,
    /// Momentum v.
    pub velocity: Vec<f32>,
    /// Batch-norm statistics for evaluation; empty without batch norm.
    pub statistics: Vec<f32>,
}

impl GlobalModel {
    /// w ← w − λv with v ← m·v + Σ_k G_k·∇F_k: the paper's eq. (3) for m = 0.
    ///
    /// Differs from the paper: server momentum m, without which one gradient per round at
    /// λ = 0.01 needs more than a thousand rounds.
    pub fn apply(&mut self, delta: &GlobalDelta, learning_rate: f64, momentum: f64) {
        let (rate, momentum) = (learning_rate as f32, momentum as f32);
        for ((w, v), g) in self.parameters.iter_mut().zip(&mut self.velocity).zip(&delta.gradient) {
            *v = momentum * *v + g;
            *w -= rate * *v;
        }
        self.statistics.copy_from_slice(&delta.statistics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(samples: u32, gradient: [f32; 2], statistics: [f32; 1]) -> LocalUpdate {
        LocalUpdate {
            samples,
            gradient: gradient.into(),
            statistics: statistics.into(),
            ..LocalUpdate::default()
        }
    }

    #[test]
    fn fedavg_weighs_by_samples() {
        let updates = [update(30, [1.0, -2.0], [4.0]), update(10, [5.0, 2.0], [0.0])];
        assert_eq!(fedavg(&updates), [0.75, 0.25]);
    }

    #[test]
    fn the_weighted_sum_is_that_of_the_round_and_of_no_earlier_one() {
        let mut delta = GlobalDelta::default();
        let updates = [update(30, [1.0, -2.0], [4.0]), update(10, [5.0, 2.0], [0.0])];
        for _ in 0..2 {
            delta.combine(&[0.75, 0.25], &updates);
            assert_eq!(delta.gradient, [2.0, -1.0]);
            assert_eq!(delta.statistics, [3.0]);
        }
    }
}
