//! A run: rounds, metrics, checkpoints, and the folder that holds them.
//!
//! Order on the disk, so that a kill at any moment loses nothing: metrics first, synced; then the
//! checkpoint that counts their bytes. A resumed run cuts metrics.jsonl back to what its
//! checkpoint counted and repeats the rounds after it; since every random stream is derived from
//! the round, the repeated rounds are the same to the bit. summary.json comes last.

mod checkpoint;
mod error;
mod folder;

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub use error::RunError;
pub use folder::{Machine, Manifest, ManifestData, RunFolder, is_free};

use crate::atomic::write_atomically;
use crate::config::Experiment;
use crate::data::{DataName, Dataset};
use crate::federation::Federation;
use crate::observe::{self, MetricsWriter, RoundRecord};
use checkpoint::State;
use folder::write_json;

const METRICS: &str = "metrics.jsonl";
const SUMMARY: &str = "summary.json";

/// What a run reports while it goes on.
pub enum RunEvent<'a> {
    /// The folder is there and the first round is about to begin.
    Started {
        /// The run's folder.
        folder: &'a Path,
        /// Rounds done before (0 unless resumed).
        done: u32,
        /// The federation: devices, data, model.
        federation: &'a Federation,
    },
    /// A round is over and recorded.
    Round(&'a RoundRecord),
    /// A checkpoint is on the disk.
    Checkpoint {
        /// Rounds done.
        round: u32,
    },
    /// All rounds are done; tables and plots are being written.
    Finishing,
}

/// summary.json
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Final test accuracy, in [0, 1].
    pub accuracy: Option<f64>,
    /// Final mean test loss.
    pub loss: Option<f64>,
    /// Rounds.
    pub rounds: u32,
    /// Time over all rounds, interruptions left out.
    pub seconds: f64,
    /// Devices.
    pub devices: u32,
    /// Bytes the devices sent in all.
    pub uplink_bytes: u64,
    /// Bytes the base station sent in all.
    pub downlink_bytes: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All rounds are done.
    Finished(Summary),
    /// The listener cancelled; a checkpoint of this round is on the disk.
    Stopped {
        /// Rounds done.
        round: u32,
    },
}

/// A run that is ready to go on.
pub struct Run {
    folder: RunFolder,
    federation: Federation,
    metrics: MetricsWriter,
    seconds: f64,
}

impl Run {
    /// Begins a run in the new folder `path`.
    pub fn create(experiment: Experiment, data: Dataset, path: &Path) -> Result<Self, RunError> {
        Self::create_at(experiment, data, [path.to_path_buf()])
    }

