//! The log of a run in its folder: metrics, checkpoints, summary. Simulations and base stations of
//! remote devices write the same.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lapa_privacy::ledger::Ledger;
use lapa_privacy::sampler::os_stream;
use rand::Rng;

use super::checkpoint::{self, State};
use super::folder::{self, RunFolder};
use super::{LEDGER, METRICS, Manifest, ManifestData, Result, RunError, SUMMARY, Summary, witness};
use crate::atomic::{write_bytes, write_json};
use crate::budget::PrivacyError;
use crate::config::Experiment;
use crate::data::Origin;
use crate::federation::{Federation, Prepared};
use crate::observe::{self, MetricsWriter, RoundRecord};
use crate::station::Station;

/// An open log.
pub(crate) struct RunLog {
    folder: RunFolder,
    name: String,
    metrics: MetricsWriter,
    seconds: f64,
}

/// All that a new folder tells of its run.
struct Beginning<'a> {
    experiment: &'a Experiment,
    origin: &'a Origin,
    station: &'a Station,
    threads: usize,
}

impl RunLog {
    /// Begins the log of a new run in the first of `paths` that is free.
    pub fn begin(
        prepared: Prepared,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Result<(Self, Federation)> {
        let name = new_run_id()?;
        let (folder, federation) = match prepared.experiment.run.ledger.clone() {
            Some(path) => {
                // Before a folder is made: the ledger may refuse.
                let federation = record_in(prepared, &path, &name)?;
                let Federation { experiment, origin, station, threads, .. } = &federation;
                let beginning = Beginning { experiment, origin, station, threads: *threads };
                let folder = RunFolder::create(paths, |partial| {
                    beginning.fill(partial, &name, federation.books.ledger())
                })?;
                (folder, federation)
            }
            None => {
                let Prepared { experiment, origin, station, threads, .. } = &prepared;
                let beginning = Beginning { experiment, origin, station, threads: *threads };
                let folder = RunFolder::create(paths, |partial| {
                    // Create it now: a missing ledger then always means data loss.
                    let ledger = Ledger::open(&partial.join(LEDGER))?;
                    beginning.fill(partial, &name, &ledger)
                })?;
                let federation = record_in(prepared, &folder.path().join(LEDGER), &name)?;
                (folder, federation)
            }
        };
        let metrics = MetricsWriter::open_at(&folder.path().join(METRICS), 0)?;
        Ok((Self { folder, name, metrics, seconds: 0.0 }, federation))
    }

    /// Goes on with the run `name` where the checkpoint of `folder` stands.
    pub fn resume(
        folder: RunFolder,
        name: String,
        prepared: Prepared,
    ) -> Result<(Self, Federation)> {
        let (state, model, allocator) = checkpoint::load(folder.path(), prepared.station.model())?;
        let ledger = witness::ledger_of(folder.path(), &prepared.experiment)?;
        let mut federation = record_in(prepared, &ledger, &name)?;
        let at = (state.round, state.asked);
        if !federation.restore(at, model, state.weighting, allocator)? {
            let what = "its weights are those of another number of devices";
            return Err(checkpoint::damaged(&folder.path().join(checkpoint::FILE), what));
        }
        // Before what they show is cut off.
        witness::refuse_forgotten(folder.path(), &mut federation)?;
        let metrics = MetricsWriter::open_at(&folder.path().join(METRICS), state.metrics_bytes)?;
        Ok((Self { folder, name, metrics, seconds: state.seconds }, federation))
    }

    /// The run's name, the same after it was resumed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes down a round that began at `start`.
    pub fn append(&mut self, record: &RoundRecord, start: Instant) -> Result<()> {
        self.metrics.append(record)?;
        self.seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Writes a checkpoint of the rounds so far.
    pub fn checkpoint(&mut self, federation: &Federation) -> Result<()> {
        self.metrics.sync()?;
        let (bytes, asked) = (self.metrics.len(), federation.books.asked);
        save_checkpoint(self.folder(), &federation.station, asked, bytes, self.seconds)
    }

    /// The summary of the rounds so far.
    pub fn summary(&self, federation: &mut Federation) -> Result<Summary> {
        let records = observe::read_metrics(&self.folder().join(METRICS))?;
        Ok(Summary::new(&records, federation, self.seconds)?)
    }

    /// Writes the model and the summary: both can be written again.
    pub fn finish(&self, station: &Station, summary: &Summary) -> Result<()> {
        checkpoint::save_model(self.folder(), station)?;
        let path = self.folder().join(SUMMARY);
        write_json(&path, summary).map_err(RunError::io("write", &path))
    }
}

impl Beginning<'_> {
    /// Writes the files that every run folder has from its first moment on.
    fn fill(&self, partial: &Path, name: &str, ledger: &Ledger) -> Result<()> {
        let entropy = self.experiment.run.entropy;
        let data = ManifestData::new(self.origin, entropy, ledger)?;
        let path = partial.join(folder::CONFIG);
        write_bytes(&path, self.experiment.to_toml()).map_err(RunError::io("write", &path))?;
        let parameters = self.station.model().parameters.len();
        let manifest = Manifest::new(self.experiment, name, data, parameters, self.threads);
        let path = partial.join(folder::MANIFEST);
        write_json(&path, &manifest).map_err(RunError::io("write", &path))?;
        MetricsWriter::create(&partial.join(METRICS))?.sync()?;
        save_checkpoint(partial, self.station, 0, 0, 0.0)
    }
}

fn save_checkpoint(
    folder: &Path,
    station: &Station,
    asked: u32,
    metrics_bytes: u64,
    seconds: f64,
) -> Result<()> {
    let memory = station.allocator_state().map(|state| (state.scalars, state.vectors));
    let (allocator, vectors) = memory.unzip();
    let vectors = vectors.unwrap_or_default();
    let state = State {
        round: station.round(),
        metrics_bytes,
        seconds,
        allocator,
        asked,
        weighting: station.weighting().state(),
        remembered: vectors.len(),
    };
    checkpoint::save(folder, &state, station.model(), &vectors)
}

/// Opens the ledger at `path` and records the releases of `run` there.
///
/// In the ledger the run's name carries a hash of all that decides a release. After a change of
/// config.resolved.toml it is another run there, which can replay nothing.
fn record_in(prepared: Prepared, path: &Path, run: &str) -> Result<Federation> {
    let ledger = Ledger::open(path)?;
    let name = format!("{run}-{}", folder::fingerprint(&prepared.experiment));
    prepared.record_in(ledger, &name).map_err(|error| match error {
        PrivacyError::Ledger(source) => RunError::Ledger { path: path.into(), source },
        other => other.into(),
    })
}

/// A name for a run that no other run has: runs that share a ledger are told apart by it.
fn new_run_id() -> Result<String> {
    let mut rng = os_stream().map_err(PrivacyError::from)?;
    Ok(format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64()))
}
