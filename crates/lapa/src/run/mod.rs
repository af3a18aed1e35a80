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
mod witness;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lapa_privacy::ledger::Ledger;
use lapa_privacy::mechanism::os_stream;
use rand::Rng;
use serde::{Deserialize, Serialize};

pub use checkpoint::{Tensor, model_tensors, read_model};
pub use error::RunError;
pub use finished::{CheckedRun, read_records};
pub use folder::{Machine, Manifest, RunFolder, fingerprint, is_free};
pub use witness::{KeyedHash, ManifestData};

use crate::atomic::write_atomically;
use crate::config::{Experiment, NoiseControl};
use crate::data::Dataset;
use crate::federation::{Federation, FederationError};
use crate::files::{self, Folder};
use crate::observe::{self, MetricsWriter, RoundRecord, number};
use crate::privatize::{PrivacySummary, PrivatizeError};
use checkpoint::State;
use folder::write_json;

const METRICS: &str = "metrics.jsonl";
const SUMMARY: &str = "summary.json";
const LEDGER: &str = "ledger.db";
/// Name of the file with the declarations of devices elsewhere, at their base station.
pub(crate) const DEVICES: &str = "devices.json";

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
    /// Something the user should know.
    Warning(&'a str),
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
    /// How often a device was told not to send, because of its link.
    pub outages: u64,
    /// How long the radio channel was busy in all.
    pub airtime_s: f64,
    /// What the devices radiated in all, at most.
    pub energy_j: f64,
    /// Bytes the devices sent in all.
    pub uplink_bytes: u64,
    /// Bytes the base station sent in all.
    pub downlink_bytes: u64,
    /// T_th, the last round with artificial noise: of all devices, or of each; null where the
    /// channel's noise stands in for none.
    pub switching_round: Option<SwitchingRound>,
    /// Releases with less noise than asked for.
    pub under_noised: UnderNoised,
    /// What was claimed, proved and spent.
    #[serde(flatten)]
    pub privacy: PrivacySummary,
}

impl Summary {
    /// What the rounds of a federation come to: `records` are all of them.
    pub fn new(
        records: &[RoundRecord],
        federation: &mut Federation,
        seconds: f64,
    ) -> Result<Self, FederationError> {
        let summary = Self {
            accuracy: None,
            loss: None,
            rounds: federation.round(),
            seconds,
            devices: federation.partition().devices.len() as u32,
            outages: 0,
            airtime_s: 0.0,
            energy_j: 0.0,
            uplink_bytes: 0,
            downlink_bytes: 0,
            switching_round: switching_round(federation),
            under_noised: UnderNoised::default(),
            privacy: federation.privacy()?,
        };
        Ok(summary.with_totals(records))
    }

    /// The same with what follows from the rounds alone.
    fn with_totals(self, records: &[RoundRecord]) -> Self {
        let last = records.last();
        Self {
            accuracy: last.and_then(|record| record.accuracy),
            loss: last.and_then(|record| record.loss),
            outages: records.iter().map(|record| u64::from(record.outages)).sum(),
            airtime_s: records.iter().map(|record| record.airtime_s).sum(),
            energy_j: records.iter().map(|record| record.energy_j).sum(),
            uplink_bytes: records.iter().map(|record| record.uplink_bytes).sum(),
            downlink_bytes: records.iter().map(|record| record.downlink_bytes).sum(),
            under_noised: UnderNoised {
                device_rounds: records.iter().map(|record| u64::from(record.under_noised)).sum(),
                worst_factor: records
                    .iter()
                    .filter_map(|record| record.under_noising)
                    .reduce(f64::max),
            },
            ..self
        }
    }
}

/// T_th: the last round with artificial noise; 0 if there was none, the last of all if it never
/// ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SwitchingRound {
    /// One for all devices (switch_rule sum).
    All(u32),
    /// One for each device; none if it never sent.
    Each(Vec<Option<u32>>),
}

impl SwitchingRound {
    /// Least, median and most over the devices; none if none sent.
    pub fn spread(&self) -> Option<[u32; 3]> {
        let mut rounds: Vec<u32> = match self {
            Self::All(round) => vec![*round],
            Self::Each(each) => each.iter().flatten().copied().collect(),
        };
        rounds.sort_unstable();
        Some([*rounds.first()?, rounds[rounds.len() / 2], *rounds.last()?])
    }
}

/// Releases with less noise than their shares of the budgets asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnderNoised {
    /// How many: one for each device and round.
    pub device_rounds: u64,
    /// The largest σ_required/σ among them; null if there are none.
    #[serde(with = "number::optional")]
    pub worst_factor: Option<f64>,
}

/// How a run ended.
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
    folder: RunFolder,
    name: String,
    pub(crate) federation: Federation,
    metrics: MetricsWriter,
    seconds: f64,
}

