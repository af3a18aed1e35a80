//! A finished run, read back: its files must agree with each other.

use std::path::Path;

use super::folder::{
    CONFIG, MANIFEST, Manifest, fingerprint_under, not_locked, open_run, read_experiment,
    read_manifest,
};
use super::{DEVICES, METRICS, RunError, SUMMARY, Summary, read_summary};
use crate::budget::{Histograms, round_up};
use crate::config::{Experiment, Privacy};
use crate::files::{Folder, FolderLock};
use crate::observe::{DeviceRecords, ObserveError, RoundRecord, read_metrics};

/// A finished run whose files agree with each other. No process can go on with it while this
/// lives; any number can read it. The folder may be read-only.
pub struct CheckedRun {
    /// Its folder.
    pub folder: Folder,
    /// Machine and program that made it.
    pub manifest: Manifest,
    /// The experiment as resolved when the run began.
    pub experiment: Experiment,
    /// Totals of its rounds.
    pub summary: Summary,
    /// Its rounds.
    pub records: Vec<RoundRecord>,
    _lock: FolderLock,
}

impl CheckedRun {
    /// Reads the run in `path`; none if it is not finished.
    pub fn read(path: &Path) -> Result<Option<Self>, RunError> {
        let folder = open_run(path)?;
        let lock = folder.lock_shared().map_err(|error| not_locked(error, path))?;
        let Some(summary) = read_summary(path)? else { return Ok(None) };
        let (manifest, experiment) = (read_manifest(path)?, read_experiment(path)?);
        check_experiment(path, &manifest, &experiment)?;
        let records = read_records(path, &experiment, summary.devices)?;
        let contradiction = |what| RunError::Contradiction { path: path.join(SUMMARY), what };
        check_totals(&summary, &records).map_err(contradiction)?;
        let elsewhere = path.join(DEVICES).is_file();
        check_privacy(&summary, &records, &experiment, elsewhere).map_err(contradiction)?;
        Ok(Some(Self { folder, manifest, experiment, summary, records, _lock: lock }))
    }
}

/// Refuses an experiment that is not the one of the manifest.
fn check_experiment(
    folder: &Path,
    manifest: &Manifest,
    experiment: &Experiment,
) -> Result<(), RunError> {
    let Manifest { version, kernels, .. } = manifest;
    if manifest.experiment != fingerprint_under(version, kernels, experiment) {
        let (path, now) = (folder.to_path_buf(), env!("CARGO_PKG_VERSION"));
        return Err(match version == now {
            true => RunError::Edited { path: path.join(CONFIG) },
            false => RunError::OtherVersion { path, began: version.clone(), now },
        });
    }
    if manifest.seed != experiment.run.seed {
        let (path, seed) = (folder.join(MANIFEST), manifest.seed);
        let what = format!("seed {seed}, but {CONFIG} says {}", experiment.run.seed);
        return Err(RunError::Contradiction { path, what });
    }
    Ok(())
}

/// Reads all rounds of a finished run in `folder` with this many devices. Errors name the file, the
/// line, the value and what is allowed.
pub fn read_records(
    folder: &Path,
    experiment: &Experiment,
    devices: u32,
) -> Result<Vec<RoundRecord>, RunError> {
    let path = folder.join(METRICS);
    let records = read_metrics(&path)?;
    for (line, record) in (1..).zip(&records) {
        if let Some(what) = impossible(record, line, experiment.run.rounds, devices) {
            let (path, line) = (path.clone(), line as usize);
            return Err(ObserveError::Impossible { path, line, what }.into());
        }
    }
    let (found, rounds) = (records.len(), experiment.run.rounds);
    if found != rounds as usize {
        let what = format!("{found} rounds, but {CONFIG} says {rounds}");
        return Err(RunError::Contradiction { path, what });
    }
    Ok(records)
}

