//! The one entry for runs, with or without a pilot before them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lapa::config::{Experiment, Pilot};
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::observe::RoundRecord;
use lapa::run::{Outcome, Run, RunFolder, is_free};
use lapa::simulation::{Event, Simulation};
use tempfile::TempDir;

use super::{
    Choice, Chosen, PhaseError, PhaseEvent, charged, choose, interrupted, pilot_and_run,
    pilot_folder, pilots_in_memory, rounds, warned_once, with_powers,
};

/// A run in a folder that is ready to start.
pub enum Job {
    /// Rounds, and J at their end if powers were chosen.
    Run(Box<Run>, Option<Box<Chosen>>),
    /// A pilot, a choice of powers, then rounds.
    Phases {
        /// The experiment.
        experiment: Box<Experiment>,
        /// The data of its devices.
        data: Box<Dataset>,
        /// The folder of the run.
        out: PathBuf,
    },
}

/// Folder of a new run.
#[derive(Clone, Copy, Debug)]
pub enum Destination<'a> {
    /// This one.
    Folder(&'a Path),
    /// The first new one of PATH-1, PATH-2, …
    Numbered(&'a Path),
}

impl Job {
    /// A new run: with a pilot first where `control.power` is to be fitted to one.
    pub fn create(
        experiment: Experiment,
        data: Dataset,
        place: Destination<'_>,
    ) -> Result<Self, PhaseError> {
        if !experiment.control.needs_pilot() {
            let run = match place {
                Destination::Folder(path) => Run::create(experiment, data, path),
                Destination::Numbered(path) => Run::create_numbered(experiment, data, path),
            };
            return Ok(Self::Run(run?.into(), None));
        }
        let out = match place {
            Destination::Folder(path) => path.into(),
            Destination::Numbered(path) => {
                let name = |n: u32| PathBuf::from(format!("{}-{n}", path.display()));
                let free = |out: &PathBuf| is_free(out) && is_free(&pilot_folder(out));
                (1..).map(name).find(free).unwrap_or_else(|| path.into())
            }
        };
        Ok(Self::Phases { experiment: experiment.into(), data: data.into(), out })
    }

    /// The folder of the run.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Run(run, _) => run.folder(),
            Self::Phases { out, .. } => out,
        }
    }

    /// Runs it to its end, or until the listener breaks off: before the first round, in pilot and
    /// choice too.
    pub fn execute(
        self,
        on_event: &mut dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, PhaseError> {
        match self {
            Self::Run(run, chosen) => rounds(*run, chosen.as_deref(), on_event),
            Self::Phases { experiment, data, out } => {
                pilot_and_run(*experiment, *data, &out, on_event)
            }
        }
    }
}

/// A run that was broken off, before or after its rounds began.
pub struct Unfinished {
    /// Its experiment. Only the threads may change.
    pub experiment: Experiment,
    /// Its folder, once its rounds began.
    folder: Option<RunFolder>,
    out: PathBuf,
}

impl Unfinished {
    /// The unfinished run in a folder.
    pub fn open(path: &Path) -> Result<Self, PhaseError> {
        let out = path.into();
        if let Some(experiment) = interrupted(path)? {
            return Ok(Self { experiment, folder: None, out });
        }
        let folder = RunFolder::open(path)?;
        Ok(Self { experiment: folder.experiment()?, folder: Some(folder), out })
    }

    /// The run, ready to go on with the data of its experiment.
    pub fn resume(self, data: Dataset) -> Result<Job, PhaseError> {
        let Self { experiment, folder, out } = self;
        Ok(match folder {
            Some(folder) => {
                let chosen = Chosen::of(&out, &experiment, &data);
                Job::Run(Run::resume(folder, experiment, data)?.into(), chosen.map(Box::new))
            }
            None => Job::Phases { experiment: experiment.into(), data: data.into(), out },
        })
    }
}

/// A run in memory that is ready to start: with a pilot and a choice of powers behind it where
/// `control.power` is to be fitted to a pilot.
pub struct InMemory {
    /// The powers, where they were chosen.
    pub choice: Option<Choice>,
    /// Devices and base station.
    pub simulation: Simulation,
    /// The rounds so far.
    pub records: Vec<RoundRecord>,
    /// A pilot on the devices' own records and the run are in one ledger.
    _ledger: Option<TempDir>,
}

impl InMemory {
    /// Chooses powers, where there is a choice, and sets up the run.
    pub fn prepare(
        mut experiment: Experiment,
        data: Dataset,
        on_event: &mut dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Self, PhaseError> {
        let (mut choice, mut folder) = (None, None);
        let private = experiment.control.pilot != Pilot::Synthetic;
        if experiment.control.needs_pilot() {
            let on_event = &mut warned_once(on_event);
            let place = folder.insert(TempDir::new().map_err(PhaseError::NoPlace)?).path();
            let ledger = experiment.run.ledger.clone().unwrap_or_else(|| place.join("ledger.db"));
            let pilots = pilots_in_memory(&experiment, &data, &ledger, on_event)?;
            let (chosen, _) = choose(&experiment, &data, pilots, &ledger, on_event)?;
            experiment = with_powers(&experiment, &chosen.powers_w, &ledger)?;
            choice = Some(chosen);
        }
        let simulation = match choice {
            Some(_) if private => charged(experiment, data)?,
            _ => Simulation::new(experiment, data)?,
        };
        Ok(Self { choice, simulation, records: Vec::new(), _ledger: folder })
    }

    /// Runs the rounds that are left.
    pub fn execute(
        &mut self,
        on_event: &mut dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<(), FederationError> {
        let records = &mut self.records;
        self.simulation.run(&mut |_, event| {
            if let Event::Round(record) = event {
                records.push(record.clone());
            }
            on_event(PhaseEvent::Run(event.into()))
        })
    }
}
