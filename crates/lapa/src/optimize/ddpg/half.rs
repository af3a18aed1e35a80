//! Half of a batch: the part of an update that one thread computes.

use std::ops::Range;
use std::sync::Arc;

use super::agent::{Learner, Learning, Sizes};
use super::replay::Batch;
use crate::model::{Function, Network};

/// Memory for the networks of an agent over half of a batch, and the gradients of that half.
pub(super) struct Half {
    sizes: Sizes,
    pub actor: Function,
    pub critic: Function,
    /// States and actions side by side, as the critic reads them.
    inputs: Vec<f32>,
    /// y_i
    targets: Vec<f32>,
    /// Q'(s_i', ·), the least of both critics.
    values: Vec<f32>,
    /// The gradient in a network's outputs.
    in_outputs: Vec<f32>,
    pub critic_gradient: Vec<f32>,
    pub actor_gradient: Vec<f32>,
}

impl Half {
    pub fn new(sizes: Sizes, actor: &Arc<Network>, critic: &Arc<Network>) -> Self {
        Self {
            sizes,
            actor: Function::new(Arc::clone(actor)),
            critic: Function::new(Arc::clone(critic)),
            inputs: Vec::new(),
            targets: Vec::new(),
            values: Vec::new(),
            in_outputs: Vec::new(),
            critic_gradient: vec![0.0; critic.parameter_count()],
            actor_gradient: vec![0.0; actor.parameter_count()],
        }
    }

    /// Q(s, a) of a single state and action.
    pub fn value(&mut self, critic: &[f32], state: &[f32], action: &[f32]) -> f32 {
        side_by_side(self.sizes, state, action, &mut self.inputs);
        self.critic.forward(critic, &self.inputs, 1)[0]
    }

    /// Targets y_i = r_i + ΥQ'(s_i', μ'(s_i')) of the transitions `part` of a batch. With a twin, Q' is
    /// the lower of both targets, at μ'(s_i') with noise, within [−1, 1].
    pub fn set_targets(
        &mut self,
        learning: Learning,
        actor: &Learner,
        [critic, twin]: [Option<&Learner>; 2],
        batch: &Batch,
        part: Range<usize>,
    ) {
        let n = part.len();
        let Sizes { states, actions, .. } = self.sizes;
        self.targets.clear();
        self.targets.extend_from_slice(&batch.rewards[part.clone()]);
        if learning.discount == 0.0 {
            return;
        }
        let next_states = rows(&batch.next_states, &part, states);
        let next_actions = self.actor.forward(&actor.target, next_states, n);
        side_by_side(self.sizes, next_states, next_actions, &mut self.inputs);
        if !batch.smoothing.is_empty() {
            let noise = rows(&batch.smoothing, &part, actions).chunks_exact(actions);
            for (input, noise) in self.inputs.chunks_exact_mut(states + actions).zip(noise) {
                let next_action = input[states..].iter_mut();
                next_action.zip(noise).for_each(|(a, noise)| *a = (*a + noise).clamp(-1.0, 1.0));
            }
        }
        self.values.clear();
        self.values.resize(n, f32::INFINITY);
        for critic in [critic, twin].into_iter().flatten() {
            let values = self.critic.forward(&critic.target, &self.inputs, n);
            self.values
                .iter_mut()
                .zip(values)
                .for_each(|(least, &value)| *least = least.min(value));
        }
        for (target, &value) in self.targets.iter_mut().zip(&self.values) {
            *target += learning.discount as f32 * value;
        }
    }

    /// The gradient of (1/N) Σ (y_i − Q(s_i, a_i))² in a critic, of the transitions `part` of a
    /// batch of N, whose targets are set. Returns the sum of the squares.
    pub fn critic_gradient(&mut self, critic: &Learner, batch: &Batch, part: Range<usize>) -> f64 {
        let n = part.len();
        let Sizes { states, actions, .. } = self.sizes;
        let (states, actions) =
            (rows(&batch.states, &part, states), rows(&batch.actions, &part, actions));
        side_by_side(self.sizes, states, actions, &mut self.inputs);
        let values = self.critic.forward(&critic.parameters, &self.inputs, n);
        let scale = 2.0 / batch.rewards.len() as f32;
        self.in_outputs.clear();
        let mut loss = 0.0;
        for (&value, &target) in values.iter().zip(&self.targets) {
            let error = value - target;
            loss += f64::from(error) * f64::from(error);
            self.in_outputs.push(scale * error);
        }
        self.critic.gradient(&critic.parameters, &self.in_outputs, &mut self.critic_gradient);
        loss
    }

    /// The gradient of −(1/N) Σ Q(s_i, μ(s_i)) in the actor, of the transitions `part` of a batch
    /// of N: the deterministic policy gradient, downhill. Returns Σ Q(s_i, μ(s_i)).
    pub fn actor_gradient(
        &mut self,
        actor: &Learner,
        critic: &Learner,
        batch: &Batch,
        part: Range<usize>,
    ) -> f64 {
        let n = part.len();
        let sizes = self.sizes;
        let states = rows(&batch.states, &part, sizes.states);
        let actions = self.actor.forward(&actor.parameters, states, n);
        side_by_side(sizes, states, actions, &mut self.inputs);
        let values = self.critic.forward(&critic.parameters, &self.inputs, n);
        let value = values.iter().map(|&value| f64::from(value)).sum();
        self.in_outputs.clear();
        self.in_outputs.resize(n, -1.0 / batch.rewards.len() as f32);
        let in_inputs = self.critic.input_gradient(&critic.parameters, &self.in_outputs);
        self.in_outputs.clear();
        for in_inputs in in_inputs.chunks_exact(sizes.states + sizes.actions) {
            self.in_outputs.extend_from_slice(&in_inputs[sizes.states..]);
        }
        self.actor.gradient(&actor.parameters, &self.in_outputs, &mut self.actor_gradient);
        value
    }
}

/// The vectors `part` of vectors of `len` numbers each.
fn rows<'a>(values: &'a [f32], part: &Range<usize>, len: usize) -> &'a [f32] {
    &values[part.start * len..part.end * len]
}

/// Each state with its action.
fn side_by_side(sizes: Sizes, states: &[f32], actions: &[f32], inputs: &mut Vec<f32>) {
    inputs.clear();
    let actions = actions.chunks_exact(sizes.actions);
    for (state, action) in states.chunks_exact(sizes.states).zip(actions) {
        inputs.extend_from_slice(state);
        inputs.extend_from_slice(action);
    }
}
