//! What a federation holds between rounds, and the work of each stage over its threads. The order
//! of the stages is in `round.rs`.

mod base_station;
mod devices;
mod error;
mod pretrain;
mod record;
mod study;

use std::sync::Arc;

use lapa_privacy::allocate::AllocatorState;
use lapa_privacy::ledger::{DataKey, Ledger};
use sha2::{Digest, Sha256};

pub use error::FederationError;
pub use study::{LocalStudy, Study, StudyError};

use crate::aggregate::{GlobalDelta, GlobalModel, Threshold, Weighting, WeightingState};
use crate::config::{Clip, Experiment, Transmit, UplinkName};
use crate::crew::Crew;
use crate::data::Dataset;
use crate::learn::LocalUpdate;
use crate::model::Network;
use crate::partition::Partition;
use crate::privatize::{Budgets, PrivacySummary, PrivatizeError, public_samples};
use crate::seed::{Purpose, stream};
use crate::transmit::{Links, Received, Uplink};

/// Everything a round reads and changes, in memory; no files.
pub struct Federation {
    pub(crate) experiment: Experiment,
    data: Dataset,
    partition: Partition,
    network: Arc<Network>,
    pub(crate) model: GlobalModel,
    pub(crate) delta: GlobalDelta,
    updates: Vec<LocalUpdate>,
    pub(crate) received: Vec<Received>,
    /// Whose updates `received` are.
    senders: Vec<u32>,
    /// The public number of samples of each device.
    public_samples: Vec<u32>,
    budgets: Budgets,
    /// Radio links; none where nothing depends on them.
    links: Option<Links>,
    uplink: Uplink,
    weighting: Weighting,
    warnings: Vec<String>,
    /// Whether it was said that rounds are skipped, and that values are cut.
    has_skipped: bool,
    has_cut: bool,
    crew: Crew,
    test_samples: Vec<u32>,
    pub(crate) round: u32,
    /// Seed of what devices and channels draw in rounds.
    draws: u64,
}

impl Federation {
    /// Builds the configured model, then as [`Federation::with_network`].
    pub fn new(experiment: Experiment, data: Dataset) -> Result<Self, FederationError> {
        let (rows, cols) = (data.train.rows, data.train.cols);
        let network = crate::model::network(&experiment.model, rows, cols, data.classes)
            .map_err(|source| FederationError::Model { rows, cols, source })?;
        Self::with_network(experiment, data, network)
    }

    /// Partitions the data and starts the threads for a network of one's own, in place of the
    /// experiment's `[model]`. Round 0 is the initial model.
    pub fn with_network(
        experiment: Experiment,
        data: Dataset,
        network: Network,
    ) -> Result<Self, FederationError> {
        let partition = crate::partition::partition(
            &experiment.partition,
            &data.train.labels,
            data.classes,
            experiment.run.seed,
        )?;
        let sizes: Vec<u32> =
            partition.devices.iter().map(|device| device.samples.len() as u32).collect();
        Self::with_records(experiment, data, network, partition, &sizes)
    }

    /// As [`Federation::with_network`], for records that were dealt elsewhere. `sizes` are the
    /// numbers of records that the devices declare: one that holds fewer has records of zero
    /// gradient in their place, as zero-out adjacency has it.
    ///
    /// # Panics
    /// If there is not one size for each device, or a sample is not in the training set.
    pub fn with_records(
        experiment: Experiment,
        data: Dataset,
        network: Network,
        partition: Partition,
        sizes: &[u32],
    ) -> Result<Self, FederationError> {
        assert_eq!(sizes.len(), partition.devices.len(), "sizes");
        let (inputs, outputs) = (data.train.rows * data.train.cols, data.classes);
        if network.inputs() != inputs || network.classes() < outputs {
            let (has_inputs, has_outputs) = (network.inputs(), network.classes());
            return Err(FederationError::Network { has_inputs, has_outputs, inputs, outputs });
        }
        if experiment.learn.clip == Clip::Sample && network.mixes_samples() {
            return Err(FederationError::NoSampleGradients);
        }
        pretrain::check(&experiment, &data)?;
        let power = experiment.control.power;
        if power.needs_pilot() {
            return Err(FederationError::PowersNotChosen { power });
        }
        let seed = experiment.run.seed;
        let network = Arc::new(network);
        let crew = Crew::new(experiment.run.threads, &network)?;
        let parameters = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        let public_samples = public_samples(&experiment, sizes);
        let budgets = Budgets::new(&experiment, &public_samples, parameters.len())?;
        let ideal = experiment.transmit.uplink == UplinkName::Ideal
            && experiment.aggregate.threshold() == Threshold::None;
        let links = if ideal { None } else { Some(Links::new(&experiment)?) };
        let mut federation = Self {
            model: GlobalModel {
                velocity: vec![0.0; parameters.len()],
                average: match experiment.learn.averaging {
                    0.0 => Vec::new(),
                    _ => parameters.clone(),
                },
                parameters,
                statistics: vec![0.0; network.statistics_count()],
            },
            delta: GlobalDelta::default(),
            updates: Vec::new(),
            received: Vec::new(),
            senders: Vec::new(),
            public_samples,
            budgets,
            links,
            uplink: Uplink::new(&experiment.transmit)?,
            weighting: Weighting::new(&experiment.aggregate, partition.devices.len()),
            warnings: optimistic(&experiment.transmit).into_iter().collect(),
            has_skipped: false,
            has_cut: false,
            crew,
            test_samples: (0..data.test.len() as u32).collect(),
            round: 0,
            draws: seed,
            experiment,
            data,
            partition,
            network,
        };
        federation.try_links()?;
        Ok(federation)
    }

