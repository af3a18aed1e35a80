//! The run in a folder: finished, in progress or stopped.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lapa::budget::{ProofFacts, proof};
use lapa::config::{Experiment, Privacy};
use lapa::files;
use lapa::observe::RoundRecord;
use lapa::run::{CheckedRun, read_summary};
use lapa_privacy::ledger::Ledger;
use lapa_privacy::{Budget, Filter};
use lapa_study::report::privacy::PrivacyFigures;
use serde_json::Value;

use super::ExplainedRun;
use crate::failure::Failure;

impl ExplainedRun {
    /// Reads the run in `folder`. A finished one must be consistent; of another, the rounds that
    /// are complete count.
    pub fn read(folder: PathBuf) -> Result<Self, Failure> {
        let config = required(&folder, "config.resolved.toml")?;
        match read_summary(&folder)? {
            Some(_) => Self::finished(folder),
            None => Self::unfinished(folder, &config),
        }
    }

    fn finished(folder: PathBuf) -> Result<Self, Failure> {
        let run = CheckedRun::read(&folder)?;
        let Some(CheckedRun { experiment, summary, .. }) = run else {
            return Err(missing(&folder, "summary.json"));
        };
        Ok(Self {
            ledger: ledger(&folder, &experiment),
            finished: true,
            round: summary.rounds,
            experiment,
            figures: PrivacyFigures::from(&summary.privacy),
            proof: summary.privacy.privacy.lines().map(str::to_owned).collect(),
            folder,
        })
    }

    fn unfinished(folder: PathBuf, config: &str) -> Result<Self, Failure> {
        let name = folder.join("config.resolved.toml").display().to_string();
        let experiment = Experiment::from_toml(config, &name, &[])?;
        let records = records(&folder)?;
        let ledger = ledger(&folder, &experiment);
        let most = |value: fn(&RoundRecord) -> Option<f64>| {
            records.iter().filter_map(value).fold(0.0, f64::max)
        };
        let spent = most(|record| Some(record.devices.summary().spent_provable?.max));
        let promise = elsewhere(&folder);
        let mut facts = ProofFacts { on_trust: promise.is_some(), ..ProofFacts::default() };
        facts.epsilon = if experiment.is_certified() {
            let declared = declared(&ledger, &required(&folder, "manifest.json")?);
            facts.theorem = declared.map(|(_, theorem)| theorem);
            let planned = experiment.privacy.as_ref().and_then(Privacy::epsilon);
            let own = declared.map(|(epsilon, _)| epsilon).or(planned);
            promise.or(own).unwrap_or(f64::INFINITY)
        } else if records.is_empty() {
            f64::INFINITY
        } else {
            spent
        };
        Ok(Self {
            finished: false,
            round: records.last().map_or(0, |record| record.round),
            figures: PrivacyFigures {
                epsilon_provable: facts.epsilon,
                epsilon_spent: spent,
                epsilon_without_channel: None,
                epsilon_claimed_worst: most(|record| {
                    Some(record.devices.summary().spent_claimed?.max)
                }),
                epsilon_claimed_total: None,
                delta: experiment.delta(),
            },
            proof: proof(&experiment, &facts),
            folder,
            experiment,
            ledger,
        })
    }
}

/// The text of a file that every run has.
fn required(folder: &Path, name: &str) -> Result<String, Failure> {
    let path = folder.join(name);
    files::read_to_string(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => missing(folder, name),
        _ => Failure::usage(format!("cannot read {}: {error}", path.display())),
    })
}

fn missing(folder: &Path, name: &str) -> Failure {
    Failure::usage(if folder.is_dir() {
        format!("{} is not the folder of a run: {name} is missing", folder.display())
    } else {
        format!("{}: no such folder; expected the folder of a run", folder.display())
    })
}

/// The complete rounds in metrics.jsonl; a line may still be in the making.
fn records(folder: &Path) -> Result<Vec<RoundRecord>, Failure> {
    let name = "metrics.jsonl";
    let text = required(folder, name)?;
    let lines = text.rsplit_once('\n').map_or("", |(complete, _)| complete).lines();
    let parsed = lines.enumerate().map(|(at, line)| {
        serde_json::from_str(line).map_err(|error| {
            let path = folder.join(name);
            Failure::usage(format!("{}, line {}: {error}", path.display(), at + 1))
        })
    });
    parsed.collect()
}

fn ledger(folder: &Path, experiment: &Experiment) -> PathBuf {
    experiment.run.ledger.clone().unwrap_or_else(|| folder.join("ledger.db"))
}

/// The largest ε declared for the data of a run, and the theorem of its filter; `None` without a
/// readable ledger.
fn declared(ledger: &Path, manifest: &str) -> Option<(f64, &'static str)> {
    let manifest: Value = serde_json::from_str(manifest).ok()?;
    let run = manifest["run"].as_str()?;
    let declared = Ledger::open_read_only(ledger).ok()?.declarations().ok()?;
    let data = declared.iter().find(|declared| declared.run.starts_with(run))?.data.clone();
    let terms = declared.into_iter().filter(|other| other.data == data).map(|other| other.budget);
    let terms = terms.max_by(|a, b| a.epsilon.total_cmp(&b.epsilon))?;
    let kind = serde_json::from_str(&terms.kind).ok()?;
    let filter = Filter::new(kind, Budget::new(terms.epsilon, terms.delta).ok()?).ok()?;
    Some((terms.epsilon, filter.theorem()))
}

/// The largest ε that remote devices declare; `None` in a simulation.
fn elsewhere(folder: &Path) -> Option<f64> {
    let text = files::read_to_string(&folder.join("devices.json")).ok()?;
    let devices: Vec<Value> = serde_json::from_str(&text).ok()?;
    let epsilon = |device: &Value| device["epsilon_ever"].as_f64().unwrap_or(f64::INFINITY);
    devices.iter().map(epsilon).reduce(f64::max)
}
