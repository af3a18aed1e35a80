//! Rule noise-aware, which is ours: weights that trade mixed labels against the noise that is left.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::histogram::{global, shares};
use super::{BuildRule, Histograms, Rule, fedavg};
use crate::radio::Received;

/// Parameters of rule noise-aware.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseAwareConfig {
    /// Weight η of the noise that is left, beside how labels are mixed.
    #[schemars(range(min = 1e-6, max = 1e6))]
    pub noise_weight: f64,
    /// Way of label histograms to the base station. The default follows privacy.
    pub histograms: Histograms,
}

impl Default for NoiseAwareConfig {
    /// η by experiments/beyond.
    fn default() -> Self {
        Self { noise_weight: 0.3, histograms: Histograms::Exact }
    }
}

impl BuildRule for NoiseAwareConfig {
    fn build(&self, _: usize) -> Box<dyn Rule> {
        let noise_weight = self.noise_weight;
        Box::new(NoiseAware { noise_weight, distributions: Vec::new(), global: Vec::new() })
    }

    fn histograms(&self) -> Option<Histograms> {
        Some(self.histograms)
    }
}

/// The rule, with label distributions once they are known: of each device, and of all together.
struct NoiseAware {
    noise_weight: f64,
    distributions: Vec<Vec<f64>>,
    global: Vec<f64>,
}

impl NoiseAware {
    fn by_variances(&self, devices: &[u32], samples: &[u32], variances: &[f64]) -> Vec<f64> {
        if self.distributions.is_empty() {
            return fedavg(samples);
        }
        let distributions: Vec<&[f64]> =
            devices.iter().map(|&device| &*self.distributions[device as usize]).collect();
        weights(&distributions, &self.global, samples, variances, self.noise_weight)
    }
}

impl Rule for NoiseAware {
    fn weights(&mut self, samples: &[u32], received: &[Received]) -> Vec<f64> {
        let devices: Vec<u32> = received.iter().map(Received::device).collect();
        let variances: Vec<f64> = received.iter().map(|r| r.sigma().powi(2)).collect();
        self.by_variances(&devices, samples, &variances)
    }

    /// Weights for noise by 1/|D_k|, as it is for equal budgets.
    fn prior(&self, devices: &[u32], samples: &[u32]) -> Vec<f64> {
        let variances: Vec<f64> = samples.iter().map(|&n| f64::from(n).powi(-2)).collect();
        self.by_variances(devices, samples, &variances)
    }

    fn learn_labels(&mut self, counts: &[Vec<f64>]) {
        self.distributions = counts.iter().map(|counts| shares(counts)).collect();
        self.global = global(counts);
    }
}

/// Variance of a device without noise, beside noisy ones: this part of the least there is.
const LEAST_VARIANCE: f64 = 1e-6;
/// More than any case of the tests takes; a step settles which devices have weight.
const STEPS: usize = 200;

/// The weights G on the simplex with the least
///
/// ‖Σ_k G_k·p_k − u‖² + η·Σ_k G_k²·s̃_k²
///
/// over the devices of the round: `distributions` are their label distributions p_k, `target` is
/// u, that of all devices together. `variances` are s_k², the noise on each coordinate of their
/// uploads; s̃_k² = s_k²·(1/K)Σ_j 1/s_j², so that η has no unit and one hopeless link does not
/// change what it means. At large η, G_k ∝ 1/s_k², which leaves the least noise; at small η the
/// labels come first, and noise decides among equals.
///
/// Without any noise s_k² = 1/|D_k|, the variance of a mean over samples; if labels and sizes are
/// exact and all devices send, G is then that of FedAvg. The least is unique.
///
/// Differs from the paper: its weights, eq. (21), do not know the noise, and at small ε most of it
/// comes through the few devices that they favor.
pub fn weights(
    distributions: &[&[f64]],
    target: &[f64],
    samples: &[u32],
    variances: &[f64],
    noise_weight: f64,
) -> Vec<f64> {
    let penalties = penalties(samples, variances, noise_weight);
    let dual = Dual { distributions, target, penalties: &penalties };
    let positive: Vec<f64> = dual.solved().iter().map(|slack| slack.max(0.0)).collect();
    let terms: Vec<f64> = positive.iter().zip(&penalties).map(|(g, penalty)| g / penalty).collect();
    let total: f64 = terms.iter().sum();
    terms.into_iter().map(|term| term / total).collect()
}

/// η·s̃_k²
fn penalties(samples: &[u32], variances: &[f64], noise_weight: f64) -> Vec<f64> {
    debug_assert_eq!(samples.len(), variances.len());
    let least = variances.iter().copied().filter(|&v| v > 0.0).fold(f64::INFINITY, f64::min);
    let variances: Vec<f64> = if least.is_finite() {
        variances.iter().map(|&v| v.max(LEAST_VARIANCE * least)).collect()
    } else {
        samples.iter().map(|&n| f64::from(n).recip()).collect()
    };
    let precision: f64 = variances.iter().map(|v| v.recip()).sum();
    let scale = noise_weight * precision / variances.len() as f64;
    variances.into_iter().map(|v| scale * v).collect()
}