    /// Fails before the first round where the receiver cannot separate its devices.
    fn try_links(&mut self) -> Result<(), FederationError> {
        let devices = self.participants(1);
        if let Some(links) = &mut self.links {
            links.of(1, &devices)?;
        }
        Ok(())
    }

    /// From now on batches, noise and errors of the channel are those of `seed`; the first model,
    /// the places of the devices and who takes part stay those of the run's. So an attacker who
    /// knows all that is public repeats the run. Without meaning for the operating system's entropy.
    pub fn redraw(&mut self, seed: u64) {
        self.draws = seed;
    }

    /// Records releases in `ledger` as `run` from now on, instead of in memory.
    pub fn record_in(&mut self, ledger: Ledger, run: &str) -> Result<(), PrivatizeError> {
        let data = self.data_key();
        self.budgets.move_to(&self.experiment, &self.public_samples, ledger, &data, run)
    }

    /// What a ledger knows this data by.
    fn data_key(&self) -> DataKey {
        let mut data = Sha256::new();
        for file in &self.data.hashes {
            data.update(&file.sha256);
        }
        let mut partition = Sha256::new();
        for device in &self.partition.devices {
            partition.update((device.samples.len() as u64).to_le_bytes());
            device.samples.iter().for_each(|sample| partition.update(sample.to_le_bytes()));
        }
        let hex = |hash: Sha256| hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        DataKey { data: hex(data), partition: hex(partition) }
    }

    /// The public numbers of samples of `devices`.
    pub(crate) fn samples_of(&self, devices: &[u32]) -> Vec<u32> {
        devices.iter().map(|&device| self.public_samples[device as usize]).collect()
    }

    /// What the run has spent so far, and what that proves.
    pub fn privacy(&mut self) -> Result<PrivacySummary, FederationError> {
        Ok(PrivacySummary::new(&self.experiment, &mut self.budgets)?)
    }

    /// How devices are weighted.
    pub fn weighting(&self) -> &Weighting {
        &self.weighting
    }

    /// The budgets of the devices.
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = self.budgets.take_warnings();
        warnings.append(&mut self.warnings);
        warnings
    }

    /// What the base station received in the last round, by device: the transcript.
    pub fn received(&self) -> impl Iterator<Item = (u32, &Received)> {
        self.senders.iter().copied().zip(&self.received)
    }

    /// The public number of samples of each device.
    pub fn public_samples(&self) -> &[u32] {
        &self.public_samples
    }

    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// What the base station holds.
    pub fn model(&self) -> &GlobalModel {
        &self.model
    }

    /// Continues after `round` rounds from `model`, with the allocator as it was and what the
    /// ledger has recorded, which is at least round `asked`. After
    /// [`Federation::restore_weighting`].
    pub fn restore(
        &mut self,
        round: u32,
        asked: u32,
        model: GlobalModel,
        allocator: Option<AllocatorState>,
    ) -> Result<(), PrivatizeError> {
        self.round = round;
        self.model = model;
        self.budgets.restore(round, asked, self.weighting.knows_labels(), allocator)
    }

    /// Continues with what the weights remember; false if that is of other devices.
    #[must_use]
    pub fn restore_weighting(&mut self, state: WeightingState) -> bool {
        self.weighting.restore(state)
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The data set.
    pub fn data(&self) -> &Dataset {
        &self.data
    }

    /// Who holds which samples.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Worker threads.
    pub fn threads(&self) -> usize {
        self.crew.threads()
    }
}

/// The fast uplinks take each device for itself; what SIC passes on from one to the next they
/// cannot know.
fn optimistic(transmit: &Transmit) -> Option<String> {
    let fast = matches!(transmit.uplink, UplinkName::Analog | UplinkName::Digital);
    (fast && !transmit.perfect_sic).then(|| {
        "transmit.perfect_sic = false: this uplink takes devices decoded before for cancelled \
         exactly, and the others for Gaussian noise, which favours devices decoded late; \
         transmit.uplink = \"signal\" decodes symbols"
            .into()
    })
}
