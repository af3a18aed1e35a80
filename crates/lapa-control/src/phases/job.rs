//! The one entry for runs, with or without a pilot before them.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lapa::config::Experiment;
use lapa::data::Dataset;
use lapa::run::{Outcome, Run, RunFolder, is_free};

use super::{PhaseError, PhaseEvent, PhaseOutcome, interrupted, pilot_and_run, pilot_folder};

/// A run that is ready to start.
pub enum Job {
    /// Rounds.
    Run(Box<Run>),
    /// A pilot, a choice of powers, then rounds.
    Staged {
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
pub enum Place<'a> {
    /// This one.
    At(&'a Path),
    /// The first new one of PATH-1, PATH-2, …
    Numbered(&'a Path),
}

impl Job {
    /// A new run: with a pilot first where `control.power` is to be fitted to one.
    pub fn create(
        experiment: Experiment,
        data: Dataset,
        place: Place<'_>,
    ) -> Result<Self, PhaseError> {
        if !experiment.control.needs_pilot() {
            let run = match place {
                Place::At(path) => Run::create(experiment, data, path),
                Place::Numbered(path) => Run::create_numbered(experiment, data, path),
            };
            return Ok(Self::Run(run?.into()));
        }
        let out = match place {
            Place::At(path) => path.into(),
            Place::Numbered(path) => {
                let name = |n: u32| PathBuf::from(format!("{}-{n}", path.display()));
                let free = |out: &PathBuf| is_free(out) && is_free(&pilot_folder(out));
                (1..).map(name).find(free).unwrap_or_else(|| path.into())
            }
        };
        Ok(Self::Staged { experiment: experiment.into(), data: data.into(), out })
    }

    /// The folder of the run.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Run(run) => run.folder(),
            Self::Staged { out, .. } => out,
        }
    }

    /// Runs it to its end, or until the listener breaks off.
    pub fn execute(
        self,
        on_event: &mut dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()>,
    ) -> Result<PhaseOutcome, PhaseError> {
        match self {
            Self::Run(run) => rounds(*run, on_event),
            Self::Staged { experiment, data, out } => {
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
            Some(folder) => Job::Run(Run::resume(folder, experiment, data)?.into()),
            None => Job::Staged { experiment: experiment.into(), data: data.into(), out },
        })
    }
}

/// The rounds of a run.
pub(super) fn rounds(
    run: Run,
    on_event: &mut dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()>,
) -> Result<PhaseOutcome, PhaseError> {
    Ok(match lapa_report::run::execute(run, &mut |event| on_event(PhaseEvent::Run(event)))? {
        Outcome::Finished(summary) => PhaseOutcome::Finished(summary),
        Outcome::Stopped { round } => PhaseOutcome::Stopped { round },
    })
}
