//! The privacy of a run, in numbers and in words.

use lapa_privacy::Filter;
use serde::{Deserialize, Serialize};

use super::proof::{ProofFacts, proof};
use super::{Books, Result};
use crate::config::Experiment;
use crate::observe::number;

/// The privacy of a run, as summary.json states it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrivacySummary {
    /// The paper's sum over all devices: its epsilons of this run's releases, added over rounds and
    /// devices. The paper's budget is of this sum.
    #[serde(with = "number")]
    pub epsilon_claimed_total: f64,
    /// The paper's sum of the worst device: its epsilons, added over its rounds of this run.
    #[serde(with = "number")]
    pub epsilon_claimed_worst: f64,
    /// Proven ε of the worst device: on basis certified its budget, declared before round 1
    /// (the largest one, if runs on the same ledger declared several; on a base station, the
    /// largest one that a device says it ever held itself to); else what the recorded noise is worth.
    #[serde(with = "number")]
    pub epsilon_provable: f64,
    /// Spent ε of the worst device, over all runs on the ledger: an odometer reading,
    /// afterwards. On a base station, what it asked the worst device for in this run.
    #[serde(with = "number")]
    pub epsilon_spent: f64,
    /// The same for this run and what others had spent before it, if no noise of the channel is
    /// counted.
    #[serde(with = "number")]
    pub epsilon_without_channel: f64,
    /// δ
    pub delta: f64,
    /// The proof in words, a paragraph per line.
    pub privacy: String,
}

impl PrivacySummary {
    /// The privacy of a run so far.
    pub fn new(experiment: &Experiment, books: &mut Books) -> Result<Self> {
        let claimed = books.claimed().fold(0.0, |sum, claimed| sum + claimed);
        let worst = books.claimed().fold(0.0, f64::max);
        let without_channel = books.worst_without_channel()?;
        let (spent, declared) = books.ledger_reading()?;
        let epsilon = if experiment.is_certified() { declared } else { spent };
        let facts = ProofFacts {
            epsilon,
            theorem: books.declared(0).map(Filter::theorem),
            on_trust: books.on_trust(),
            without_channel: Some(without_channel),
            claimed: Some((claimed, books.release(0).clone())),
        };
        Ok(Self {
            epsilon_claimed_total: claimed,
            epsilon_claimed_worst: worst,
            epsilon_provable: epsilon,
            epsilon_spent: spent,
            epsilon_without_channel: without_channel,
            delta: experiment.delta(),
            privacy: proof(experiment, &facts).join("\n"),
        })
    }
}

/// Three or four significant digits, never rounded down.
pub fn round_up(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return if value == 0.0 { "0".into() } else { "∞".into() };
    }
    let digits = 10f64.powi(3 - value.log10().floor() as i32);
    let nearest = (value * digits).round() / digits;
    let up = if nearest >= value { nearest } else { (value * digits).ceil() / digits };
    if up >= 1e6 { format!("{up:.3e}") } else { format!("{up}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_never_rounded_down() {
        for (value, shown) in [
            (8.0, "8"),
            (8.000_000_1, "8.001"),
            (7.999_999, "8"),
            (0.012_341_1, "0.01235"),
            (71_234.2, "71240"),
            (1.234_56e9, "1.235e9"),
            (0.0, "0"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(round_up(value), shown);
        }
    }
}
