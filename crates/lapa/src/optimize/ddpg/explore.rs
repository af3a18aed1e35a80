//! Exploration: an action, changed at random.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::agent::Agent;
use super::config::DdpgVariant;
use crate::seed::Stream;

// These four were chosen by trial on experiments/control, seed 0.

/// Standard deviation of the noise on an action in [−1, 1], first and last.
const DEVIATION: (f64, f64) = (0.3, 0.01);
/// Coordinates that change, on the average: a tenth of all, or this many where that is more.
const SHARE: f64 = 0.1;
const LEAST: f64 = 1.5;
/// Share of them that are drawn anew instead of moved.
const ANEW: f64 = 0.3;

/// Standard deviation of the printed exploration, for which the paper has no number, and of TD3's.
const CONSTANT_DEVIATION: f32 = 0.1;

/// Adds Gaussian noise to every coordinate, within [−1, 1]: the paper's eq. (32).
fn explore_all(action: &mut [f32], rng: &mut Stream) {
    for a in action {
        let noise: f32 = StandardNormal.sample(rng);
        *a = (*a + CONSTANT_DEVIATION * noise).clamp(-1.0, 1.0);
    }
}

/// Moves some coordinates by Gaussian noise, within [−1, 1], and draws others anew. At least one
/// changes. `done` is how much of the search is over: the noise shrinks geometrically.
fn explore(action: &mut [f32], done: f64, rng: &mut Stream) {
    let (first, last) = DEVIATION;
    let deviation = (first * (last / first).powf(done)) as f32;
    let share = SHARE.max(LEAST / action.len() as f64);
    let sure = rng.random_range(0..action.len());
    for (index, a) in action.iter_mut().enumerate() {
        if index != sure && rng.random::<f64>() >= share {
            continue;
        }
        *a = if rng.random::<f64>() < ANEW {
            2.0 * rng.random::<f32>() - 1.0
        } else {
            let noise: f32 = StandardNormal.sample(rng);
            (*a + deviation * noise).clamp(-1.0, 1.0)
        };
    }
}

/// Source of actions during a search.
pub(super) struct Explorer {
    variant: DdpgVariant,
    warm_up: u64,
    steps: u64,
    rng: Stream,
    best: Option<(f64, Vec<f32>)>,
}

impl Explorer {
    /// Exploration over `steps`, the first `warm_up` of them at random unless it is as printed.
    pub fn new(variant: DdpgVariant, warm_up: u64, steps: u64, rng: Stream) -> Self {
        let warm_up = if variant == DdpgVariant::Printed { 0 } else { warm_up };
        Self { variant, warm_up, steps, rng, best: None }
    }

    /// The action of a step. As printed and by TD3 it is μ(s) + N; tuned, half of the exploring steps
    /// start from the best action so far.
    pub fn act(&mut self, step: u64, agent: &mut Agent, state: &[f32], action: &mut Vec<f32>) {
        action.clear();
        if step < self.warm_up {
            let devices = agent.sizes().actions;
            return action.extend((0..devices).map(|_| 2.0 * self.rng.random::<f32>() - 1.0));
        }
        if self.variant != DdpgVariant::Tuned {
            action.extend_from_slice(agent.act(state));
            return explore_all(action, &mut self.rng);
        }
        let done = (step - self.warm_up) as f64 / (self.steps - self.warm_up) as f64;
        action.extend_from_slice(match &self.best {
            Some((_, best)) if self.rng.random::<bool>() => best,
            _ => agent.act(state),
        });
        explore(action, done, &mut self.rng);
    }

    /// Remembers the best action.
    pub fn remember(&mut self, objective: f64, action: &[f32]) {
        if self.best.as_ref().is_none_or(|(worth, _)| objective < *worth) {
            self.best = Some((objective, action.to_vec()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::seed::{Purpose, stream};

    use super::super::agent::{Learning, Sizes};
    use super::*;

    #[test]
    fn some_coordinates_change_and_all_stay_in_range() {
        let mut rng = stream(1, Purpose::Power, 4, 9);
        for devices in [1, 2, 15, 200] {
            let (mut changed, rounds) = (0, 400);
            for _ in 0..rounds {
                let mut action = vec![0.99f32; devices];
                explore(&mut action, 0.5, &mut rng);
                let moved = action.iter().filter(|&&a| a != 0.99).count();
                assert!(moved >= 1 && action.iter().all(|a| (-1.0..=1.0).contains(a)));
                changed += moved;
            }
            // One for sure, the others with their probability: 6 standard deviations either side.
            let share = SHARE.max(LEAST / devices as f64).min(1.0);
            let others = (devices - 1) as f64;
            let (mean, n) = (1.0 + others * share, f64::from(rounds));
            let deviation = (others * share * (1.0 - share) / n).sqrt();
            let found = changed as f64 / n;
            assert!((found - mean).abs() <= 6.0 * deviation + 1e-9, "{found} for {mean}");
        }
    }
    /// Eq. (32): μ(s) + N with N of variance 0.1² on every coordinate, from the first step on, whatever
    /// was best. Moments of the first thousand steps and of all, each by the normal approximation,
    /// α = 10⁻⁶.
    #[test]
    fn printed_exploration_is_gaussian_around_the_actor() {
        let learning =
            Learning { discount: 0.99, soft_update: 1e-3, actor_rate: 1e-3, critic_rate: 1e-3 };
        let sizes = Sizes { states: 5, actions: 3, hidden: 8 };
        let mut rng = stream(2, Purpose::Power, 4, 9);
        let mut agent = Agent::new(sizes, learning, &mut rng).unwrap();
        let state = [0.1, 0.9, 0.3, 0.5, 1.0];
        let actor = agent.act(&state).to_vec();
        assert!(actor.iter().all(|a| a.abs() < 0.25), "no noise reaches ±1: {actor:?}");
        let steps = 20_000;
        let mut explorer = Explorer::new(DdpgVariant::Printed, 1000, steps, rng);
        explorer.remember(-1e9, &[1.0, -1.0, 1.0]);
        let (mut action, mut units) = (Vec::new(), Vec::new());
        for step in 0..steps {
            explorer.act(step, &mut agent, &state, &mut action);
            units.extend(action.iter().zip(&actor).map(|(a, mu)| f64::from(a - mu) / 0.1));
        }
        assert!(units.iter().all(|u| u.abs() < 7.0), "the best action is 7.5 away or more");
        for units in [&units[..3000], &units] {
            // E u = 0, E u² = 1, E u⁴ = 3, with their variances over one draw.
            for (power, mean, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (4, 3.0, 96.0f64)] {
                let n = units.len() as f64;
                let found = units.iter().map(|u| u.powi(power)).sum::<f64>() / n;
                let most = 4.9 * (variance / n).sqrt();
                assert!((found - mean).abs() <= most, "moment {power}: {found} for {mean}");
            }
        }
    }
}
