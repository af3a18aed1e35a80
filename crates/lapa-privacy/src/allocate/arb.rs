//! Allocator arb: a budget that follows the norm of the global gradient.

use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AllocateError, Allocator, AllocatorState, Ask, BuildAllocator, Costs, Horizon, Transcript,
    rounds_left,
};
use crate::range::{check, count, not_negative, positive};

/// Range of a round's budget relative to the uniform one.
const RANGE: (f64, f64) = (0.5, 4.0);

/// Parameters of allocator arb.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ArbConfig {
    /// Largest factor between the budgets of two rounds.
    #[schemars(range(min = 1, max = 10))]
    pub step: f64,
}

impl Default for ArbConfig {
    fn default() -> Self {
        Self { step: 1.1 }
    }
}

impl BuildAllocator for ArbConfig {
    fn build(&self, over: Horizon) -> Result<Box<dyn Allocator>, AllocateError> {
        Ok(Box::new(match over.total {
            Some(total) => Arb::paper(total, over.rounds, over.devices, *self)?,
            None => Arb::certified(over.rounds, *self)?,
        }))
    }
}

/// The adaptive budget that the paper compares with: one budget for all devices, raised while the
/// global gradient shrinks and lowered while it grows.
///
/// Differs from the paper: it says only that the next round's budget is raised or lowered, with no
/// difference between devices. The rule is our reconstruction of that.
#[derive(Clone, Debug)]
pub struct Arb {
    rounds: u32,
    config: ArbConfig,
    /// ε^T and K on the paper's basis.
    pot: Option<(f64, u32)>,
    memory: Memory,
}

/// Memory of ARB between rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Memory {
    /// The budget in units of the uniform one.
    factor: f64,
    /// ‖g‖ of the last round.
    norm: Option<f64>,
    /// Σ ε_t; 0 on the certified basis.
    spent: f64,
}

impl Arb {
    /// ε_1 = ε^T/T and ε_{t+1} = ε_t·clip(‖g_{t−1}‖/‖g_t‖, 1/s, s) with step s, within 0.5 and 4
    /// times ε^T/T, never past ε^T, split equally over K devices. Once ε^T is spent, costs are 0.
    pub fn paper(
        total_epsilon: f64,
        rounds: u32,
        devices: u32,
        config: ArbConfig,
    ) -> Result<Self, AllocateError> {
        let pot = (positive("total_epsilon", total_epsilon)?, count("devices", devices)?);
        Ok(Self { pot: Some(pot), ..Self::certified(rounds, config)? })
    }

    /// The same factor on left_k/(T−t+1), never past left_k; round T spends all that is left.
    pub fn certified(rounds: u32, config: ArbConfig) -> Result<Self, AllocateError> {
        check("step", config.step, (1.0..=10.0).contains(&config.step), "a number from 1 to 10")?;
        let memory = Memory { factor: 1.0, norm: None, spent: 0.0 };
        Ok(Self { rounds: count("rounds", rounds)?, config, pot: None, memory })
    }
}

/// The next factor: clipped twice, and unchanged if both norms are 0.
fn next_factor(step: f64, factor: f64, before: f64, now: f64) -> f64 {
    let ratio = if before == now { 1.0 } else { before / now };
    (factor * ratio.clamp(1.0 / step, step)).clamp(RANGE.0, RANGE.1)
}