    /// Begins a run in the first new folder of `path`-1, `path`-2, …
    pub fn create_numbered(
        experiment: Experiment,
        data: Dataset,
        path: &Path,
    ) -> Result<Self, RunError> {
        let numbered = |n: u32| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!("-{n}"));
            name.into()
        };
        Self::create_at(experiment, data, (1..).map(numbered))
    }

    fn create_at(
        mut experiment: Experiment,
        data: Dataset,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, RunError> {
        if let DataName::Idx(path) = &mut experiment.data.name {
            // The run may be resumed from another folder.
            *path = std::path::absolute(&*path).map_err(RunError::io("find", path))?;
        }
        let federation = Federation::new(experiment, data)?;
        let folder = RunFolder::create(paths, |partial| {
            let config = federation.experiment().to_toml();
            let path = partial.join(folder::CONFIG);
            write_atomically(&path, |file| file.write_all(config.as_bytes()))
                .map_err(RunError::io("write", &path))?;
            write_json(&partial.join(folder::MANIFEST), &Manifest::new(&federation))?;
            MetricsWriter::create(&partial.join(METRICS))?.sync()?;
            let state = State { round: 0, metrics_bytes: 0, seconds: 0.0 };
            checkpoint::save(partial, &state, federation.model())
        })?;
        let metrics = MetricsWriter::open_at(&folder.path().join(METRICS), 0)?;
        Ok(Self { folder, federation, metrics, seconds: 0.0 })
    }

    /// Goes on where the checkpoint of `folder` stands. `experiment` is the folder's own
    /// ([`RunFolder::experiment`]), with another number of threads if need be.
    pub fn resume(
        folder: RunFolder,
        experiment: Experiment,
        data: Dataset,
    ) -> Result<Self, RunError> {
        let before = folder.manifest()?;
        if before.data.files != data.hashes {
            return Err(RunError::OtherData { path: folder.path().into() });
        }
        let program =
            |version: &str, kernels: &str| format!("version {version}, {kernels} kernels");
        let began = program(&before.version, &before.kernels);
        let now = program(env!("CARGO_PKG_VERSION"), crate::model::kernels_in_use());
        if began != now {
            return Err(RunError::OtherProgram { path: folder.path().into(), began, now });
        }
        let mut federation = Federation::new(experiment, data)?;
        let (state, model) = checkpoint::load(folder.path(), federation.model())?;
        let metrics = MetricsWriter::open_at(&folder.path().join(METRICS), state.metrics_bytes)?;
        federation.restore(state.round, model);
        Ok(Self { folder, federation, metrics, seconds: state.seconds })
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the rounds that are left. `on_event` hears of each step and may break off after any.
    pub fn execute(
        mut self,
        on_event: &mut dyn FnMut(RunEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Outcome, RunError> {
        let (rounds, checkpoint_every) = {
            let run = &self.federation.experiment().run;
            (run.rounds, run.checkpoint_every)
        };
        let started = RunEvent::Started {
            folder: self.folder.path(),
            done: self.federation.round(),
            federation: &self.federation,
        };
        let mut flow = on_event(started);
        while self.federation.round() < rounds {
            if flow.is_break() {
                self.checkpoint()?;
                return Ok(Outcome::Stopped { round: self.federation.round() });
            }
            let start = Instant::now();
            let record = self.federation.next_round()?;
            self.metrics.append(&record)?;
            self.seconds += start.elapsed().as_secs_f64();
            flow = on_event(RunEvent::Round(&record));
            let round = record.round;
            if round.is_multiple_of(checkpoint_every) || round == rounds {
                self.checkpoint()?;
                if on_event(RunEvent::Checkpoint { round }).is_break() {
                    flow = ControlFlow::Break(());
                }
            }
        }
        // All rounds are done: what is left takes a moment, so a break comes too late.
        let _ = on_event(RunEvent::Finishing);
        self.finish().map(Outcome::Finished)
    }

    fn checkpoint(&mut self) -> Result<(), RunError> {
        self.metrics.sync()?;
        let state = State {
            round: self.federation.round(),
            metrics_bytes: self.metrics.len(),
            seconds: self.seconds,
        };
        checkpoint::save(self.folder.path(), &state, self.federation.model())
    }

    /// Writes what follows from the metrics and the model: all of it can be written again.
    fn finish(&self) -> Result<Summary, RunError> {
        let folder = self.folder.path();
        let metrics = folder.join(METRICS);
        let records = observe::read_metrics(&metrics)?;
        checkpoint::save_model(
            &folder.join("model.safetensors"),
            self.federation.network(),
            self.federation.model(),
        )?;
        observe::write_parquet(&metrics, &folder.join("metrics.parquet"))?;
        let plots = folder.join("plots");
        fs::create_dir_all(&plots).map_err(RunError::io("create", &plots))?;
        crate::plot::plot_run(&records, &plots)?;
        let last = records.last();
        let summary = Summary {
            accuracy: last.and_then(|record| record.accuracy),
            loss: last.and_then(|record| record.loss),
            rounds: self.federation.round(),
            seconds: self.seconds,
            devices: self.federation.partition().devices.len() as u32,
            uplink_bytes: records.iter().map(|record| record.uplink_bytes).sum(),
            downlink_bytes: records.iter().map(|record| record.downlink_bytes).sum(),
        };
        write_json(&folder.join(SUMMARY), &summary)?;
        Ok(summary)
    }
}

/// The summary of a finished run, or `None` while it is not finished.
pub fn read_summary(folder: &Path) -> Result<Option<Summary>, RunError> {
    let path = folder.join(SUMMARY);
    match fs::read_to_string(&path) {
        Ok(text) => {
            serde_json::from_str(&text).map(Some).map_err(|source| RunError::Json { path, source })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RunError::Io { action: "read", path, source }),
    }
}
