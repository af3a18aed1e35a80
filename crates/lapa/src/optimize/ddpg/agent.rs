//! Actor, critic and their targets, for any task with continuous actions in [−1, 1].

use std::ops::Range;
use std::sync::Arc;

use super::adam::Adam;
use super::half::Half;
use super::replay::Batch;
use crate::model::{Layer, Network, Shape};
use crate::seed::Stream;

/// Lengths of the vectors that an agent knows, and the width of both hidden layers of its networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sizes {
    /// Numbers in a state.
    pub states: usize,
    /// Numbers in an action.
    pub actions: usize,
    /// Width of the hidden layers.
    pub hidden: usize,
}

/// Error of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// No states, actions or width, or too many.
    #[error("{name} = {value}: expected 1 to {}", Sizes::MOST)]
    Size {
        /// Name of the size.
        name: &'static str,
        /// Its value.
        value: usize,
    },
    /// Parameters of other networks.
    #[error("{network}: {given} parameters, expected {expected}")]
    Parameters {
        /// Name of the network.
        network: &'static str,
        /// Parameters given.
        given: usize,
        /// Parameters it has.
        expected: usize,
    },
}

/// The parameters of an agent's networks: of one layer after the other, weights row by row, then
/// biases.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
pub struct Parameters {
    /// μ
    pub actor: Vec<f32>,
    /// Q
    pub critic: Vec<f32>,
    /// μ'
    pub actor_target: Vec<f32>,
    /// Q'
    pub critic_target: Vec<f32>,
    /// The second critic and its target, which make it TD3.
    #[serde(default)]
    pub twin: Option<[Vec<f32>; 2]>,
}

impl Sizes {
    /// The most that each may be.
    pub const MOST: usize = 1 << 31;

    pub(super) fn check(self) -> Result<Self, AgentError> {
        let fields = [("states", self.states), ("actions", self.actions), ("hidden", self.hidden)];
        match fields.into_iter().find(|(_, value)| !(1..=Self::MOST).contains(value)) {
            Some((name, value)) => Err(AgentError::Size { name, value }),
            None => Ok(self),
        }
    }

    /// The actor and the critic.
    ///
    /// # Panics
    /// If the sizes were not checked.
    pub(super) fn networks(self) -> (Network, Network) {
        let hidden = [
            Layer::Linear { outputs: self.hidden },
            Layer::Relu,
            Layer::Linear { outputs: self.hidden },
            Layer::Relu,
        ];
        let network = |inputs: usize, last: &[Layer]| {
            Network::new(Shape::new(inputs, 1, 1), &[&hidden, last].concat())
                .expect("layers of at least one output fit any vector")
        };
        let actor = network(self.states, &[Layer::Linear { outputs: self.actions }, Layer::Tanh]);
        (actor, network(self.states + self.actions, &[Layer::Linear { outputs: 1 }]))
    }
}

/// Learning parameters of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learning {
    /// Discount factor Υ from 0 to below 1. With 0 the target networks are not asked.
    pub discount: f64,
    /// Soft update τ of the targets, above 0 up to 1.
    pub soft_update: f64,
    /// Learning rate of the actor.
    pub actor_rate: f64,
    /// Learning rate of the critic.
    pub critic_rate: f64,
}

/// Losses before an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// (1/N) Σ (y_i − Q(s_i, a_i))²
    pub critic: f64,
    /// −(1/N) Σ Q(s_i, μ(s_i)), by the critic after its own step; `None` while the actor waits.
    pub actor: Option<f64>,
}

/// A network that learns, and the one that follows it.
pub(super) struct Learner {
    pub parameters: Vec<f32>,
    pub target: Vec<f32>,
    adam: Adam,
    gradient: Vec<f32>,
}

impl Learner {
    fn new(parameters: Vec<f32>, target: Vec<f32>, rate: f64) -> Self {
        let len = parameters.len();
        Self { parameters, target, adam: Adam::new(len, rate), gradient: vec![0.0; len] }
    }

    /// A step of Adam against the sum of the halves' gradients, in their order.
    fn step<'a>(&mut self, mut gradients: impl Iterator<Item = &'a [f32]>) {
        if let Some(first) = gradients.next() {
            self.gradient.copy_from_slice(first);
        }
        for other in gradients {
            self.gradient.iter_mut().zip(other).for_each(|(sum, &other)| *sum += other);
        }
        self.adam.step(&mut self.parameters, &self.gradient);
    }

    /// θ' ← τθ + (1 − τ)θ'
    fn follow(&mut self, soft_update: f32) {
        for (target, &parameter) in self.target.iter_mut().zip(&self.parameters) {
            *target = soft_update * parameter + (1.0 - soft_update) * *target;
        }
    }
}

/// Actor, critic and targets.
pub struct Agent {
    sizes: Sizes,
    learning: Learning,
    actor: Learner,
    critic: Learner,
    /// TD3's second critic (Fujimoto, van Hoof & Meger 2018, arXiv 1802.09477).
    twin: Option<Learner>,
    /// Updates so far.
    updates: u64,
    halves: [Half; 2],
}

/// Updates of TD3's critics for each one of its actor and targets.
const DELAY: u64 = 2;

/// Multiply-adds of a layer from which a batch is worth two threads: 128 × 128, batch 128.
const WORTH_TWO_THREADS: usize = 1 << 21;

impl Agent {
    /// An agent that knows nothing; its targets are copies. The last layers start a hundred times
    /// smaller than the others, so that first actions are near 0 and values near each other.
    pub fn new(sizes: Sizes, learning: Learning, rng: &mut Stream) -> Result<Self, AgentError> {
        let (actor, critic) = sizes.check()?.networks();
        let (actor, critic) = (initial(&actor, rng), initial(&critic, rng));
        let (actor_target, critic_target) = (actor.clone(), critic.clone());
        let parameters = Parameters { actor, critic, actor_target, critic_target, twin: None };
        Self::with_parameters(sizes, learning, parameters)
    }

