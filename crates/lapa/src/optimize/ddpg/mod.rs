//! Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv 1509.02971), as in the paper's
//! Section IV: an actor proposes amplitudes, a critic learns what they are worth.
//!
//! `control.ddpg.variant` = "printed" is the paper's form: amplitudes as actions, −L as reward,
//! Gaussian noise on every action, and the actor's own last output as the result. Points 1 to 6 below
//! are then not so, but for T_th and amplitudes in a state, which keep their units; an L above
//! ten times that of equal power counts as that.
//!
//! State s_n = [p^(n−1), T_th, L^(n−1)], action p^(n), reward by L(p^(n)), replay, target networks,
//! Gaussian exploration. `variant` = "td3" has the tuned actions, rewards and states, and learns as
//! Fujimoto et al. (2018, arXiv 1802.09477). The default, "tuned", differs from the paper:
//!
//! 1. The actor's tanh stands for power in decibels around equal power (`task.rs`), since links
//!    differ by orders of magnitude. The projection on the limits follows, as in the paper.
//! 2. The reward is −ln(L/L_equal), where the paper has −L: its size is the same whatever the noise,
//!    and an infinite objective stays finite. The order of allocations is the same.
//! 3. States are normalized: amplitudes by √P_0, T_th by T (its mean, where it differs between
//!    devices), L as in the reward.
//! 4. The first actions are drawn at random, so that the critic knows more than the first policy;
//!    exploration then shrinks geometrically, so that the search ends near the policy's best.
//! 5. Half of the exploring steps start from the best action so far, the others from the actor's,
//!    and each moves a few devices only, now and then one of them anywhere (`explore.rs`): a device
//!    that switches early and one that never does are far apart, with worse powers between them.
//!    Off-policy learning takes any actions. On P1 this search comes close by itself, with learning
//!    switched off; so what the actor alone proposes is reported beside
//!    ([`Ddpg::policy_objective`]).
//! 6. The result is the best allocation that was evaluated. The last of them is what the actor
//!    proposes without exploration.
//! 7. Υ is 0 unless asked for otherwise: P1 has no future.

mod adam;
mod agent;
mod config;
mod explore;
mod half;
mod replay;
mod saved;
mod task;

use std::ops::ControlFlow;

use lapa_privacy::OutOfRange;

pub use agent::{Agent, AgentError, Learning, Losses, Parameters, Sizes};
pub use config::{DdpgConfig, DdpgVariant};
pub use replay::{Batch, Replay};
pub use saved::SavedError;

use explore::Explorer;
use task::Task;

use super::search::Search;
use super::{Objective, ObjectiveError, OptimizeError, Optimizer, Optimum, Progress};
use crate::seed::{Purpose, Stream, stream};

/// Number of this optimizer among the random streams.
const NUMBER: u64 = 4;
/// Its streams.
const INITIAL: u64 = 0;
const EXPLORATION: u64 = 1;
const REPLAY: u64 = 2;
const TWIN: u64 = 3;

/// Transitions remembered, and floats of all of them (256 MB), whichever is less.
const MOST_TRANSITIONS: u64 = 100_000;
const MOST_FLOATS: usize = 1 << 26;

/// The most random actions at first; a tenth of all steps where that is less.
const WARM_UP: u64 = 1000;

/// Deep deterministic policy gradient.
pub struct Ddpg {
    config: DdpgConfig,
    start: Option<(Sizes, Parameters)>,
    trained: Option<Agent>,
    policy_objective: Option<f64>,
}

impl Ddpg {
    /// A search from scratch.
    pub fn new(config: DdpgConfig) -> Result<Self, OutOfRange> {
        config.check_ranges()?;
        Ok(Self { config, start: None, trained: None, policy_objective: None })
    }

    /// A search that starts with what an agent has learned: without random actions first, and
    /// with the agent's own width.
    pub fn with_agent(config: DdpgConfig, agent: &Agent) -> Result<Self, OutOfRange> {
        let sizes = agent.sizes();
        if sizes != Task::sizes(sizes.actions, sizes.hidden) {
            let (name, allowed) = ("states of the agent", "two more than the number of actions");
            return Err(OutOfRange { name, value: sizes.states as f64, allowed });
        }
        let start = Some((sizes, agent.parameters()));
        Ok(Self { start, ..Self::new(config)? })
    }

    /// Sizes of an agent for `devices` devices.
    pub fn sizes(devices: usize, config: &DdpgConfig) -> Sizes {
        Task::sizes(devices, config.hidden as usize)
    }

