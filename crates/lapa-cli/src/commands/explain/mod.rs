//! `lapa explain`: the privacy of a run in plain words.

mod read;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lapa::budget::{PrivacySummary, adversary, round_up};
use lapa::config::{Entropy, Experiment};
use lapa::observe::number;
use serde::Serialize;

use crate::failure::Outcome;
use crate::output::{self, Format, count, wrap};

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
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
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
        let mut meanings = vec![
            ("proven ε", round_up(self.epsilon_provable), format!("{proven}{factor}")),
            (
                "spent ε",
                round_up(self.epsilon_spent),
                "odometer reading, ε that the worst device has used up so far".into(),
            ),
            (
                "the paper's ε, per device",
                round_up(self.epsilon_claimed_worst),
                format!(
                    "the paper's formula, summed over the rounds of the worst device; {verdict}"
                ),
            ),
        ];
        if let Some(total) = self.epsilon_claimed_total {
            meanings.push((
                "the paper's ε, in total",
                round_up(total),
                "the same, summed over all devices; nobody's privacy loss, because devices hold \
                 different records"
                    .into(),
            ));
        }
        if let Some(epsilon) = self.epsilon_without_channel.filter(|_| trusts_channel(experiment)) {
            meanings.push((
                "spent ε, no channel noise",
                round_up(epsilon),
                "spent ε if no channel noise is counted".into(),
            ));
        }
        meanings.push((
            "δ",
            format!("{:e}", self.delta),
            "probability with which the guarantee may fail; choose it well below 1/(number of \
             records)"
                .into(),
        ));
        meanings
    }
}

/// The largest ε whose factor e^ε says anything.
const MOST_READABLE: f64 = 30.0;

fn trusts_channel(experiment: &Experiment) -> bool {
    experiment.channel_trust() > 0.0
}

/// Unit, adjacency and adversary in one line; empty without noise.
pub fn protection(experiment: &Experiment) -> String {
    let Some(privacy) = &experiment.privacy else { return String::new() };
    let seed = match experiment.run.entropy {
        Entropy::Seed => ", unless they know the seed",
        Entropy::Os => "",
    };
    format!(
        "Protects one record ({} adjacency) against {}{seed}",
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
    match arguments.format {
        Format::Json => output::json(&run.json())?,
        Format::Text => output::text_out(&run.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Explained {
    fn json(&self) -> serde_json::Value {
        let meanings = self.figures.meanings(&self.experiment);
        let meanings: Vec<_> = meanings
            .iter()
            .map(|(name, value, meaning)| {
                serde_json::json!({ "figure": name, "value": value, "meaning": meaning })
            })
            .collect();
        serde_json::json!({
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
