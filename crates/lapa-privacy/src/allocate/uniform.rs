//! Allocator uniform: the same cost for every device and round.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AllocateError, Allocator, Ask, BuildAllocator, Costs, Horizon, rounds_left};
use crate::range::{count, positive};

/// Parameters of allocator uniform: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UniformConfig {}

impl BuildAllocator for UniformConfig {
    fn build(&self, over: Horizon) -> Result<Box<dyn Allocator>, AllocateError> {
        Ok(Box::new(match over.total {
            Some(total) => Uniform::paper(total, over.rounds, over.devices)?,
            None => Uniform::certified(over.rounds)?,
        }))
    }

    fn is_fixed(&self) -> bool {
        true
    }
}

/// Equal costs.
#[derive(Clone, Debug)]
pub struct Uniform {
    rounds: u32,
    /// ε^T and K on the paper's basis.
    pot: Option<(f64, u32)>,
}

impl Uniform {
    /// ε_k = ε^T/(T·K) in each of T rounds: what the paper calls uniform allocation. Nothing is
    /// left after round T.
    pub fn paper(total_epsilon: f64, rounds: u32, devices: u32) -> Result<Self, AllocateError> {
        let pot = (positive("total_epsilon", total_epsilon)?, count("devices", devices)?);
        Ok(Self { rounds: count("rounds", rounds)?, pot: Some(pot) })
    }

    /// left_k/(T−t+1): a T-th of the capacity each round, and what missed rounds left over is
    /// spread over the rounds to go.
    pub fn certified(rounds: u32) -> Result<Self, AllocateError> {
        Ok(Self { rounds: count("rounds", rounds)?, pot: None })
    }
}

impl Allocator for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn reads_updates(&self) -> bool {
        false
    }

    fn allocate(&mut self, round: u32, asks: &[Ask]) -> Costs {
        let Some((total_epsilon, devices)) = self.pot else {
            let to_go = rounds_left(self.rounds, round);
            return Costs::plain(asks.iter().map(|ask| ask.left.max(0.0) / to_go).collect(), None);
        };
        let budget = if round > self.rounds { 0.0 } else { total_epsilon / f64::from(self.rounds) };
        Costs::plain(vec![budget / f64::from(devices); asks.len()], Some(budget))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_equal_over_rounds_and_devices() {
        let asks = [(0, 1.0), (3, 0.5)].map(|(device, left)| Ask {
            device,
            left,
            weight: 0.5,
            sensitivity: 1.0,
        });
        let mut paper = Uniform::paper(6.0, 3, 4).unwrap();
        assert_eq!(paper.allocate(2, &asks), Costs::plain(vec![0.5, 0.5], Some(2.0)));
        assert_eq!(paper.allocate(4, &asks), Costs::plain(vec![0.0, 0.0], Some(0.0)));
        let mut certified = Uniform::certified(3).unwrap();
        assert_eq!(certified.allocate(2, &asks), Costs::plain(vec![0.5, 0.25], None));
        assert_eq!(certified.allocate(3, &asks), Costs::plain(vec![1.0, 0.5], None));
    }
}