impl Run {
    /// Begins a run in the new folder `path`.
    pub fn create(experiment: Experiment, data: Dataset, path: &Path) -> Result<Self, RunError> {
        // A link to an empty folder stands for that folder: the run is put into its place.
        let path = path.canonicalize().ok().filter(|_| path.is_symlink()).unwrap_or(path.into());
        Self::create_at(experiment, data, [path])
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
        experiment: Experiment,
        data: Dataset,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, RunError> {
        // The run may be resumed from another folder.
        let experiment = experiment
            .with_absolute_paths()
            .map_err(|(path, source)| RunError::Io { action: "find", path, source })?;
        Self::begin(Federation::new(experiment, data)?, paths)
    }

    /// Begins a run of `federation` in the first of `paths` that is free.
    pub(crate) fn begin(
        mut federation: Federation,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, RunError> {
        let run = new_run_id()?;
        if let Some(path) = federation.experiment().run.ledger.clone() {
            // Before a folder is made: it may refuse.
            record_in(&mut federation, &path, &run)?;
        }
        let folder = RunFolder::create(paths, |partial| {
            // From the first moment on, so that a missing ledger is always a lost one.
            let own = match federation.experiment().run.ledger {
                None => Some(Ledger::open(&partial.join(LEDGER)).map_err(PrivatizeError::from)?),
                Some(_) => None,
            };
            let ledger = own.as_ref().unwrap_or(federation.budgets.ledger());
            let entropy = federation.experiment().run.entropy;
            let data = ManifestData::new(federation.data(), entropy, ledger)
                .map_err(PrivatizeError::from)?;
            let config = federation.experiment().to_toml();
            let path = partial.join(folder::CONFIG);
            write_atomically(&path, |file| file.write_all(config.as_bytes()))
                .map_err(RunError::io("write", &path))?;
            write_json(&partial.join(folder::MANIFEST), &Manifest::new(&federation, &run, data))?;
            MetricsWriter::create(&partial.join(METRICS))?.sync()?;
            save_checkpoint(partial, &federation, 0, 0.0)
        })?;
        if federation.experiment().run.ledger.is_none() {
            record_in(&mut federation, &folder.path().join(LEDGER), &run)?;
        }
        let metrics = MetricsWriter::open_at(&folder.path().join(METRICS), 0)?;
        Ok(Self { folder, name: run, federation, metrics, seconds: 0.0 })
    }

    /// Goes on where the checkpoint of `folder` stands. `experiment` is the folder's own
    /// ([`RunFolder::experiment`]), with another number of threads if need be.
    pub fn resume(
        folder: RunFolder,
        experiment: Experiment,
        data: Dataset,
    ) -> Result<Self, RunError> {
        let before = folder.manifest()?;
        refuse_others(&folder, &before, &experiment, &data)?;
        Self::go_on(folder, before.run, Federation::new(experiment, data)?)
    }

    /// Goes on with the run `name` of `federation`, which is still as it was before round 1.
    pub(crate) fn go_on(
        folder: RunFolder,
        name: String,
        mut federation: Federation,
    ) -> Result<Self, RunError> {
        let (state, model, allocator) = checkpoint::load(folder.path(), federation.model())?;
        let ledger = witness::ledger_of(folder.path(), federation.experiment())?;
        record_in(&mut federation, &ledger, &name)?;
        if !federation.restore_weighting(state.weighting) {
            let what = "its weights are those of another number of devices".into();
            return Err(RunError::Checkpoint { path: folder.path().join(checkpoint::FILE), what });
        }
        federation.restore(state.round, state.asked, model, allocator)?;
        // Before what they show is cut off.
        witness::refuse_forgotten(folder.path(), &mut federation)?;
        let metrics = MetricsWriter::open_at(&folder.path().join(METRICS), state.metrics_bytes)?;
        Ok(Self { folder, name, federation, metrics, seconds: state.seconds })
    }

    /// The run's name, the same after it was resumed.
    pub fn name(&self) -> &str {
        &self.name
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
        let flow = on_event(started);
        let mut flow = self.warn(on_event, flow);
        while self.federation.round() < rounds {
            if flow.is_break() {
                self.checkpoint()?;
                return Ok(Outcome::Stopped { round: self.federation.round() });
            }
            let start = Instant::now();
            let record = self.federation.next_round()?;
            self.append(&record, start)?;
            flow = on_event(RunEvent::Round(&record));
            flow = self.warn(on_event, flow);
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
        self.finish().map(|summary| Outcome::Finished(Box::new(summary)))
    }

    /// Writes down a round that began at `start`.
    pub(crate) fn append(&mut self, record: &RoundRecord, start: Instant) -> Result<(), RunError> {
        self.metrics.append(record)?;
        self.seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    fn warn(
        &mut self,
        on_event: &mut dyn FnMut(RunEvent<'_>) -> ControlFlow<()>,
        mut flow: ControlFlow<()>,
    ) -> ControlFlow<()> {
        for warning in self.federation.take_warnings() {
            if on_event(RunEvent::Warning(&warning)).is_break() {
                flow = ControlFlow::Break(());
            }
        }
        flow
    }

    pub(crate) fn checkpoint(&mut self) -> Result<(), RunError> {
        self.metrics.sync()?;
        let (folder, metrics_bytes) = (self.folder.path(), self.metrics.len());
        save_checkpoint(folder, &self.federation, metrics_bytes, self.seconds)
    }

    /// The rounds so far.
    pub(crate) fn records(&self) -> Result<Vec<RoundRecord>, RunError> {
        Ok(observe::read_metrics(&self.folder.path().join(METRICS))?)
    }

    /// What the rounds so far come to.
    pub(crate) fn summary(&mut self, records: &[RoundRecord]) -> Result<Summary, RunError> {
        Ok(Summary::new(records, &mut self.federation, self.seconds)?)
    }

    /// Writes what follows from the metrics and the model: all of it can be written again.
    pub(crate) fn finish(&mut self) -> Result<Summary, RunError> {
        let folder = self.folder.path().to_path_buf();
        let metrics = folder.join(METRICS);
        let records = self.records()?;
        checkpoint::save_model(
            &folder.join(checkpoint::MODEL),
            self.federation.network(),
            self.federation.model(),
        )?;
        observe::write_parquet(&metrics, &folder.join("metrics.parquet"))?;
        let plots = Folder::open(&folder).and_then(|folder| folder.subfolder("plots"));
        let plots = plots.map_err(RunError::io("write plots to", &folder))?;
        let sigma = self.federation.experiment().initial_sigma();
        crate::plot::plot_run(&records, sigma, &plots)?;
        let summary = self.summary(&records)?;
        write_json(&folder.join(SUMMARY), &summary)?;
        Ok(summary)
    }
}

/// Refuses to go on with other data, another program or another experiment.
pub(crate) fn refuse_others(
    folder: &RunFolder,
    before: &Manifest,
    experiment: &Experiment,
    data: &Dataset,
) -> Result<(), RunError> {
    before.expect_data(folder.path(), experiment, data)?;
    let program = |version: &str, kernels: &str| format!("version {version}, {kernels} kernels");
    let began = program(&before.version, &before.kernels);
    let now = program(env!("CARGO_PKG_VERSION"), crate::model::kernels_in_use());
    if began != now {
        return Err(RunError::OtherProgram { path: folder.path().into(), began, now });
    }
    if before.experiment != folder::fingerprint(experiment) {
        return Err(RunError::Changed { path: folder.path().join(folder::CONFIG) });
    }
    Ok(())
}

fn switching_round(federation: &Federation) -> Option<SwitchingRound> {
    let (control, budgets) = (&federation.experiment().control, federation.budgets());
    let each = (0..budgets.devices()).map(|device| budgets.switching_round(device));
    match control.noise {
        NoiseControl::Always => None,
        noise if noise.goes_by_sum() => each.max().flatten().map(SwitchingRound::All),
        _ => Some(SwitchingRound::Each(each.collect())),
    }
}

fn save_checkpoint(
    folder: &Path,
    federation: &Federation,
    metrics_bytes: u64,
    seconds: f64,
) -> Result<(), RunError> {
    let (scalars, vectors) = match federation.budgets().state() {
        Some(state) => (Some(state.scalars), state.vectors),
        None => (None, Vec::new()),
    };
    let state = State {
        round: federation.round(),
        metrics_bytes,
        seconds,
        allocator: scalars,
        asked: federation.budgets().asked(),
        weighting: federation.weighting().state().clone(),
        remembered: vectors.len(),
    };
    checkpoint::save(folder, &state, federation.model(), &vectors)
}

/// Opens the ledger at `path` and records the releases of `run` there from now on.
///
/// In the ledger the run's name carries a hash of all that decides a release. After a change of
/// config.resolved.toml it is another run there, which can replay nothing.
fn record_in(federation: &mut Federation, path: &Path, run: &str) -> Result<(), RunError> {
    let ledger = Ledger::open(path).map_err(PrivatizeError::from)?;
    let name = format!("{run}-{}", folder::fingerprint(federation.experiment()));
    federation.record_in(ledger, &name).map_err(|error| match error {
        PrivatizeError::Ledger(source) => RunError::Ledger { path: path.into(), source },
        other => other.into(),
    })
}

/// A name for a run that no other run has: runs that share a ledger are told apart by it.
fn new_run_id() -> Result<String, RunError> {
    let mut rng = os_stream().map_err(PrivatizeError::from)?;
    Ok(format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64()))
}

/// The summary of a finished run, or `None` while it is not finished.
pub fn read_summary(folder: &Path) -> Result<Option<Summary>, RunError> {
    let path = folder.join(SUMMARY);
    match files::read_to_string(&path) {
        Ok(text) => {
            serde_json::from_str(&text).map(Some).map_err(|source| RunError::Json { path, source })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RunError::Io { action: "read", path, source }),
    }
}
