//! Allocator optimal-split: the split over devices with the least noise in the global gradient.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AllocateError, Allocator, Ask, BuildAllocator, Costs, Horizon};
use crate::range::{count, positive};

/// Parameters of allocator optimal-split: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptimalSplitConfig {}

impl BuildAllocator for OptimalSplitConfig {
    fn build(&self, over: Horizon) -> Result<Box<dyn Allocator>, AllocateError> {
        let total = over.total.ok_or(AllocateError::NeedsTotal("optimal-split"))?;
        Ok(Box::new(OptimalSplit::paper(total, over.rounds, over.devices)?))
    }

    fn needs_total(&self) -> bool {
        true
    }
}

/// ε_k ∝ (G_kΔs_k)^{2/3} with the same budget ε^T/T each round; n of K devices share n/K of it.
///
/// With σ_k = cΔs_k/ε_k, ΣG_k²σ_k² = c²·Σ(G_kΔs_k)²/ε_k². For a fixed Σε_k its derivatives
/// −2c²(G_kΔs_k)²/ε_k³ are equal at the minimum, so ε_k³ ∝ (G_kΔs_k)²; the sum is convex.
/// Only for the paper's basis, where devices share one budget.
#[derive(Clone, Debug)]
pub struct OptimalSplit {
    total_epsilon: f64,
    rounds: u32,
    devices: u32,
}

impl OptimalSplit {
    /// Divides ε^T over T rounds of K devices.
    pub fn paper(total_epsilon: f64, rounds: u32, devices: u32) -> Result<Self, AllocateError> {
        Ok(Self {
            total_epsilon: positive("total_epsilon", total_epsilon)?,
            rounds: count("rounds", rounds)?,
            devices: count("devices", devices)?,
        })
    }
}

impl Allocator for OptimalSplit {
    fn name(&self) -> &'static str {
        "optimal-split"
    }

    fn reads_updates(&self) -> bool {
        false
    }

    fn allocate(&mut self, round: u32, asks: &[Ask]) -> Costs {
        let budget =
            if round > self.rounds { 0.0 } else { self.total_epsilon / f64::from(self.rounds) };
        let each = budget / f64::from(self.devices);
        let parts: Vec<f64> =
            asks.iter().map(|ask| (ask.weight * ask.sensitivity).powf(2.0 / 3.0)).collect();
        debug_assert!(parts.iter().all(|part| part.is_finite()));
        let mean = parts.iter().sum::<f64>() / asks.len() as f64;
        let cost = |&part: &f64| if mean > 0.0 { part / mean * each } else { each };
        Costs::plain(parts.iter().map(cost).collect(), Some(budget))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ΣG_k²σ_k² over all splits of the same budget on a grid of 1/300.
    #[test]
    fn no_other_split_has_less_noise() {
        let asks = [(0.6, 0.02), (0.3, 0.1), (0.1, 0.05)].map(|(weight, sensitivity)| Ask {
            device: 0,
            left: 0.0,
            weight,
            sensitivity,
        });
        let mut allocator = OptimalSplit::paper(5.0, 5, 3).unwrap();
        let costs = allocator.allocate(1, &asks).by_device;
        let noise = |split: &[f64]| -> f64 {
            asks.iter()
                .zip(split)
                .map(|(a, share)| (a.weight * a.sensitivity / share).powi(2))
                .sum()
        };
        let steps = 300;
        let splits = (1..steps).flat_map(|i| (1..steps - i).map(move |j| [i, j, steps - i - j]));
        let best = splits
            .map(|split| split.map(|n| f64::from(n) / f64::from(steps)))
            .min_by(|one, other| noise(one).total_cmp(&noise(other)))
            .unwrap();
        assert!((costs.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(noise(&costs) <= noise(&best) && noise(&best) < 1.001 * noise(&costs));
        for (cost, brute) in costs.iter().zip(best) {
            assert!((cost - brute).abs() <= 1.0 / f64::from(steps), "{costs:?} {best:?}");
        }
        let two = allocator.allocate(1, &asks[..2]).by_device;
        assert!((two.iter().sum::<f64>() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(allocator.allocate(6, &asks).by_device, [0.0; 3]);
    }
}
