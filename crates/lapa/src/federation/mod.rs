//! What a federation holds between rounds, and the work of each stage over its threads. The order
//! of the stages is in `round.rs`.

mod base_station;
mod devices;
mod error;
mod memory;
mod pretrain;
mod record;
mod study;

use std::borrow::Cow;
use std::sync::Arc;

use lapa_privacy::allocate::AllocatorState;
use lapa_privacy::ledger::{DataKey, Ledger};
use sha2::{Digest, Sha256};

pub(crate) use devices::{batches, rng};
pub use error::FederationError;
pub(crate) use memory::Load;
pub use memory::TooLarge;
pub use study::{LocalStudy, Study, StudyError};

use crate::aggregate::{GlobalDelta, GlobalModel, Threshold, Weighting, WeightingState};
use crate::config::{Clip, Experiment, Transmit};
use crate::crew::Crew;
use crate::data::Dataset;
use crate::model::Network;
use crate::partition::{DeviceData, Partition};
use crate::privatize::{Budgets, PrivacySummary, PrivatizeError, of_whole_updates, public_samples};
use crate::seed::{Purpose, stream};
use crate::transmit::{Links, Received, Uplink, UplinkConfig};

/// What of the devices' work is done by other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// Nothing: all devices are simulated.
    Nothing,
    /// All of it: devices answer what they are asked.
    Devices,
    /// The same, and the model is not one of ours: devices clip whole updates.
    Models,
}

/// Everything a round reads and changes, in memory; no files.
pub struct Federation {
    pub(crate) experiment: Experiment,
    data: Dataset,
    partition: Partition,
    network: Arc<Network>,
    pub(crate) model: GlobalModel,
    pub(crate) delta: GlobalDelta,
    /// Numbers of the last round's updates before noise, by device with a grant.
    insights: Vec<devices::Insight>,
    pub(crate) received: Vec<Received>,
    /// Whose updates `received` are.
    senders: Vec<u32>,
    elsewhere: Elsewhere,
    /// The public number of samples of each device.
    public_samples: Vec<u32>,
    pub(crate) budgets: Budgets,
    /// Radio links; none where nothing depends on them.
    links: Option<Links>,
    uplink: Uplink,
    pub(crate) weighting: Weighting,
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
        // Before the partition, which takes the labels to be below the number of classes.
        check(&experiment, shape(&data), &network)?;
        let partition = crate::partition::partition(
            &*experiment.partition.scheme,
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
        check(&experiment, shape(&data), &network)?;
        let power = experiment.control.power;
        if power.needs_pilot() {
            return Err(FederationError::PowersNotChosen { power });
        }
        let largest = partition.devices.iter().map(|device| device.samples.len() as u32).max();
        load(&experiment, &data, &network, sizes.len(), largest.unwrap_or(0)).check(&experiment)?;
        let seed = experiment.run.seed;
        let parameters = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        let public_samples = public_samples(&experiment, sizes)?;
        let (model, elsewhere) = ((network, parameters), Elsewhere::Nothing);
        let mut federation =
            Self::assemble(experiment, data, partition, model, public_samples, elsewhere)?;
        federation.try_links()?;
        Ok(federation)
    }

    /// A federation whose devices, of `public_samples`, are elsewhere: it asks them and takes what
    /// they answer. The model begins at `parameters`, or as `network` does; without them it is
    /// evaluated on the test images of `data`.
    pub(crate) fn of_devices_elsewhere(
        experiment: Experiment,
        data: Dataset,
        network: Network,
        parameters: Option<Vec<f32>>,
        public_samples: Vec<u32>,
    ) -> Result<Self, FederationError> {
        let (elsewhere, parameters) = match parameters {
            Some(parameters) => (Elsewhere::Models, parameters),
            None => {
                check(&experiment, shape(&data), &network)?;
                load(&experiment, &data, &network, public_samples.len(), 0).check(&experiment)?;
                let mut rng = stream(experiment.run.seed, Purpose::ModelInit, 0, 0);
                (Elsewhere::Devices, network.initial_parameters(&mut rng))
            }
        };
        let unknown = DeviceData { samples: Vec::new(), label_counts: Vec::new(), iid: None };
        let partition = Partition { devices: vec![unknown; public_samples.len()] };
        let model = (network, parameters);
        Self::assemble(experiment, data, partition, model, public_samples, elsewhere)
    }