/// The first value in a line that no run of this many rounds and devices leaves.
fn impossible(record: &RoundRecord, line: u32, rounds: u32, devices: u32) -> Option<String> {
    if record.round != line || line > rounds {
        return Some(match line > rounds {
            true => {
                format!("round {}: expected the {rounds} rounds of {CONFIG} only", record.round)
            }
            false => format!("round {}: expected {line}", record.round),
        });
    }
    if let Some(accuracy) = record.accuracy.filter(|value| !(0.0..=1.0).contains(value)) {
        return Some(format!("accuracy {accuracy}: expected a number from 0 to 1"));
    }
    let DeviceRecords::List(list) = &record.devices else { return None };
    let mut before = None;
    for device in list {
        let (number, weight) = (device.device, device.weight);
        if number >= devices {
            return Some(format!("device {number}: expected 0 to {}", devices - 1));
        }
        if before.is_some_and(|before| number <= before) {
            return Some(format!("device {number}: expected each once, in rising order"));
        }
        if !(0.0..=1.0).contains(&weight) {
            return Some(format!(
                "device {number}, weight {weight}: expected a number from 0 to 1"
            ));
        }
        for (name, sigma) in [
            ("sigma_required", device.sigma_required),
            ("sigma_artificial", device.sigma_artificial),
            ("sigma_channel", device.sigma_channel),
        ] {
            if sigma.is_nan() || sigma < 0.0 {
                return Some(format!("device {number}, {name} {sigma}: expected a number from 0"));
            }
        }
        before = Some(number);
    }
    None
}

/// Refuses a summary that the rounds do not come to.
fn check_totals(summary: &Summary, records: &[RoundRecord]) -> Result<(), String> {
    let expected = summary.clone().with_totals(records);
    if *summary == expected {
        return Ok(());
    }
    let fields = |summary: &Summary| match serde_json::to_value(summary) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (stated, expected) = (fields(summary), fields(&expected));
    let differs = stated.iter().zip(expected.values()).find(|((_, a), b)| a != b);
    Err(match differs {
        Some(((name, value), of_rounds)) => {
            format!("{name} {value}, but {METRICS} says {of_rounds}")
        }
        None => format!("it is not what {METRICS} comes to"),
    })
}

/// Refuses privacy figures that contradict each other, the rounds or the configuration. Devices that
/// are `elsewhere` declare budgets of their own.
fn check_privacy(
    summary: &Summary,
    records: &[RoundRecord],
    experiment: &Experiment,
    elsewhere: bool,
) -> Result<(), String> {
    let (stated, delta) = (&summary.privacy, experiment.delta());
    if stated.delta != delta {
        return Err(format!("delta {}, but {CONFIG} says {delta}", stated.delta));
    }
    let (provable, spent) = (stated.epsilon_provable, stated.epsilon_spent);
    for (name, epsilon) in [
        ("epsilon_claimed_total", stated.epsilon_claimed_total),
        ("epsilon_claimed_worst", stated.epsilon_claimed_worst),
        ("epsilon_provable", provable),
        ("epsilon_spent", spent),
        ("epsilon_without_channel", stated.epsilon_without_channel),
    ] {
        if epsilon.is_nan() || epsilon < 0.0 {
            return Err(format!("{name} {epsilon}: expected a number from 0"));
        }
    }
    let recorded = records.iter().filter_map(|record| record.devices.summary().spent_provable);
    let recorded = recorded.map(|spent| spent.max).fold(0.0, f64::max);
    if below(spent, recorded) {
        return Err(format!("epsilon_spent {spent}, but {METRICS} says {recorded}"));
    }
    if below(provable, spent) {
        return Err(format!("epsilon_provable {provable}, but epsilon_spent is {spent}"));
    }
    let certified = experiment.is_certified();
    let proved = match certified {
        false => Some(("epsilon_spent is", spent)),
        // On a ledger of its own a run declares its own budget; real devices declare theirs.
        true => experiment
            .privacy
            .as_ref()
            .and_then(Privacy::epsilon)
            .filter(|_| experiment.run.ledger.is_none() && !elsewhere)
            .filter(|_| experiment.aggregate.rule.histograms() != Some(Histograms::Exact))
            .map(|epsilon| ("privacy.epsilon is", epsilon)),
    };
    if let Some((words, epsilon)) = proved
        && (below(epsilon, provable) || below(provable, epsilon))
    {
        return Err(format!("epsilon_provable {provable}, but {words} {epsilon}"));
    }
    let words = format!("({}, {:e})-differentially private", round_up(provable), stated.delta);
    match certified && stated.privacy.contains("-diff") && !stated.privacy.contains(&words) {
        true => Err(format!("privacy without the words {words:?}")),
        false => Ok(()),
    }
}

/// True if `a` is below `b` by more than rounding.
fn below(a: f64, b: f64) -> bool {
    a < b && a < b * (1.0 - 1e-6)
}
