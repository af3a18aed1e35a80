//! `[privacy]`: the noise, and what is proved of it.

use lapa_privacy::allocate::{AllocatorConfig, Basis};
use lapa_privacy::{Adjacency, NoiseKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::defaults;
use super::experiment::{Experiment, Profile};
use crate::device::BatchSampling;

/// Noise that hides a record, and the guarantee that it gives. Without this section there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// Formulas that set the noise. The default follows profile.
    pub basis: Basis,
    /// Split of the budget over rounds and devices. The default follows basis.
    pub allocator: AllocatorConfig,
    /// The budget, or the noise that it follows from.
    pub level: NoiseLevel,
    /// Probability that the guarantee fails. Keep it well below one over a device's samples.
    #[schemars(range(min = 1e-18, max = 1e-2))]
    pub delta: f64,
    /// Relation of neighboring data sets. The default follows learn.sampling.
    pub adjacency: Adjacency,
    /// The distribution of the noise.
    pub noise: NoiseKind,
    /// Basis certified: fraction of each device's budget that this run may spend; the rest is left
    /// to other runs on the same ledger.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub budget_fraction: f64,
    /// Fraction κ of the variance of the receiver's noise that is counted as privacy, from 0
    /// (nothing) to 1. Above 0 it needs coordinates sent as amplitudes; radio.noise_power_w is then a
    /// promise: a better receiver would break it.
    #[schemars(range(min = 0, max = 1))]
    pub channel_trust: f64,
}

impl Default for Privacy {
    fn default() -> Self {
        let basis = defaults::basis(Profile::default());
        Self {
            basis,
            allocator: defaults::allocator(basis),
            level: NoiseLevel::Epsilon(8.0),
            delta: 1e-5,
            adjacency: defaults::adjacency(BatchSampling::Poisson),
            noise: NoiseKind::Gaussian,
            budget_fraction: 1.0,
            channel_trust: 0.0,
        }
    }
}

impl Privacy {
    /// The total budget ε, unless it follows from the noise.
    pub fn epsilon(&self) -> Option<f64> {
        match self.level {
            NoiseLevel::Epsilon(epsilon) => Some(epsilon),
            NoiseLevel::InitialSigma(_) => None,
        }
    }

    /// σ₀ of a device of mean size in round 1, if ε follows from it.
    pub fn initial_sigma(&self) -> Option<f64> {
        match self.level {
            NoiseLevel::Epsilon(_) => None,
            NoiseLevel::InitialSigma(sigma) => Some(sigma),
        }
    }
}

/// The budget, or the noise that it follows from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoiseLevel {
    /// Total budget: of each device on basis certified, of all devices together on basis paper.
    Epsilon(#[schemars(range(min = 1e-3, max = 1e6))] f64),
    /// Instead of epsilon: the standard deviation of the noise on each coordinate in round 1, for a
    /// device of mean size; epsilon follows.
    InitialSigma(#[schemars(range(min = 1e-9, max = 1e9), extend("examples" = [0.1]))] f64),
}

/// Of an experiment without `[privacy]` these are what its releases, without noise, are recorded
/// with.
impl Experiment {
    /// True if each device has a budget that is enforced.
    pub fn is_certified(&self) -> bool {
        self.privacy.as_ref().is_some_and(|privacy| privacy.basis == Basis::Certified)
    }

    /// Formulas that bound the privacy loss.
    pub fn basis(&self) -> Basis {
        self.privacy.as_ref().map_or(defaults::basis(self.profile), |privacy| privacy.basis)
    }

    /// Relation of neighboring data sets.
    pub fn adjacency(&self) -> Adjacency {
        let default = || defaults::adjacency(self.learn.sampling);
        self.privacy.as_ref().map_or_else(default, |privacy| privacy.adjacency)
    }

    /// δ
    pub fn delta(&self) -> f64 {
        self.privacy.as_ref().map_or_else(|| Privacy::default().delta, |privacy| privacy.delta)
    }

    /// The distribution of the noise.
    pub fn noise(&self) -> NoiseKind {
        self.privacy.as_ref().map_or(NoiseKind::Gaussian, |privacy| privacy.noise)
    }

    /// κ, the fraction of the channel noise's variance that is counted.
    pub fn channel_trust(&self) -> f64 {
        self.privacy.as_ref().map_or(0.0, |privacy| privacy.channel_trust)
    }

    /// Fraction of each device's budget that the run may spend, if not all of it.
    pub fn budget_fraction(&self) -> Option<f64> {
        self.privacy.as_ref().map(|privacy| privacy.budget_fraction).filter(|&part| part < 1.0)
    }

    /// σ₀ of a device of mean size in round 1, if ε follows from it.
    pub fn initial_sigma(&self) -> Option<f64> {
        self.privacy.as_ref()?.initial_sigma()
    }
}
