//! A finished run, read back: its files must agree with each other.

use std::path::{Path, PathBuf};

use super::folder::{
    CONFIG, MANIFEST, Manifest, fingerprint_under, not_locked, open_run, read_experiment,
    read_manifest,
};
use super::{DEVICES, METRICS, Result, RunError, SUMMARY, Summary, read_summary};
use crate::aggregate::Histograms;
use crate::budget::round_up;
use crate::config::{Experiment, Privacy};
use crate::files::{Folder, FolderLock};
use crate::model::Confusion;
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
    /// Reads the run in `path`; `None` if it is not finished.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let folder = open_run(path)?;
        let lock = folder.lock_shared().map_err(|error| not_locked(error, path))?;
        let Some(summary) = read_summary(path)? else { return Ok(None) };
        let (manifest, experiment) = (read_manifest(path)?, read_experiment(path)?);
        check_experiment(path, &manifest, &experiment)?;
        let records = read_records(path, &experiment, summary.devices)?;
        let elsewhere = path.join(DEVICES).is_file();
        check_totals(&summary, &records)
            .and_then(|()| check_classes(&summary))
            .and_then(|()| check_privacy(&summary, &records, &experiment, elsewhere))
            .map_err(|what| contradiction(path.join(SUMMARY), &what))?;
        Ok(Some(Self { folder, manifest, experiment, summary, records, _lock: lock }))
    }
}

fn contradiction(path: PathBuf, what: &str) -> RunError {
    RunError::invalid(&path)(format!("{what}; the folder was changed since the run ended"))
}

/// Refuses an experiment that is not the one of the manifest.
fn check_experiment(folder: &Path, manifest: &Manifest, experiment: &Experiment) -> Result<()> {
    let (Manifest { version, kernels, seed, .. }, now) = (manifest, env!("CARGO_PKG_VERSION"));
    let same = manifest.experiment == fingerprint_under(version, kernels, experiment);
    if !same && version == now {
        return Err(RunError::Edited(folder.join(CONFIG)));
    }
    if !same {
        return Err(RunError::invalid(folder)(format!(
            "the run was made with version {version}, this is {now}: whether its configuration \
             was changed since cannot be told; use version {version}"
        )));
    }
    if *seed != experiment.run.seed {
        let what = format!("seed {seed}, but {CONFIG} says {}", experiment.run.seed);
        return Err(contradiction(folder.join(MANIFEST), &what));
    }
    Ok(())
}

/// Reads all rounds of a finished run in `folder` with this many devices. Errors name the file, the
/// line, the value and what is allowed.
pub fn read_records(
    folder: &Path,
    experiment: &Experiment,
    devices: u32,
) -> Result<Vec<RoundRecord>> {
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
        return Err(contradiction(path, &what));
    }
    Ok(records)
}

/// The first value in a line that no run of this many rounds and devices leaves.
fn impossible(record: &RoundRecord, line: u32, rounds: u32, devices: u32) -> Option<String> {
    let round = record.round;
    if line > rounds {
        return Some(format!("round {round}: expected the {rounds} rounds of {CONFIG} only"));
    }
    if round != line {
        return Some(format!("round {round}: expected {line}"));
    }
    if let Some(accuracy) = record.accuracy.filter(|value| !(0.0..=1.0).contains(value)) {
        return Some(format!("accuracy {accuracy}: expected a number from 0 to 1"));
    }
    let DeviceRecords::List(list) = &record.devices else { return None };
    let mut least = 0;
    for device in list {
        let (number, weight) = (device.device, device.weight);
        if number >= devices {
            return Some(format!("device {number}: expected 0 to {}", devices - 1));
        }
        if number < least {
            return Some(format!("device {number}: expected each once, in rising order"));
        }
        if !(0.0..=1.0).contains(&weight) {
            let what = format!("device {number}, weight {weight}");
            return Some(what + ": expected a number from 0 to 1");
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
        least = number + 1;
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
    let mut pairs = stated.iter().zip(expected.values());
    Err(match pairs.find(|((_, stated), expected)| stated != expected) {
        Some(((name, value), rounds)) => format!("{name} {value}, but {METRICS} says {rounds}"),
        None => format!("it is not what {METRICS} comes to"),
    })
}

/// Refuses accuracies of classes and devices that contradict each other or the accuracy.
fn check_classes(summary: &Summary) -> Result<(), String> {
    let matrix = summary.confusion.as_ref();
    if matrix.is_some_and(|matrix| matrix.accuracy() != summary.accuracy) {
        return Err("accuracy is not that of confusion".into());
    }
    if summary.class_accuracy != matrix.map(Confusion::class_accuracy).unwrap_or_default() {
        return Err("class_accuracy is not that of confusion".into());
    }
    let Some(of_devices) = &summary.device_accuracy else { return Ok(()) };
    for one in &of_devices.devices {
        if one.device >= summary.devices {
            let most = summary.devices.saturating_sub(1);
            return Err(format!("device_accuracy of {}: expected 0 to {most}", one.device));
        }
        if !(0.0..=1.0).contains(&one.accuracy) {
            let (device, accuracy) = (one.device, one.accuracy);
            return Err(format!("device_accuracy of {device} {accuracy}: expected 0 to 1"));
        }
    }
    Ok(())
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
    let proved = if certified {
        // On a ledger of its own a run declares its own budget; real devices declare theirs.
        experiment
            .privacy
            .as_ref()
            .and_then(Privacy::epsilon)
            .filter(|_| experiment.run.ledger.is_none() && !elsewhere)
            .filter(|_| experiment.aggregate.rule.histograms() != Some(Histograms::Exact))
            .map(|epsilon| ("privacy.epsilon is", epsilon))
    } else {
        Some(("epsilon_spent is", spent))
    };
    if let Some((words, epsilon)) = proved
        && (below(epsilon, provable) || below(provable, epsilon))
    {
        return Err(format!("epsilon_provable {provable}, but {words} {epsilon}"));
    }
    let words = format!("({}, {:e})-differentially private", round_up(provable), stated.delta);
    if certified && stated.privacy.contains("-diff") && !stated.privacy.contains(&words) {
        return Err(format!("privacy without the words {words:?}"));
    }
    Ok(())
}

/// True if `a` is below `b` by more than rounding.
fn below(a: f64, b: f64) -> bool {
    a < b && a < b * (1.0 - 1e-6)
}
