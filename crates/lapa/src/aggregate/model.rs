//! The weighted sum of a round, and the global model it moves.

use crate::model::add_scaled;
use crate::radio::Received;

/// The weighted sum of what the devices sent: Σ_k G_k·∇F_k, eq. (2).
#[derive(Clone, Debug, Default)]
pub struct GlobalDelta {
    /// Σ G_k · gradient
    pub gradient: Vec<f32>,
}

impl GlobalDelta {
    /// Sums in the order of the devices, so that the result does not depend on threads.
    pub fn combine(&mut self, weights: &[f64], received: &[Received]) {
        if !received.is_empty() {
            self.gradient.clear();
        }
        for (&weight, received) in weights.iter().zip(received) {
            self.add(weight, received.gradient());
        }
    }

    /// Adds one update. The first after a clear decides about the length.
    pub(crate) fn add(&mut self, weight: f64, gradient: &[f32]) {
        if self.gradient.is_empty() {
            self.gradient.resize(gradient.len(), 0.0);
        }
        add_scaled(&mut self.gradient, weight as f32, gradient);
    }
}

/// Memory of the base station between rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalModel {
    /// Parameters w.
    pub parameters: Vec<f32>,
    /// Momentum v.
    pub velocity: Vec<f32>,
    /// Average of the parameters over the latest rounds, which is what is evaluated; empty without
    /// averaging.
    pub average: Vec<f32>,
    /// Batch-norm statistics of the base station's calibration images; empty without batch norm.
    pub statistics: Vec<f32>,
}

impl GlobalModel {
    /// The parameters that are evaluated and handed out: the average, or the latest.
    pub fn evaluated(&self) -> &[f32] {
        if self.average.is_empty() { &self.parameters } else { &self.average }
    }

    /// a ← a + (w − a)·max(1 − γ, 1/t) after round t: the mean of all rounds at first, then an
    /// exponential average over the last 1/(1 − γ). It averages out noise, and as a function of
    /// noisy values it costs no privacy.
    ///
    /// Differs from the paper: it has no averaging.
    pub fn update_average(&mut self, round: u32, averaging: f64) {
        let share = (1.0 - averaging).max(1.0 / f64::from(round)) as f32;
        for (a, w) in self.average.iter_mut().zip(&self.parameters) {
            *a += share * (w - *a);
        }
    }

    /// w ← w − λv with v ← m·v + Σ_k G_k·∇F_k + c·w: the paper's eq. (3) for m = c = 0.
    ///
    /// Differs from the paper: server momentum m, without which one gradient per round at
    /// λ = 0.01 needs more than a thousand rounds; weight decay c, which makes a convex loss strongly
    /// convex.
    pub fn apply(&mut self, delta: &GlobalDelta, learning_rate: f64, momentum: f64, decay: f64) {
        let (rate, momentum, decay) = (learning_rate as f32, momentum as f32, decay as f32);
        let slope = |g: f32, w: f32| if decay == 0.0 { g } else { g + decay * w };
        for ((w, v), g) in self.parameters.iter_mut().zip(&mut self.velocity).zip(&delta.gradient) {
            *v = momentum * *v + slope(*g, *w);
            *w -= rate * *v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain means first; then every round weighs γ times what the next one does.
    #[test]
    fn averages_are_means_at_first_and_exponential_later() {
        let w = [3.0f32, 5.0, 10.0, 2.0];
        let mut model = GlobalModel {
            parameters: vec![0.0],
            velocity: vec![0.0],
            average: vec![0.0],
            statistics: Vec::new(),
        };
        for (round, w) in (1..).zip(w) {
            model.parameters = vec![w];
            model.update_average(round, 0.5);
        }
        let mean = (3.0 + 5.0) / 2.0;
        let expected = 0.5 * (0.5 * mean + 0.5 * 10.0) + 0.5 * 2.0;
        assert_eq!((model.average[0], model.evaluated()[0]), (expected, expected));
    }

    /// Without data, c·‖w‖²/2 is what is minimized: w shrinks by 1 − λc in each round.
    #[test]
    fn weight_decay_is_the_gradient_of_the_squared_norm() {
        let mut model = GlobalModel {
            parameters: vec![8.0, -4.0],
            velocity: vec![0.0; 2],
            average: Vec::new(),
            statistics: Vec::new(),
        };
        let delta = GlobalDelta { gradient: vec![0.0; 2] };
        model.apply(&delta, 0.5, 0.0, 0.5);
        assert_eq!(model.parameters, [6.0, -3.0]);
        // v ← 0.5·v + c·w
        model.apply(&delta, 0.5, 0.5, 0.5);
        assert_eq!((model.velocity[0], model.parameters[0]), (5.0, 3.5));
    }

    #[test]
    fn the_weighted_sum_is_that_of_the_round_and_of_no_earlier_one() {
        let mut delta = GlobalDelta::default();
        let received =
            [[1.0, -2.0], [5.0, 2.0]].map(|gradient| Received::new(0, gradient.into(), 0.0));
        for _ in 0..2 {
            delta.combine(&[0.75, 0.25], &received);
            assert_eq!(delta.gradient, [2.0, -1.0]);
        }
    }
}
