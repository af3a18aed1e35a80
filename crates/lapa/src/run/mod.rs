//! A run: rounds, metrics, checkpoints, and the folder that holds them.
//!
//! Order on the disk, so that a kill at any moment loses nothing: metrics first, synced; then the
//! checkpoint that counts their bytes. A resumed run cuts metrics.jsonl back to what its
//! checkpoint counted and repeats the rounds after it; since every random stream is derived from
//! the round, the repeated rounds are the same to the bit. summary.json comes last. Every release
//! is in the ledger before its noise is drawn, so the ledger may be ahead of the checkpoint and is
//! never behind it.

mod checkpoint;
mod error;
mod finished;
mod folder;
mod log;
mod summary;
mod witness;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub use checkpoint::{Tensor, model_tensors, read_model};
pub use error::{Result, RunError};
pub use finished::{CheckedRun, read_records};
pub use folder::{Machine, Manifest, RunFolder, fingerprint, is_free, read_experiment};
pub(crate) use log::RunLog;
pub use summary::{Summary, SwitchingRound, UnderNoised, read_summary};
pub use witness::{KeyedHash, ManifestData};

use crate::config::{self, Experiment};
use crate::data::{Dataset, Origin};
use crate::observe::RoundRecord;
use crate::simulation::{Event, Setup, Simulation};

const METRICS: &str = "metrics.jsonl";
const SUMMARY: &str = "summary.json";
const LEDGER: &str = "ledger.db";
/// Name of the file with the declarations of remote devices, at their base station.
pub(crate) const DEVICES: &str = "devices.json";

/// Events of a run.
pub enum RunEvent<'a> {
    /// The folder is there and the first round is about to begin.
    Started {
        /// The run's folder.
        folder: &'a Path,
        /// Rounds done before (0 unless resumed).
        done: u32,
        /// Devices, data, model.
        simulation: &'a Simulation,
    },
    /// Something the user should know.
    Warning(&'a str),
    /// A round is over and recorded.
    Round(&'a RoundRecord),
    /// A checkpoint is on the disk.
    Checkpoint {
        /// Rounds done.
        round: u32,
    },
    /// All rounds are done and on the disk; listeners may add files before this summary.
    Finishing(&'a Summary),
}

impl<'a> From<Event<'a>> for RunEvent<'a> {
    fn from(event: Event<'a>) -> Self {
        match event {
            Event::Warning(warning) => Self::Warning(warning),
            Event::Round(record) => Self::Round(record),
        }
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All rounds are done.
    Finished(Box<Summary>),
    /// The listener cancelled; a checkpoint of this round is on the disk.
    Stopped {
        /// Rounds done.
        round: u32,
    },
}

/// A run that is ready to go on.
pub struct Run {
    log: RunLog,
    simulation: Simulation,
}

impl Run {
    /// Begins a run in the new folder `path`.
    pub fn create(experiment: Experiment, data: Dataset, path: &Path) -> Result<Self> {
        // A link to an empty folder stands for that folder: the run is put into its place.
        let path = path.canonicalize().ok().filter(|_| path.is_symlink()).unwrap_or(path.into());
        Self::create_at(experiment, data, [path])
    }

    /// Begins a run in the first new folder of `path`-1, `path`-2, …
    pub fn create_numbered(experiment: Experiment, data: Dataset, path: &Path) -> Result<Self> {
        let numbered = |n: u32| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("-{n}"));
            name.into()
        };
        Self::create_at(experiment, data, (1..).map(numbered))
    }

    fn create_at(
        experiment: Experiment,
        data: Dataset,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self> {
        // The run may be resumed from another folder.
        let experiment = experiment
            .with_absolute_paths()
            .map_err(|(path, source)| RunError::io("find", &path)(source))?;
        let setup = Setup::new(experiment, data)?;
        let (log, simulation) = setup.open_with(|prepared| RunLog::begin(prepared, paths))?;
        Ok(Self { log, simulation })
    }

    /// Goes on where the checkpoint of `folder` stands. `experiment` is the folder's own
    /// ([`RunFolder::experiment`]), with another number of threads if need be.
    pub fn resume(folder: RunFolder, experiment: Experiment, data: Dataset) -> Result<Self> {
        let before = folder.manifest()?;
        check_same_run(&folder, &before, &experiment, &data.origin())?;
        let setup = Setup::new(experiment, data)?;
        let (log, simulation) =
            setup.open_with(|prepared| RunLog::resume(folder, before.run, prepared))?;
        Ok(Self { log, simulation })
    }

    /// The run's name, the same after it was resumed.
    pub fn name(&self) -> &str {
        self.log.name()
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.log.folder()
    }

    /// Runs the rounds that are left. `on_event` hears of each step and may break off after any.
    pub fn execute(
        self,
        on_event: &mut dyn FnMut(RunEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome> {
        let Self { mut log, mut simulation } = self;
        let config::Run { rounds, checkpoint_every, .. } = simulation.experiment().run;
        let (folder, done) = (log.folder(), simulation.round());
        let started = on_event(RunEvent::Started { folder, done, simulation: &simulation });
        if started.is_break() && done < rounds {
            log.checkpoint(&simulation.federation)?;
            return Ok(Outcome::Stopped { round: done });
        }
        let mut start = crate::clock::now();
        let flow = simulation.drive(&mut |simulation, event| -> Result<_> {
            let record = match event {
                Event::Warning(warning) => return Ok(on_event(RunEvent::Warning(warning))),
                Event::Round(record) => record,
            };
            log.append(record, start)?;
            let mut flow = on_event(RunEvent::Round(record));
            let round = record.round;
            if round.is_multiple_of(checkpoint_every) || round == rounds {
                log.checkpoint(&simulation.federation)?;
                if on_event(RunEvent::Checkpoint { round }).is_break() {
                    flow = ControlFlow::Break(());
                }
            }
            start = crate::clock::now();
            Ok(flow)
        })?;
        if flow.is_break() {
            log.checkpoint(&simulation.federation)?;
            return Ok(Outcome::Stopped { round: simulation.round() });
        }
        // All rounds are done: what is left takes a moment, so a break comes too late.
        let summary = log.summary(&mut simulation.federation)?.of_simulation(&simulation);
        let _ = on_event(RunEvent::Finishing(&summary));
        log.finish(simulation.station(), &summary)?;
        Ok(Outcome::Finished(summary.into()))
    }
}

/// Refuses to go on with other data, another program or another experiment.
pub(crate) fn check_same_run(
    folder: &RunFolder,
    before: &Manifest,
    experiment: &Experiment,
    data: &Origin,
) -> Result<()> {
    before.expect_data(folder.path(), experiment, data)?;
    let program = |version: &str, kernels: &str| format!("version {version}, {kernels} kernels");
    let began = program(&before.version, &before.kernels);
    let now = program(env!("CARGO_PKG_VERSION"), crate::model::kernels_in_use());
    if began != now {
        return Err(RunError::invalid(folder.path())(format!(
            "the run began with {began}, this is {now}; going on would mix two roundings in one run"
        )));
    }
    if before.experiment != folder::fingerprint(experiment) {
        return Err(RunError::Changed(folder.path().join(folder::CONFIG)));
    }
    Ok(())
}