    fn assemble(
        experiment: Experiment,
        data: Dataset,
        partition: Partition,
        (network, parameters): (Network, Vec<f32>),
        public_samples: Vec<u32>,
        elsewhere: Elsewhere,
    ) -> Result<Self, FederationError> {
        let network = Arc::new(network);
        let threads = memory::threads(&experiment, partition.devices.len(), data.test.len());
        let crew = Crew::new(threads, &network)?;
        let budgets =
            Budgets::new(&declared(&experiment, elsewhere), &public_samples, parameters.len())?;
        let ideal = experiment.transmit.uplink == UplinkConfig::Ideal
            && experiment.aggregate.threshold == Threshold::None;
        let links = if ideal { None } else { Some(Links::new(&experiment)?) };
        Ok(Self {
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
            insights: Vec::new(),
            received: Vec::new(),
            senders: Vec::new(),
            elsewhere,
            public_samples,
            budgets,
            links,
            uplink: Uplink::new(&experiment.transmit)?,
            weighting: Weighting::new(experiment.aggregate.rule, partition.devices.len()),
            warnings: optimistic(&experiment.transmit).into_iter().collect(),
            has_skipped: false,
            has_cut: false,
            crew,
            test_samples: (0..data.test.len() as u32).collect(),
            round: 0,
            draws: experiment.run.seed,
            experiment,
            data,
            partition,
            network,
        })
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
        let data = self.data_key(&ledger)?;
        let declared = declared(&self.experiment, self.elsewhere);
        self.budgets.move_to(&declared, &self.public_samples, ledger, &data, run)?;
        if self.elsewhere != Elsewhere::Nothing {
            self.budgets.replay();
        }
        Ok(())
    }

    /// The names of this data on a ledger. They are made with its key, so that they tell nothing of
    /// the records to whoever does not have the ledger.
    fn data_key(&self, ledger: &Ledger) -> Result<DataKey, PrivatizeError> {
        let mut data = Sha256::new();
        for file in &self.data.hashes {
            data.update(&file.sha256);
        }
        let mut partition = Sha256::new();
        for device in &self.partition.devices {
            partition.update((device.samples.len() as u64).to_le_bytes());
            device.samples.iter().for_each(|sample| partition.update(sample.to_le_bytes()));
        }
        let name = |hash: Sha256| ledger.keyed_digest(&hash.finalize());
        Ok(DataKey { data: name(data)?, partition: name(partition)? })
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

/// What the releases of an experiment follow from.
fn declared(experiment: &Experiment, elsewhere: Elsewhere) -> Cow<'_, Experiment> {
    match elsewhere {
        Elsewhere::Nothing | Elsewhere::Devices => Cow::Borrowed(experiment),
        Elsewhere::Models => Cow::Owned(of_whole_updates(experiment)),
    }
}

/// Sizes of so many devices, the largest of so many samples.
fn load<'a>(
    experiment: &Experiment,
    data: &Dataset,
    network: &'a Network,
    devices: usize,
    largest: u32,
) -> Load<'a> {
    Load {
        shape: shape(data),
        network,
        largest,
        updates: taking_part(experiment, devices),
        threads: memory::threads(experiment, devices, data.test.len()),
        test_images: data.test.len(),
    }
}

/// Devices of a round, out of `all`.
fn taking_part(experiment: &Experiment, all: usize) -> usize {
    ((experiment.run.participation * all as f64).round() as usize).clamp(1, all.max(1))
}

/// Rows and columns of the images, and classes.
fn shape(data: &Dataset) -> (usize, usize, usize) {
    (data.train.rows, data.train.cols, data.classes)
}

/// Fails where the network fits neither the data nor what is to be done with it.
pub(crate) fn check(
    experiment: &Experiment,
    (rows, cols, classes): (usize, usize, usize),
    network: &Network,
) -> Result<(), FederationError> {
    let (inputs, outputs) = (rows * cols, classes);
    if network.inputs() != inputs || network.classes() < outputs {
        let (has_inputs, has_outputs) = (network.inputs(), network.classes());
        return Err(FederationError::Network { has_inputs, has_outputs, inputs, outputs });
    }
    if experiment.learn.clip == Clip::Sample && network.mixes_samples() {
        return Err(FederationError::NoSampleGradients);
    }
    pretrain::check(experiment, (rows, cols, classes))
}

/// The fast uplinks take each device for itself; what SIC passes on from one to the next they
/// cannot know.
fn optimistic(transmit: &Transmit) -> Option<String> {
    let fast = matches!(transmit.uplink, UplinkConfig::Analog | UplinkConfig::Digital(_));
    (fast && !transmit.perfect_sic).then(|| {
        "transmit.perfect_sic = false: this uplink takes devices decoded before for cancelled \
         exactly, and the others for Gaussian noise, which favors devices decoded late; \
         transmit.uplink = \"signal\" decodes symbols"
            .into()
    })
}