impl Allocator for Arb {
    fn name(&self) -> &'static str {
        "arb"
    }

    fn allocate(&mut self, round: u32, asks: &[Ask]) -> Costs {
        let Some((total, devices)) = self.pot else {
            let factor = if round >= self.rounds { 1.0 } else { self.memory.factor };
            let to_go = rounds_left(self.rounds, round);
            let cost = |ask: &Ask| (factor * ask.left.max(0.0) / to_go).min(ask.left.max(0.0));
            return Costs::plain(asks.iter().map(cost).collect(), None);
        };
        let uniform = total / f64::from(self.rounds);
        let budget = (self.memory.factor * uniform).min(total - self.memory.spent).max(0.0);
        self.memory.spent += budget;
        Costs::plain(vec![budget / f64::from(devices); asks.len()], Some(budget))
    }

    fn observe(&mut self, transcript: &Transcript<'_>, _: &mut dyn Rng) {
        if transcript.devices.is_empty() {
            return;
        }
        debug_assert!(transcript.global.iter().all(|value| value.is_finite()));
        let norm = transcript.global.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        if let Some(before) = self.memory.norm.replace(norm) {
            let factor = self.memory.factor;
            self.memory.factor = next_factor(self.config.step, factor, before, norm);
        }
    }

    fn state(&self) -> AllocatorState {
        AllocatorState::new(self.name(), &self.memory, Vec::new())
    }

    fn restore(&mut self, state: AllocatorState) -> Result<(), AllocateError> {
        let memory: Memory = state.scalars(self.name())?;
        let inside = (RANGE.0..=RANGE.1).contains(&memory.factor);
        check("factor", memory.factor, inside, "a number from 0.5 to 4")?;
        if let Some(norm) = memory.norm {
            not_negative("norm", norm)?;
        }
        not_negative("spent budget", memory.spent)?;
        self.memory = memory;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;
    use crate::allocate::DeviceTranscript;

    #[test]
    fn factors_are_clipped_twice() {
        assert_eq!(next_factor(1.1, 1.0, 1.05, 1.0), 1.05);
        assert_eq!(next_factor(1.1, 1.0, 3.0, 1.0), 1.1);
        assert_eq!(next_factor(1.1, 1.0, 1.0, 3.0), 1.0 / 1.1);
        assert_eq!(next_factor(1.1, 3.9, 3.0, 1.0), 4.0);
        assert_eq!(next_factor(1.1, 0.51, 1.0, 3.0), 0.5);
        assert_eq!(next_factor(1.1, 2.0, 0.0, 0.0), 2.0);
        assert_eq!(next_factor(1.1, 1.0, 1.0, 0.0), 1.1);
        assert_eq!(next_factor(1.1, 1.0, 0.0, 1.0), 1.0 / 1.1);
        assert_eq!(next_factor(2.0, 1.0, 3.0, 1.0), 2.0);
        assert_eq!(next_factor(1.0, 1.0, 3.0, 1.0), 1.0);
    }

    /// ε^T = 8, T = 16, K = 2: the closed form of both extremes.
    #[test]
    fn budgets_follow_the_norm_up_to_the_total() {
        let (rising, falling) = (budgets(0.5), budgets(2.0));
        let mut spent = 0.0;
        // Two rounds are seen before the first change.
        for (power, (up, down)) in [0].into_iter().chain(0..).zip(rising.iter().zip(&falling)) {
            let wanted = (0.5 * 1.1f64.powi(power)).min(8.0 - spent);
            assert!((up - wanted).abs() < 1e-12, "{rising:?}");
            spent += up;
            let wanted = (0.5 * 1.1f64.powi(-power)).max(0.25);
            assert!((down - wanted).abs() < 1e-12, "{falling:?}");
        }
        assert!((spent - 8.0).abs() < 1e-12 && rising[15] == 0.0);
    }

    /// Round budgets when the norm of the global gradient changes by `ratio` each round.
    fn budgets(ratio: f32) -> Vec<f64> {
        let mut arb = Arb::paper(8.0, 16, 2, ArbConfig::default()).unwrap();
        let asks = [0, 1].map(|device| Ask { device, left: 0.0, weight: 0.5, sensitivity: 1.0 });
        let mut gradient = [1.0];
        let mut round_budgets = Vec::new();
        for round in 1..=16 {
            let decision = arb.allocate(round, &asks);
            let budget = decision.round_budget.unwrap();
            assert_eq!(decision.by_device, [budget / 2.0; 2]);
            round_budgets.push(budget);
            let device =
                DeviceTranscript { device: 0, weight: 1.0, gradient: &gradient, sigma: 1.0 };
            let transcript = Transcript { round, devices: &[device], global: &gradient };
            arb.observe(&transcript, &mut ChaCha12Rng::seed_from_u64(0));
            gradient[0] *= ratio;
        }
        round_budgets
    }
}
