//! Parameters of DDPG.

use lapa_privacy::OutOfRange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{BuildOptimizer, Given, Optimizer};
use super::Ddpg;
use super::agent::Learning;

/// The most of each count; beyond it a slip is more likely than a plan.
const MOST: u32 = 1 << 20;
/// The most bytes of all networks and a batch: 4 GiB.
const MOST_BYTES: f64 = (1u64 << 32) as f64;

/// Parameters of DDPG.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DdpgConfig {
    /// Form of the algorithm.
    pub variant: DdpgVariant,
    /// Episodes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub episodes: u32,
    /// Steps of an episode: each is one evaluation and one update.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub steps: u32,
    /// Width of the two hidden layers of actor and critic.
    #[schemars(range(min = 1, max = 4096))]
    pub hidden: u32,
    /// Transitions in a batch.
    #[schemars(range(min = 1, max = 65_536))]
    pub batch: u32,
    /// Discount factor, the paper's Υ.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub discount: f64,
    /// Soft update τ of the target networks. The paper has 0.001.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub soft_update: f64,
    /// Learning rate of the actor.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub actor_rate: f64,
    /// Learning rate of the critic.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub critic_rate: f64,
}

impl Default for DdpgConfig {
    /// An allocation is worth the same whatever came before, so there is no future to discount. On
    /// three problems like P1, five seeds each, 0.99 ended 3.0 % above the optimum on average, 0
    /// ended 0.9 %. The actor's rate is ten times the usual 10⁻⁴: it then keeps up with what the
    /// critic learns in 40,000 steps.
    fn default() -> Self {
        Self {
            variant: DdpgVariant::default(),
            episodes: 200,
            steps: 200,
            hidden: 64,
            batch: 64,
            discount: 0.0,
            soft_update: 0.005,
            actor_rate: 1e-3,
            critic_rate: 1e-3,
        }
    }
}

/// A form of DDPG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DdpgVariant {
    /// Actions in decibels, a logarithmic reward, a local search beside the actor. The result is the
    /// best powers that were tried.
    #[default]
    Tuned,
    /// As the paper prints it: actions are amplitudes, the reward is minus the objective, exploration
    /// is Gaussian. The result is the actor's own last output.
    Printed,
    /// Twin delayed DDPG: two critics, of which the lower counts, targets with noise, an actor that
    /// learns at every second step. Actions and reward as tuned, Gaussian exploration around the
    /// actor. The result is the best powers that were tried. Its parts beside the delay need a
    /// discount above 0.
    Td3,
}

impl BuildOptimizer for DdpgConfig {
    fn build(&self, _given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange> {
        Ok(Box::new(Ddpg::new(*self)?))
    }

    /// Refuses numbers without meaning, and networks and batches that memory should not hold.
    fn check(&self, devices: usize) -> Result<(), OutOfRange> {
        self.check_ranges()?;
        let (devices, hidden) = (devices as f64, f64::from(self.hidden));
        // Actor and critic, each with target, moments and gradients; what they see of a batch.
        let parameters = hidden * (4.0 * devices + 2.0 * hidden + 8.0);
        let value = 4.0 * (8.0 * parameters + 8.0 * f64::from(self.batch) * (devices + hidden));
        if value <= MOST_BYTES {
            return Ok(());
        }
        let name = "bytes for control.ddpg.hidden and control.ddpg.batch with this many devices";
        let allowed = "at most 4294967296: lower them, or the number of devices";
        Err(OutOfRange { name, value, allowed })
    }
}

impl DdpgConfig {
    /// Learning parameters of the agent.
    pub fn learning(&self) -> Learning {
        let Self { discount, soft_update, actor_rate, critic_rate, .. } = *self;
        Learning { discount, soft_update, actor_rate, critic_rate }
    }

    /// Steps in all.
    pub(super) fn all_steps(&self) -> u64 {
        u64::from(self.episodes) * u64::from(self.steps)
    }

    pub(super) fn check_ranges(&self) -> Result<(), OutOfRange> {
        let natural = |name, count: u32| {
            (name, f64::from(count), (1..=MOST).contains(&count), "an integer from 1 to 1048576")
        };
        let share = |name, x| (name, x, x > 0.0 && x <= 1.0, "a number above 0 and at most 1");
        let is_discount = (0.0..1.0).contains(&self.discount);
        let checks = [
            natural("control.ddpg.episodes", self.episodes),
            natural("control.ddpg.steps", self.steps),
            natural("control.ddpg.hidden", self.hidden),
            natural("control.ddpg.batch", self.batch),
            ("control.ddpg.discount", self.discount, is_discount, "a number from 0 to below 1"),
            share("control.ddpg.soft_update", self.soft_update),
            share("control.ddpg.actor_rate", self.actor_rate),
            share("control.ddpg.critic_rate", self.critic_rate),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            Some((name, value, _, allowed)) => Err(OutOfRange { name, value, allowed }),
            None => Ok(()),
        }
    }
}
