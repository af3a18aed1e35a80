//! A simulation: K devices and a base station in one process.

mod device_accuracy;
mod devices;
mod driver;
mod exact_loss;
mod memory;
mod setup;

pub use crate::error::TooLarge;
pub use crate::observe::Cancelled;
pub use driver::Event;
pub use exact_loss::{ExactLoss, ExactLossError, LocalLoss};
pub(crate) use memory::{check_memory, threads};
pub use setup::Setup;
pub(crate) use setup::{check, repeat};

use crate::aggregate::{GlobalModel, Weighting};
use crate::budget::{Books, PrivacyError, PrivacySummary};
use crate::config::Experiment;
use crate::data::Dataset;
use crate::error::Result;
use crate::federation::Federation;
use crate::model::Network;
use crate::observe::RoundRecord;
use crate::partition::Records;
use crate::radio::Received;
use crate::round;
use crate::station::Station;
use devices::Devices;

/// K simulated devices and their base station, in memory; no files but the ledger.
pub struct Simulation {
    devices: Devices,
    pub(crate) federation: Federation,
}

impl Simulation {
    /// A simulation of the configured model whose ledger is gone with the process. For more, see
    /// [`Setup`].
    pub fn new(experiment: Experiment, data: Dataset) -> Result<Self> {
        Ok(Setup::new(experiment, data)?.in_memory()?)
    }

    /// Runs the next round. Releases are on record before anything is computed.
    pub fn next_round(&mut self) -> Result<RoundRecord> {
        let Self { devices, federation } = self;
        federation.station.pretrain();
        if federation.station.needs_labels() {
            let recorded = round::ask_histograms(federation)?;
            federation.station.learn_labels(devices.histograms(recorded)?);
        }
        let asked = round::ask(federation, &federation.station.participants())?;
        round::conclude(federation, devices, asked)
    }

    /// Draws batches, noise and errors of the channel from `seed` from now on; the first model, the
    /// places of the devices and the participants stay those of the run. So an attacker who knows
    /// all that is public repeats the run. Without meaning for the operating system's entropy.
    pub fn redraw(&mut self, seed: u64) {
        self.devices.draws.seed = seed;
        self.federation.radio.draws.seed = seed;
    }

    /// The base station.
    pub fn station(&self) -> &Station {
        &self.federation.station
    }

    /// The books.
    pub fn books(&self) -> &Books {
        &self.federation.books
    }

    /// The privacy of the run so far.
    pub fn privacy(&mut self) -> Result<PrivacySummary, PrivacyError> {
        self.federation.privacy()
    }

    /// Accuracy and mean loss on the test images.
    pub fn evaluate(&mut self) -> Option<(f64, f64)> {
        self.federation.station.evaluate()
    }

    /// The transcript of the last round, by device; empty after a large round of which nobody reads
    /// single updates ([`Setup::keep_transcript`]).
    pub fn received(&self) -> &[Received] {
        self.station().received()
    }

    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.station().round()
    }

    /// The global model.
    pub fn model(&self) -> &GlobalModel {
        self.station().model()
    }

    /// Aggregation weights.
    pub fn weighting(&self) -> &Weighting {
        self.station().weighting()
    }

    /// The public number of samples of each device.
    pub fn public_samples(&self) -> &[u32] {
        self.station().public_samples()
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.federation.experiment
    }

    /// The data set.
    pub fn data(&self) -> &Dataset {
        &self.devices.data
    }

    /// The records of each device.
    pub fn records(&self) -> &Records {
        &self.devices.partition
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.devices.network
    }

    /// Worker threads.
    pub fn threads(&self) -> usize {
        self.federation.threads
    }
}
