//! `lapa explain`: the privacy of a run in plain words.

mod read;

use std::path::PathBuf;

use clap::Args;
use lapa::budget::{PrivacySummary, adversary, round_up};
use lapa::config::{Entropy, Experiment};
use lapa::observe::number;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::output::{self, Formatted, count, wrap};

/// Explain the privacy of a run in plain words
///
/// Prints the privacy figures of a run, the meaning of each, and the whole proof in short
/// paragraphs: what is guaranteed and for whom, against which adversary, by which theorem, under
/// which assumptions, and what is not covered. Also works while a run is in progress or after it
/// was stopped: then the figures are those of the rounds so far.
///
/// ε bounds how much one record can change what an adversary sees: with one record changed, no
/// outcome becomes more than e^ε times as likely, except with probability δ. ε = 1 means a factor of
/// 2.7, ε = 8 a factor of about 3000. Smaller is more private.
///
/// Examples:
///   lapa explain runs/quickstart-1
///   lapa explain runs/quickstart-1 --format json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Folder of a run, finished or not.
    #[arg(value_name = "RUN")]
    folder: PathBuf,
    #[command(flatten)]
    formatted: Formatted,
}

/// Privacy figures of a run; `None` where a run in progress does not tell.
#[derive(Serialize)]
pub struct Figures {
    #[serde(with = "number")]
    epsilon_provable: f64,
    #[serde(with = "number")]
    epsilon_spent: f64,
    #[serde(with = "number::optional")]
    epsilon_without_channel: Option<f64>,
    #[serde(with = "number")]
    epsilon_claimed_worst: f64,
    #[serde(with = "number::optional")]
    epsilon_claimed_total: Option<f64>,
    delta: f64,
}

impl From<&PrivacySummary> for Figures {
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

impl Figures {
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

    /// Name, value and meaning of each figure.
    fn meanings(&self, experiment: &Experiment) -> Vec<(&'static str, String, String)> {
        let proven = if experiment.is_certified() {
            "the budget of the worst device, declared before round 1 and enforced"
        } else {
            "ε of the recorded noise, for the worst device"
        };
        let factor = if self.epsilon_provable <= MOST_READABLE {
            format!(
                "; with one record changed, no outcome becomes more than {} times as likely, except \
                 with probability δ",
                round_up(self.epsilon_provable.exp())
            )
        } else {
            "; so large an ε excludes next to nothing".into()
        };
        let verdict = if self.epsilon_claimed_worst >= self.epsilon_spent {
            "above the spent ε, so it only overstates the loss"
        } else {
            "below the spent ε, so it promises too much"
        };
        let without_channel =
            self.epsilon_without_channel.filter(|_| experiment.channel_trust() > 0.0);
        let proven = format!("{proven}{factor}");
        let claimed =
            format!("the paper's formula, summed over the rounds of the worst device; {verdict}");
        let odometer = "odometer reading, ε that the worst device has used up so far";
        let total = if shares_records(experiment) {
            "the same, summed over all devices; no guarantee for an image that several of them hold"
        } else {
            "the same, summed over all devices; nobody's privacy loss, because devices hold different \
             records"
        };
        let silent = "spent ε if no channel noise is counted";
        let delta = "probability with which the guarantee may fail; choose it well below \
                     1/(number of records)";
        let figures = [
            ("proven ε", Some(self.epsilon_provable), proven),
            ("spent ε", Some(self.epsilon_spent), odometer.into()),
            ("the paper's ε, per device", Some(self.epsilon_claimed_worst), claimed),
            ("the paper's ε, in total", self.epsilon_claimed_total, total.into()),
            ("spent ε, no channel noise", without_channel, silent.into()),
        ];
        let shown = |(name, value, meaning)| Some((name, round_up(value?), meaning));
        let delta = ("δ", format!("{:e}", self.delta), delta.into());
        figures.into_iter().filter_map(shown).chain([delta]).collect()
    }
}

/// The largest ε whose factor e^ε says anything.
const MOST_READABLE: f64 = 30.0;

/// True if one image may be on several devices.
fn shares_records(experiment: &Experiment) -> bool {
    experiment.partition.scheme.shared().is_some()
}

/// Unit, adjacency and adversary in one line; empty without noise.
pub fn protection(experiment: &Experiment) -> String {
    let Some(privacy) = &experiment.privacy else { return String::new() };
    let seed = match experiment.run.entropy {
        Entropy::Seed => ", unless they know the seed",
        Entropy::Os => "",
    };
    let unit = if shares_records(experiment) {
        "one record of one device, not an image that several devices hold"
    } else {
        "one record"
    };
    format!(
        "Protects {unit} ({} adjacency) against {}{seed}",
        privacy.adjacency,
        adversary(privacy.channel_trust)
    )
}

/// A run and its privacy.
struct Explained {
    folder: PathBuf,
    finished: bool,
    round: u32,
    experiment: Experiment,
    figures: Figures,
    proof: Vec<String>,
    ledger: PathBuf,
}

pub fn execute(arguments: Arguments) -> Outcome {
    let run = Explained::read(arguments.folder)?;
    output::print(arguments.formatted.format, &run.json(), || run.text())
}

impl Explained {
    fn json(&self) -> Value {
        let meanings = self.figures.meanings(&self.experiment).into_iter();
        let meanings = meanings.map(
            |(name, value, meaning)| json!({ "figure": name, "value": value, "meaning": meaning }),
        );
        let meanings: Vec<Value> = meanings.collect();
        json!({
            "folder": self.folder,
            "finished": self.finished,
            "round": self.round,
            "rounds": self.experiment.run.rounds,
            "figures": self.figures,
            "meanings": meanings,
            "proof": self.proof,
            "ledger": self.ledger,
            "ledger_found": self.ledger.is_file(),
        })
    }

    fn text(&self) -> String {
        let state = if self.finished { "finished" } else { "not finished" };
        let mut text = format!(
            "Run {}: {state}, {} of {}\n\n{}\n",
            self.folder.display(),
            self.round,
            count(self.experiment.run.rounds as usize, "round"),
            wrap(&self.figures.line(), ""),
        );
        for (name, value, meaning) in self.figures.meanings(&self.experiment) {
            text += &format!("\n{}\n", wrap(&format!("{name} = {value}: {meaning}."), "  "));
        }
        for paragraph in &self.proof {
            text += &format!("\n{}\n", wrap(paragraph, ""));
        }
        let ledger = self.ledger.display();
        text += &if self.ledger.is_file() {
            format!("\nLedger: {ledger} (all releases: lapa account --ledger {ledger})\n")
        } else {
            format!("\nLedger: {ledger} (missing)\n")
        };
        text
    }
}
