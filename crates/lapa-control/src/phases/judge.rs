//! J of a run by its own rounds.

use std::path::Path;

use lapa::atomic::{read_json, write_json};
use lapa::config::{Entropy, Experiment, Powers};
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::files::FileError;
use lapa::observe::{RoundRecord, number};
use lapa::optimize::Objective;
use lapa::radio::Links;
use lapa::run::{Outcome, Run, RunEvent, read_experiment, read_records};
use lapa::simulation::Simulation;
use serde::{Deserialize, Serialize};

use super::{Choice, Listener, PhaseError, PhaseEvent, Pilot, check, pilot_folder, problem};

/// J, the noise terms of the bound, by the noise that a run's own rounds asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgment {
    /// With the powers of the run.
    #[serde(with = "number")]
    pub own: f64,
    /// With equal powers, if its rounds had asked for the same noise.
    #[serde(with = "number")]
    pub equal: f64,
}

impl Judgment {
    /// J of a run; `None` without amplitudes or without noise.
    pub fn from_records(
        simulation: &Simulation,
        records: &[RoundRecord],
    ) -> Result<Option<Self>, PhaseError> {
        let experiment = simulation.experiment();
        if check(experiment).is_err() {
            return Ok(None);
        }
        let mut problem = problem(experiment, &Pilot::new(simulation, records)?)?;
        let devices: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
        let links = Links::new(experiment.setting()).map_err(FederationError::from)?;
        let own: Vec<f64> = links.powers_of(&devices).iter().map(|p| p.0.sqrt()).collect();
        let equal = problem.limits().equal();
        let mut worth = |amplitudes: &[f64]| problem.evaluate(amplitudes).map(|e| e.objective);
        Ok(Some(Self { own: worth(&own)?, equal: worth(&equal)? }))
    }

    /// The comparison in words, with what the pilots promised.
    pub fn sentence(&self, choice: &Choice) -> String {
        let ratio = self.own / self.equal;
        let worse = if ratio > 1.0 { ": worse than equal power" } else { "" };
        let rehearsed = choice.rehearsed.filter(|_| choice.instead_of.is_none());
        let rehearsed =
            rehearsed.map_or(String::new(), |over| format!(", the rehearsal {over:.3}"));
        format!(
            "J of this run is {ratio:.3} times that of equal power in the same rounds{worse}; the \
             pilots promised {:.3}{rehearsed}",
            choice.over_equal()
        )
    }
}

/// A choice of powers, and the data of the run that has them.
pub struct Chosen {
    pub(super) choice: Choice,
    pub(super) data: Dataset,
}

impl Chosen {
    /// The choice that the run in `out` began with, from the folder of its pilot; `None` if its powers are
    /// others.
    pub(super) fn of(out: &Path, experiment: &Experiment, data: &Dataset) -> Option<Self> {
        let choice: Choice = read_json(&pilot_folder(out).join("power.json")).ok()??.ok()?;
        let same = experiment.transmit.power_w == Powers::Each(choice.powers_w.clone());
        same.then(|| Self { choice, data: data.clone() })
    }

    /// Writes power.json into the folder of a run whose rounds are done, and says what is in it.
    fn judge(&self, folder: &Path, on_event: &mut Listener<'_>) -> Result<(), PhaseError> {
        let mut experiment = read_experiment(folder)?;
        // Nothing is released, and nothing is asked of the run's ledger.
        experiment.run.ledger = None;
        experiment.run.entropy = Entropy::Seed;
        let simulation = Simulation::new(experiment, self.data.clone())?;
        let devices = simulation.books().devices();
        let records = read_records(folder, simulation.experiment(), devices)?;
        let judgment = match Judgment::from_records(&simulation, &records) {
            Ok(Some(judgment)) => judgment,
            // Its records list no devices.
            Ok(None) | Err(PhaseError::NoDevices(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let path = folder.join("power.json");
        let report = serde_json::json!({ "choice": &self.choice, "run": judgment });
        write_json(&path, &report).map_err(FileError::on("write", &path))?;
        let _ = on_event(PhaseEvent::Judged(&judgment.sentence(&self.choice)));
        Ok(())
    }
}

/// The rounds of a run that are left. One with chosen powers is judged before summary.json ends it.
pub(super) fn rounds(
    run: Run,
    chosen: Option<&Chosen>,
    on_event: &mut Listener<'_>,
) -> Result<Outcome, PhaseError> {
    let folder = run.folder().to_path_buf();
    let mut judged = Ok(());
    let end = lapa_report::run::execute(run, &mut |event| {
        if let (RunEvent::Finishing(_), Some(chosen)) = (&event, chosen) {
            judged = chosen.judge(&folder, on_event);
        }
        on_event(PhaseEvent::Run(event))
    })?;
    judged.and(Ok(end))
}
