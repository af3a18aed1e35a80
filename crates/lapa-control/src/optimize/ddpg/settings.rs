//! Settings of DDPG.

use lapa::config::{DdpgConfig, DdpgVariant};

use super::agent::Learning;

/// The most of each count; beyond it a slip is more likely than a plan.
const MOST: usize = 1 << 20;
/// The most bytes of all networks and a batch: 4 GiB.
const MOST_BYTES: f64 = (1u64 << 32) as f64;

/// Settings of DDPG, as in `[control.ddpg]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Form of the algorithm.
    pub variant: DdpgVariant,
    /// Episodes, from 1.
    pub episodes: u32,
    /// Steps of an episode, from 1: each is one evaluation and one update.
    pub steps: u32,
    /// Width of both hidden layers, from 1.
    pub hidden: usize,
    /// Transitions in a batch, from 1.
    pub batch: usize,
    /// Υ, τ and the learning rates.
    pub learning: Learning,
}

/// A setting without meaning.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("ddpg: {name} = {value}: expected {allowed}")]
pub struct SettingsError {
    /// Name of the setting.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Allowed values.
    pub allowed: &'static str,
}

impl From<DdpgConfig> for Settings {
    fn from(config: DdpgConfig) -> Self {
        Self {
            variant: config.variant,
            episodes: config.episodes,
            steps: config.steps,
            hidden: config.hidden as usize,
            batch: config.batch as usize,
            learning: Learning {
                discount: config.discount,
                soft_update: config.soft_update,
                actor_rate: config.actor_rate,
                critic_rate: config.critic_rate,
            },
        }
    }
}

impl Settings {
    /// Steps in all.
    pub(super) fn all_steps(&self) -> u64 {
        u64::from(self.episodes) * u64::from(self.steps)
    }

    /// Refuses networks and batches for `devices` that memory should not hold.
    pub fn check_for(&self, devices: usize) -> Result<(), SettingsError> {
        let (devices, hidden, batch) = (devices as f64, self.hidden as f64, self.batch as f64);
        // Actor and critic, each with target, moments and gradients; what they see of a batch.
        let parameters = hidden * (4.0 * devices + 2.0 * hidden + 8.0);
        let value = 4.0 * (8.0 * parameters + 8.0 * batch * (devices + hidden));
        if value <= MOST_BYTES {
            Ok(())
        } else {
            Err(SettingsError {
                name: "bytes for control.ddpg.hidden and control.ddpg.batch with this many devices",
                value,
                allowed: "at most 4294967296",
            })
        }
    }

    pub(super) fn check(self) -> Result<Self, SettingsError> {
        let Learning { discount, soft_update, actor_rate, critic_rate } = self.learning;
        let count = |count: usize| (1..=MOST).contains(&count);
        let share = |x: f64| x > 0.0 && x <= 1.0;
        let (natural, above_0) = ("an integer from 1 to 1048576", "a number above 0 and at most 1");
        let checks = [
            (count(self.episodes as usize), "episodes", f64::from(self.episodes), natural),
            (count(self.steps as usize), "steps", f64::from(self.steps), natural),
            (count(self.hidden), "hidden", self.hidden as f64, natural),
            (count(self.batch), "batch", self.batch as f64, natural),
            ((0.0..1.0).contains(&discount), "discount", discount, "a number from 0 to below 1"),
            (share(soft_update), "soft_update", soft_update, above_0),
            (share(actor_rate), "actor_rate", actor_rate, above_0),
            (share(critic_rate), "critic_rate", critic_rate, above_0),
        ];
        match checks.into_iter().find(|check| !check.0) {
            Some((_, name, value, allowed)) => Err(SettingsError { name, value, allowed }),
            None => Ok(self),
        }
    }
}