    /// The same agent with a second critic: TD3. One that has two keeps them.
    pub fn with_twin(mut self, rng: &mut Stream) -> Self {
        let twin = self.twin.take().unwrap_or_else(|| {
            let critic = initial(&self.sizes.networks().1, rng);
            Learner::new(critic.clone(), critic, self.learning.critic_rate)
        });
        self.twin = Some(twin);
        self
    }

    /// The same agent with one critic: DDPG.
    pub fn without_twin(mut self) -> Self {
        self.twin = None;
        self
    }

    /// An agent with these parameters.
    pub fn with_parameters(
        sizes: Sizes,
        learning: Learning,
        parameters: Parameters,
    ) -> Result<Self, AgentError> {
        let (actor, critic) = sizes.check()?.networks();
        let Parameters { actor: mu, critic: q, actor_target, critic_target, twin } = parameters;
        let [second, second_target] = twin.as_ref().map_or([&q, &critic_target], |[a, b]| [a, b]);
        for (network, given, expected) in [
            ("actor", &mu, actor.parameter_count()),
            ("critic", &q, critic.parameter_count()),
            ("actor_target", &actor_target, actor.parameter_count()),
            ("critic_target", &critic_target, critic.parameter_count()),
            ("twin", second, critic.parameter_count()),
            ("twin_target", second_target, critic.parameter_count()),
        ] {
            if given.len() != expected {
                return Err(AgentError::Parameters { network, given: given.len(), expected });
            }
        }
        let (actor, critic) = (Arc::new(actor), Arc::new(critic));
        Ok(Self {
            sizes,
            learning,
            actor: Learner::new(mu, actor_target, learning.actor_rate),
            critic: Learner::new(q, critic_target, learning.critic_rate),
            twin: twin.map(|[q, target]| Learner::new(q, target, learning.critic_rate)),
            updates: 0,
            halves: [(); 2].map(|()| Half::new(sizes, &actor, &critic)),
        })
    }

    /// Its sizes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The parameters of its networks.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            actor: self.actor.parameters.clone(),
            critic: self.critic.parameters.clone(),
            actor_target: self.actor.target.clone(),
            critic_target: self.critic.target.clone(),
            twin: self.twin.as_ref().map(|twin| [twin.parameters.clone(), twin.target.clone()]),
        }
    }

    /// μ(s), each number in [−1, 1].
    ///
    /// # Panics
    /// If the state has another length.
    pub fn act(&mut self, state: &[f32]) -> &[f32] {
        self.halves[0].actor.forward(&self.actor.parameters, state, 1)
    }

    /// Q(s, a)
    ///
    /// # Panics
    /// If state or action have another length.
    pub fn value(&mut self, state: &[f32], action: &[f32]) -> f32 {
        self.halves[0].value(&self.critic.parameters, state, action)
    }

    /// One step of the critic, one of the actor, one of the targets; TD3 takes those of actor and
    /// targets at every second update. Large batches go to two threads by halves, whose gradients
    /// are added in order: the result does not depend on threads.
    ///
    /// # Panics
    /// If the batch is empty or its lengths do not fit.
    pub fn update(&mut self, batch: &Batch) -> Losses {
        let n = batch.rewards.len();
        assert!(n > 0, "an empty batch teaches nothing");
        let Self { sizes, learning, actor, critic, twin, updates, halves } = self;
        let layer = (sizes.states + sizes.actions).max(sizes.hidden);
        let threads = 1 + usize::from(n * layer * sizes.hidden >= WORTH_TWO_THREADS && n > 1);
        let halves = &mut halves[..threads];

        let loss = over_batch(halves, n, |half, part| {
            let critics = [Some(&*critic), twin.as_ref()];
            half.set_targets(*learning, actor, critics, batch, part.clone());
            half.critic_gradient(critic, batch, part)
        });
        critic.step(halves.iter().map(|half| half.critic_gradient.as_slice()));
        let critic_loss = loss / n as f64;
        *updates += 1;
        if let Some(twin) = twin {
            over_batch(halves, n, |half, part| half.critic_gradient(twin, batch, part));
            twin.step(halves.iter().map(|half| half.critic_gradient.as_slice()));
            if !updates.is_multiple_of(DELAY) {
                return Losses { critic: critic_loss, actor: None };
            }
            twin.follow(learning.soft_update as f32);
        }
        let value =
            over_batch(halves, n, |half, part| half.actor_gradient(actor, critic, batch, part));
        actor.step(halves.iter().map(|half| half.actor_gradient.as_slice()));
        critic.follow(learning.soft_update as f32);
        actor.follow(learning.soft_update as f32);
        Losses { critic: critic_loss, actor: Some(-value / n as f64) }
    }
}

/// The first parameters of a network, its last layer a hundredth of the usual.
fn initial(network: &Network, rng: &mut Stream) -> Vec<f32> {
    let mut parameters = network.initial_parameters(rng);
    for last in network.tensors().iter().rev().take(2) {
        parameters[last.range.clone()].iter_mut().for_each(|value| *value *= 0.01);
    }
    parameters
}

/// The sum of `work` over the batch: all of it at once, or one half after the other.
fn over_batch(
    halves: &mut [Half],
    n: usize,
    work: impl Fn(&mut Half, Range<usize>) -> f64 + Sync,
) -> f64 {
    match halves {
        [first, second] => {
            let (first, second) = rayon::join(|| work(first, 0..n / 2), || work(second, n / 2..n));
            first + second
        }
        _ => work(&mut halves[0], 0..n),
    }
}
