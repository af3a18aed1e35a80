//! The replay buffer: what happened, and batches of it.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use crate::seed::Stream;

/// The latest transitions (s, a, r, s'), up to a number of them.
pub struct Replay {
    states: usize,
    actions: usize,
    capacity: usize,
    /// s, a, r, s' of one transition after the other.
    rows: Vec<f32>,
    /// The row that is overwritten next, once all are full.
    next: usize,
}

/// Transitions as the networks read them, one after the other in each field.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
pub struct Batch {
    /// States s.
    pub states: Vec<f32>,
    /// Actions a.
    pub actions: Vec<f32>,
    /// Rewards r; as many as there are transitions.
    pub rewards: Vec<f32>,
    /// States s' that followed.
    pub next_states: Vec<f32>,
    /// Noise on the actions that follow s', as TD3 has it; empty without.
    #[serde(default)]
    pub smoothing: Vec<f32>,
}

impl Batch {
    /// Draws the noise of TD3's target policy smoothing: N(0, 0.2²) within ±0.5 (Fujimoto et al.
    /// 2018, Section 6.1).
    pub fn smooth(&mut self, rng: &mut Stream) {
        self.smoothing.clear();
        self.smoothing.extend(self.actions.iter().map(|_| {
            let noise: f32 = StandardNormal.sample(rng);
            (0.2 * noise).clamp(-0.5, 0.5)
        }));
    }
}

impl Replay {
    /// Room for `capacity` transitions, at least one, of vectors of these lengths.
    pub fn new(states: usize, actions: usize, capacity: usize) -> Self {
        Self { states, actions, capacity: capacity.max(1), rows: Vec::new(), next: 0 }
    }

    fn row_len(&self) -> usize {
        2 * self.states + self.actions + 1
    }

    /// Transitions in it.
    pub fn len(&self) -> usize {
        self.rows.len() / self.row_len()
    }

    /// True if it has no transitions.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Stores a transition; the oldest makes room for it.
    ///
    /// # Panics
    /// If the lengths are others than at first.
    pub fn push(&mut self, state: &[f32], action: &[f32], reward: f32, next_state: &[f32]) {
        assert_eq!(
            (state.len(), action.len(), next_state.len()),
            (self.states, self.actions, self.states),
            "lengths of state, action and next state"
        );
        let reward = [reward];
        let parts = [state, action, &reward, next_state];
        if self.len() < self.capacity {
            parts.iter().for_each(|part| self.rows.extend_from_slice(part));
            return;
        }
        let mut at = self.next * self.row_len();
        for part in parts {
            self.rows[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.next = (self.next + 1) % self.capacity;
    }

    /// Fills `batch` with `n` transitions, drawn uniformly with replacement.
    ///
    /// # Panics
    /// If there is none to draw.
    pub fn sample(&self, n: usize, rng: &mut Stream, batch: &mut Batch) {
        let Batch { states, actions, rewards, next_states, smoothing } = batch;
        for field in [&mut *states, &mut *actions, &mut *rewards, &mut *next_states, smoothing] {
            field.clear();
        }
        for _ in 0..n {
            let row = rng.random_range(0..self.len()) * self.row_len();
            let (state, rest) = self.rows[row..row + self.row_len()].split_at(self.states);
            let (action, rest) = rest.split_at(self.actions);
            states.extend_from_slice(state);
            actions.extend_from_slice(action);
            rewards.push(rest[0]);
            next_states.extend_from_slice(&rest[1..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Purpose, stream};

    #[test]
    fn the_oldest_transition_makes_room() {
        let mut replay = Replay::new(2, 1, 3);
        for i in 0..5 {
            let x = i as f32;
            replay.push(&[x, 10.0 + x], &[20.0 + x], 30.0 + x, &[40.0 + x, 50.0 + x]);
        }
        assert_eq!(replay.len(), 3);
        let mut batch = Batch::default();
        replay.sample(200, &mut stream(1, Purpose::Power, 4, 0), &mut batch);
        let mut seen = [false; 5];
        for i in 0..200 {
            let x = batch.states[2 * i];
            seen[x as usize] = true;
            assert_eq!(batch.states[2 * i + 1], 10.0 + x);
            assert_eq!((batch.actions[i], batch.rewards[i]), (20.0 + x, 30.0 + x));
            assert_eq!(batch.next_states[2 * i..2 * i + 2], [40.0 + x, 50.0 + x]);
        }
        assert_eq!(seen, [false, false, true, true, true]);
    }
}