/// The dual problem, which has a variable for each label and one for ΣG = 1, however many devices
/// there are: with x = (r, ν), slack ν − p_k·r and d_k = η·s̃_k² the least of
///
/// ψ(x) = ‖r‖² + Σ_k max(slack_k, 0)²/d_k + 2u·r − 2ν,
///
/// where G_k = max(slack_k, 0)/d_k and r = ΣG_k·p_k − u. ψ is convex and, for any one set of
/// devices with a positive slack, quadratic.
struct Dual<'a> {
    distributions: &'a [&'a [f64]],
    target: &'a [f64],
    penalties: &'a [f64],
}

impl Dual<'_> {
    /// The slacks at the least of ψ, by Newton's method: a step solves ψ for the devices that now
    /// have weight, and if these are the same after it, the result is exact.
    fn solved(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.target.len() + 1];
        x[self.target.len()] = self.penalties.iter().map(|d| d.recip()).sum::<f64>().recip();
        let mut slacks = self.slacks(&x);
        let mut value = self.value(&x, &slacks);
        for _ in 0..STEPS {
            let goal = self.least_for(&slacks);
            let at_goal = self.slacks(&goal);
            if at_goal.iter().zip(&slacks).all(|(a, b)| (*a > 0.0) == (*b > 0.0)) {
                return at_goal;
            }
            // Halved until ψ falls; it does, unless rounding is all that is left to gain.
            let mut step = 1.0;
            loop {
                let next: Vec<f64> = x.iter().zip(&goal).map(|(x, g)| x + step * (g - x)).collect();
                let next_slacks = self.slacks(&next);
                let next_value = self.value(&next, &next_slacks);
                if next_value < value {
                    (x, slacks, value) = (next, next_slacks, next_value);
                    break;
                }
                step /= 2.0;
                if step < f64::EPSILON {
                    return slacks;
                }
            }
        }
        slacks
    }

    fn slacks(&self, x: &[f64]) -> Vec<f64> {
        let (r, nu) = x.split_at(self.target.len());
        self.distributions.iter().map(|p| nu[0] - dot(p, r)).collect()
    }

    fn value(&self, x: &[f64], slacks: &[f64]) -> f64 {
        let (r, nu) = x.split_at(self.target.len());
        let noise: f64 =
            slacks.iter().zip(self.penalties).map(|(s, d)| s.max(0.0).powi(2) / d).sum();
        dot(r, r) + noise + 2.0 * dot(self.target, r) - 2.0 * nu[0]
    }

    /// The least of ψ if just the devices with a positive slack had weight:
    /// (I₀ + Σ a_k·a_kᵀ/d_k)·x = (−u, 1) with a_k = (−p_k, 1) and I₀ the identity without its last.
    fn least_for(&self, slacks: &[f64]) -> Vec<f64> {
        let labels = self.target.len();
        let mut matrix = vec![vec![0.0; labels + 1]; labels + 1];
        for (label, row) in matrix[..labels].iter_mut().enumerate() {
            row[label] = 1.0;
        }
        for ((p, &d), _) in
            self.distributions.iter().zip(self.penalties).zip(slacks).filter(|(_, s)| **s > 0.0)
        {
            let a = |i: usize| if i < labels { -p[i] } else { 1.0 };
            for (i, row) in matrix.iter_mut().enumerate() {
                for (j, entry) in row[..=i].iter_mut().enumerate() {
                    *entry += a(i) * a(j) / d;
                }
            }
        }
        let mut x: Vec<f64> = self.target.iter().map(|u| -u).collect();
        x.push(1.0);
        solve(&mut matrix, &mut x);
        x
    }
}

/// Turns x into R⁻¹·x for a positive definite R, of which the lower triangle is read, by its
/// Cholesky factor.
fn solve(matrix: &mut [Vec<f64>], x: &mut [f64]) {
    for i in 0..x.len() {
        let (above, row) = matrix.split_at_mut(i);
        let row = &mut row[0];
        for (j, other) in above.iter().enumerate() {
            row[j] = (row[j] - dot(&row[..j], &other[..j])) / other[j];
        }
        row[i] = (row[i] - dot(&row[..i], &row[..i])).sqrt();
        x[i] = (x[i] - dot(&row[..i], &x[..i])) / row[i];
    }
    for i in (0..x.len()).rev() {
        x[i] /= matrix[i][i];
        for j in 0..i {
            x[j] -= matrix[i][j] * x[i];
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests;