    /// The agent of the last search.
    pub fn agent(&self) -> Option<&Agent> {
        self.trained.as_ref()
    }

    /// Objective of the last search's actor at its end, without exploration.
    pub fn policy_objective(&self) -> Option<f64> {
        self.policy_objective
    }

    /// The agent at the start of a search.
    fn first_agent(&self, devices: usize, seed: u64) -> Result<Agent, ObjectiveError> {
        let learning = self.config.learning();
        let agent = match &self.start {
            Some((sizes, _)) if sizes.actions != devices => {
                return Err(ObjectiveError::Length { given: sizes.actions, devices });
            }
            Some((sizes, parameters)) => {
                Agent::with_parameters(*sizes, learning, parameters.clone())
            }
            None => {
                let sizes = Self::sizes(devices, &self.config);
                Agent::new(sizes, learning, &mut random(seed, INITIAL))
            }
        };
        let agent = agent.expect("parameters, limits and agents were checked");
        Ok(match self.config.variant {
            DdpgVariant::Td3 => agent.with_twin(&mut random(seed, TWIN)),
            DdpgVariant::Tuned | DdpgVariant::Printed => agent.without_twin(),
        })
    }
}

fn random(seed: u64, what_for: u64) -> Stream {
    stream(seed, Purpose::Power, NUMBER, what_for)
}

/// Capacity of the replay buffer, in transitions, for a search of `steps` steps.
fn replay_capacity(steps: u64, Sizes { states, actions, .. }: Sizes) -> usize {
    let most = steps.min(MOST_TRANSITIONS) as usize;
    most.min(MOST_FLOATS / (2 * states + actions + 1)).max(1)
}

impl Optimizer for Ddpg {
    fn name(&self) -> &'static str {
        "ddpg"
    }

    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError> {
        let DdpgConfig { variant, steps, .. } = self.config;
        let (batch_size, all_steps) = (self.config.batch as usize, self.config.all_steps());
        let mut search = Search::new(objective, on_progress, all_steps + 2);
        let limits = search.limits().clone();
        let devices = limits.devices();
        let mut agent = self.first_agent(devices, seed)?;
        let Sizes { states, actions, .. } = agent.sizes();
        let mut draws = random(seed, REPLAY);

        let mut amplitudes = limits.equal();
        let equal = search.evaluation(&amplitudes)?;
        let (rounds, equals) = (search.rounds(), amplitudes.clone());
        let task = Task::new(variant, limits, rounds, equals, equal.objective);
        let mut first_state = Vec::new();
        task.state(&amplitudes, &equal, &mut first_state);

        let capacity = replay_capacity(all_steps, agent.sizes());
        let mut replay = Replay::new(states, actions, capacity);
        let warm_up = if self.start.is_some() { 0 } else { WARM_UP.min(all_steps / 10) };
        let exploration = random(seed, EXPLORATION);
        let mut explorer = Explorer::new(variant, warm_up, all_steps, exploration);
        // Batches may be larger than what there is to draw from; a tenth of it is enough to begin.
        let first_update = batch_size.min(capacity.div_ceil(10));
        let (mut batch, mut action) = (Batch::default(), Vec::new());
        let (mut state, mut next_state) = (Vec::new(), Vec::new());
        for step in 0..all_steps {
            if step % u64::from(steps) == 0 {
                state.clone_from(&first_state);
            }
            explorer.act(step, &mut agent, &state, &mut action);
            task.amplitudes(&action, &mut amplitudes);
            let evaluation = search.evaluation(&amplitudes)?;
            explorer.remember(evaluation.objective, &action);
            task.state(&amplitudes, &evaluation, &mut next_state);
            replay.push(&state, &action, task.reward(evaluation.objective), &next_state);
            std::mem::swap(&mut state, &mut next_state);
            if replay.len() >= first_update {
                replay.sample(batch_size, &mut draws, &mut batch);
                if variant == DdpgVariant::Td3 {
                    batch.smooth(&mut draws);
                }
                agent.update(&batch);
            }
        }
        task.amplitudes(agent.act(&state), &mut amplitudes);
        let policy = search.evaluation(&amplitudes)?;
        self.policy_objective = Some(policy.objective);
        self.trained = Some(agent);
        match variant {
            DdpgVariant::Printed => search.finish_at(amplitudes, policy, self.name()),
            DdpgVariant::Tuned | DdpgVariant::Td3 => search.finish(self.name()),
        }
    }
}
