//! `lapa explain`: the privacy of a run in plain words.

mod read;

use std::path::PathBuf;

use clap::Args;
use lapa::budget::adversary;
use lapa::config::{Entropy, Experiment};
use lapa_study::report::privacy::{Explained, PrivacyFigures, shares_records};
use serde_json::{Value, json};

use crate::failure::CommandResult;
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
struct ExplainedRun {
    folder: PathBuf,
    finished: bool,
    round: u32,
    experiment: Experiment,
    figures: PrivacyFigures,
    proof: Vec<String>,
    ledger: PathBuf,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let run = ExplainedRun::read(arguments.folder)?;
    output::print(arguments.formatted.format, &run.json(), || run.text())
}

impl ExplainedRun {
    fn json(&self) -> Value {
        let meaning = |figure: Explained| json!({ "figure": figure.name, "value": figure.value, "meaning": figure.meaning });
        let explained = self.figures.explained(&self.experiment).into_iter();
        let meanings: Vec<Value> = explained.map(meaning).collect();
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
        for Explained { name, value, meaning, .. } in self.figures.explained(&self.experiment) {
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
