//! Label histograms as releases: with noise, exact, or declared public.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ways of label histograms to the base station.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Histograms {
    /// Once, before round 1, with noise that is charged to each device's budget.
    Noisy(NoisyHistograms),
    /// Exact, and declared to be no secret: the guarantee does not cover labels.
    Public,
    /// Exact, as in the paper: epsilon is infinite.
    Exact,
}

/// Most devices whose label histograms a base station keeps. Every checkpoint has them as text in its
/// header, which safetensors limits to 100 MB: with 256 labels they take up to 64 MB.
pub(crate) const MOST_HISTOGRAMS: usize = 10_000;

/// Bytes of a count as text.
const COUNT: usize = 25;

impl Histograms {
    /// Refuses histograms of more devices than a base station keeps, before any is charged.
    pub(crate) fn check(devices: usize, classes: usize) -> Result<(), String> {
        if devices <= MOST_HISTOGRAMS {
            return Ok(());
        }
        Err(format!(
            "needs a label histogram of each of the {devices} devices before round 1, about {} MB in \
             every checkpoint: expected at most {MOST_HISTOGRAMS} devices",
            (devices * classes * COUNT).div_ceil(1_000_000)
        ))
    }

    /// Fraction of each device's budget that they may spend; `None` where they have no noise.
    pub fn budget_fraction(&self) -> Option<f64> {
        match self {
            Self::Noisy(noisy) => Some(noisy.budget_fraction),
            Self::Public | Self::Exact => None,
        }
    }
}

/// Parameters of noisy histograms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoisyHistograms {
    /// Fraction of each device's budget that they may spend.
    #[schemars(range(min = 1e-6, max = 0.5))]
    pub budget_fraction: f64,
}

impl Default for NoisyHistograms {
    /// It costs the updates 1 % more noise, since σ² goes by one over the budget.
    fn default() -> Self {
        Self { budget_fraction: 0.02 }
    }
}
