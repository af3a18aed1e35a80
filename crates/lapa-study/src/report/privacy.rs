//! The privacy figures of a run, and the meaning of each.

use lapa::budget::{PrivacySummary, round_up};
use lapa::config::Experiment;
use lapa::observe::number;
use lapa_privacy::allocate::Basis;
use serde::Serialize;

use super::Badge;

/// Privacy figures of a run; `None` where a run in progress does not tell.
#[derive(Serialize)]
pub struct PrivacyFigures {
    /// Proven ε of the worst device.
    #[serde(with = "number")]
    pub epsilon_provable: f64,
    /// ε that the worst device has spent.
    #[serde(with = "number")]
    pub epsilon_spent: f64,
    /// The same without the channel's noise.
    #[serde(with = "number::optional")]
    pub epsilon_without_channel: Option<f64>,
    /// The paper's sum of the worst device.
    #[serde(with = "number")]
    pub epsilon_claimed_worst: f64,
    /// The paper's sum over all devices.
    #[serde(with = "number::optional")]
    pub epsilon_claimed_total: Option<f64>,
    /// δ of all of them.
    pub delta: f64,
}

/// A privacy figure in words.
pub struct Explained {
    /// Its name.
    pub name: &'static str,
    /// Its value, never rounded down.
    pub value: String,
    /// Badge and word for what it is worth; no word for δ.
    pub status: (Badge, &'static str),
    /// Its meaning: a sentence without capital and full stop.
    pub meaning: String,
}

/// The largest ε whose factor e^ε says anything.
const MOST_READABLE: f64 = 30.0;

impl From<&PrivacySummary> for PrivacyFigures {
    fn from(summary: &PrivacySummary) -> Self {
        Self {
            epsilon_provable: summary.epsilon_provable,
            epsilon_spent: summary.epsilon_spent,
            epsilon_without_channel: Some(summary.epsilon_without_channel),
            epsilon_claimed_worst: summary.epsilon_claimed_worst,
            epsilon_claimed_total: Some(summary.epsilon_claimed_total),
            delta: summary.delta,
        }
    }
}

/// True if one image may be on several devices.
pub fn shares_records(experiment: &Experiment) -> bool {
    experiment.partition.scheme.shared().is_some()
}

impl PrivacyFigures {
    /// All figures in one line.
    pub fn line(&self) -> String {
        let proven = if self.epsilon_provable.is_finite() {
            format!("proven ε ≤ {}", round_up(self.epsilon_provable))
        } else {
            "nothing is proven (ε = ∞)".into()
        };
        let channel = match self.epsilon_without_channel {
            Some(epsilon) if epsilon > self.epsilon_spent => {
                format!(" ({} without channel noise)", round_up(epsilon))
            }
            _ => String::new(),
        };
        let total = self
            .epsilon_claimed_total
            .map_or(String::new(), |total| format!(" per device, {} in total", round_up(total)));
        format!(
            "Privacy (δ = {:e}): {proven}; spent so far {}{channel}; the paper's formula would report \
             {}{total}",
            self.delta,
            round_up(self.epsilon_spent),
            round_up(self.epsilon_claimed_worst),
        )
    }

    /// Each figure with its status and meaning.
    pub fn explained(&self, experiment: &Experiment) -> Vec<Explained> {
        let total = if shares_records(experiment) {
            "it is no guarantee for an image that several devices hold"
        } else {
            "it is nobody's privacy loss, because devices hold different records"
        };
        let total =
            format!("the same, summed over all devices, as the paper's budget does; {total}");
        let odometer = |meaning: &str| ((Badge::Unknown, "odometer reading"), meaning.into());
        let spent =
            odometer("ε that the worst device has spent so far, over all runs on the ledger");
        let silent = odometer("spent ε if no channel noise is counted");
        let without_channel =
            self.epsilon_without_channel.filter(|_| experiment.channel_trust() > 0.0);
        let figures = [
            ("proven ε", Some(self.epsilon_provable), self.provable(experiment)),
            ("spent ε", Some(self.epsilon_spent), spent),
            ("paper's sum, worst device", Some(self.epsilon_claimed_worst), self.claimed()),
            (
                "paper's sum, all devices",
                self.epsilon_claimed_total,
                ((Badge::Unknown, "not about one device"), total),
            ),
            ("spent ε without channel noise", without_channel, silent),
        ];
        let shown = |(name, value, (status, meaning))| {
            Some(Explained { name, value: round_up(value?), status, meaning })
        };
        let delta = Explained {
            name: "δ",
            value: format!("{:e}", self.delta),
            status: (Badge::Unknown, ""),
            meaning:
                "probability with which the guarantee may fail; choose it well below 1/(number of \
                      records)"
                    .into(),
        };
        figures.into_iter().filter_map(shown).chain([delta]).collect()
    }

    /// Status and meaning of the proven ε.
    fn provable(&self, experiment: &Experiment) -> ((Badge, &'static str), String) {
        if self.epsilon_provable.is_infinite() {
            let meaning = "something was released without noise";
            return ((Badge::Bad, "nothing proven"), meaning.into());
        }
        let privacy = experiment.privacy.as_ref();
        let (status, meaning) = match privacy
            .map(|privacy| (privacy.basis, privacy.allocator.is_fixed()))
        {
            None | Some((Basis::Certified, _)) => (
                (Badge::Good, "proven in advance"),
                "the budget of the worst device, declared before round 1 and enforced by its filter",
            ),
            Some((Basis::Paper, true)) => (
                (Badge::Good, "proven"),
                "ε of the recorded noise, for the worst device, by a schedule that was fixed in \
                     advance",
            ),
            Some((Basis::Paper, false)) => (
                (Badge::Mixed, "odometer reading"),
                "ε of the recorded noise, for the worst device; its schedule was chosen during the \
                     run, so it is not a guarantee made in advance",
            ),
        };
        let factor = if self.epsilon_provable <= MOST_READABLE {
            format!(
                "with one record changed, no outcome becomes more than {} times as likely, except with \
                 probability δ",
                round_up(self.epsilon_provable.exp())
            )
        } else {
            "so large an ε excludes next to nothing".into()
        };
        (status, format!("{meaning}; {factor}"))
    }

    /// Status and meaning of the paper's sum of one device, compared with what was spent.
    fn claimed(&self) -> ((Badge, &'static str), String) {
        let (status, verdict) = if self.epsilon_claimed_worst.is_infinite() {
            ((Badge::Unknown, "no claim"), "without noise it makes no claim either")
        } else if self.epsilon_claimed_worst >= self.epsilon_spent {
            (
                (Badge::Good, "above the spent ε: harmless"),
                "above the spent ε, so it only overstates the loss",
            )
        } else {
            (
                (Badge::Bad, "below the spent ε: do not rely on it"),
                "below the spent ε, so it promises too much",
            )
        };
        let sum = "the paper's formula, summed over the rounds of one device";
        (status, format!("{sum}; {verdict}"))
    }
}
