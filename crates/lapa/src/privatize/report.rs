//! What a run proved, in numbers and in words.

use lapa_privacy::NoiseKind;
use lapa_privacy::allocate::{AllocatorConfig, Basis};
use serde::{Deserialize, Serialize};

use super::{Budgets, PrivatizeError};
use crate::aggregate::Histograms;
use crate::config::{Entropy, Experiment, Privacy};
use crate::observe::number;

/// The privacy of a run, as summary.json states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacySummary {
    /// The paper's sum over all devices: its epsilons of this run's releases, added over rounds and
    /// devices. The paper's budget is of this sum.
    #[serde(with = "number")]
    pub epsilon_claimed_total: f64,
    /// The paper's sum of the worst device: its epsilons, added over its rounds of this run.
    #[serde(with = "number")]
    pub epsilon_claimed_worst: f64,
    /// What is proved for the worst device: on basis certified its budget, declared before round 1
    /// (the largest one, if runs on the same ledger declared several; on a base station, the
    /// largest one that a device says it ever held itself to); else what the recorded noise is worth.
    #[serde(with = "number")]
    pub epsilon_provable: f64,
    /// What the worst device really spent, over all runs on the ledger: an odometer reading,
    /// afterwards. On a base station, what it asked the worst device for in this run.
    #[serde(with = "number")]
    pub epsilon_spent: f64,
    /// The same for this run and what others had spent before it, if no noise of the channel is
    /// counted.
    #[serde(with = "number")]
    pub epsilon_without_channel: f64,
    /// δ
    pub delta: f64,
    /// What is proved and how, in words.
    pub privacy: String,
}

impl PrivacySummary {
    /// The privacy of a run so far.
    pub fn new(experiment: &Experiment, budgets: &mut Budgets) -> Result<Self, PrivatizeError> {
        let (mut claimed, mut worst, mut spent, mut declared) = (0.0, 0.0f64, 0.0f64, 0.0f64);
        let mut without_channel = 0.0f64;
        for device in 0..budgets.devices() {
            claimed += budgets.claimed(device);
            worst = worst.max(budgets.claimed(device));
            without_channel = without_channel.max(budgets.spent_without_channel(device)?);
        }
        for (provable, budget) in budgets.ledger_readings()? {
            spent = spent.max(provable);
            declared = declared.max(budget);
        }
        let certified = experiment.is_certified();
        let mut summary = Self {
            epsilon_claimed_total: claimed,
            epsilon_claimed_worst: worst,
            epsilon_provable: if certified { declared } else { spent },
            epsilon_spent: spent,
            epsilon_without_channel: without_channel,
            delta: experiment.delta(),
            privacy: String::new(),
        };
        summary.privacy = summary.words(experiment, budgets);
        Ok(summary)
    }

    fn words(&self, experiment: &Experiment, budgets: &Budgets) -> String {
        let Some(privacy) = &experiment.privacy else {
            return "No noise was added: nothing is proved, epsilon is infinite.".into();
        };
        let labels = match experiment.aggregate.rule.histograms() {
            None => "",
            Some(Histograms::Noisy(_)) => {
                " Label histograms were sent once, with noise that is part of this."
            }
            Some(Histograms::Public) => {
                " Labels are declared public (histograms of aggregate.rule): their histograms were sent \
                 as they are. Nothing here protects them, and the proof is about records that \
                 differ in anything but the label."
            }
            Some(Histograms::Exact) => {
                " Label histograms were sent without noise: for them nothing is proved, and \
                 epsilon is infinite."
            }
        };
        let mut text = match privacy.basis {
            Basis::Certified => self.certified(privacy, budgets),
            Basis::Paper => self.paper(privacy, budgets),
        };
        text += labels;
        if privacy.channel_trust > 0.0 {
            text += &format!(
                " Counted is {} of the variance of the receiver's noise (privacy.channel_trust), \
                 which holds as long as no receiver is better than declared; without it the worst \
                 device has spent epsilon {}.",
                privacy.channel_trust,
                round_up(self.epsilon_without_channel)
            );
        }
        if experiment.control.noise.goes_by_sum() {
            text += " Artificial noise ended when the channel's sufficed in the sum over the \
                     devices (control.switch.rule): single devices may have had less noise than \
                     was asked for, and the provable figure is about what they really had.";
        }
        text += " The unit is one record of one device: someone with several records, or on \
                 several devices, needs group privacy. Tuning on the same data is not covered.";
        if privacy.noise == NoiseKind::Gaussian {
            text += " The proof covers the rounding of sums and takes the noise for real numbers; \
                     privacy.noise = \"discrete-gaussian\" covers the noise too.";
        }
        if experiment.run.entropy == Entropy::Seed {
            text += " Simulation: no guarantee against whoever knows the seed.";
        }
        text
    }

    fn certified(&self, privacy: &Privacy, budgets: &Budgets) -> String {
        let seen = match privacy.channel_trust {
            0.0 => "all that was sent",
            _ => "what a receiver with at least the declared noise received",
        };
        let theorem = budgets.declared(0).map_or("", |filter| filter.theorem());
        let (epsilon, delta) = (round_up(self.epsilon_provable), self.delta);
        let (verb, spent) = match budgets.on_trust() {
            false => ("Proved".into(), ""),
            true => (
                format!(
                    "Declared by the devices, each of which holds itself to a budget over all \
                     that it ever releases, in a ledger of its own that the base station cannot \
                     see: epsilon {epsilon} at most. Proved of devices that do"
                ),
                " The epsilon spent is that of what this base station asked for, in this run.",
            ),
        };
        format!(
            "{verb}: each device's records are ({epsilon}, {delta:e})-differentially private under {} \
             adjacency toward whoever sees {seen}, because {theorem}. Devices hold \
             disjoint records, so the system's guarantee is the worst device's.{spent}",
            privacy.adjacency,
        )
    }

    fn paper(&self, privacy: &Privacy, budgets: &Budgets) -> String {
        let release = budgets.release(0);
        let provable = release.sensitivity().unwrap_or(f64::INFINITY);
        let ratio = self.epsilon_provable / self.epsilon_claimed_total;
        let schedule = match privacy.allocator {
            AllocatorConfig::Uniform => "The schedule was fixed in advance.",
            _ => {
                "The schedule was chosen during the run, so this is a reading, not a promise \
                  made in advance."
            }
        };
        format!(
            "The paper's formulas claim epsilon {}, added over rounds and all devices. Provable for \
             the same noise: epsilon {} for the worst device, {} times the claim (Gaussian differential privacy, exact for \
             these releases). One record can move a device's update by {:.3e}, while the \
             paper's 2*lambda*C/|D_k| is {:.3e} for the first device. {schedule}",
            round_up(self.epsilon_claimed_total),
            round_up(self.epsilon_provable),
            round_up(ratio),
            provable,
            release.claimed_sensitivity(),
        )
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
