//! Set-up of a simulation, checked before anything is recorded.

use std::sync::Arc;

use lapa_privacy::allocate::Allocator;
use lapa_privacy::ledger::{Ledger, Repeat};

use super::Simulation;
use super::devices::Devices;
use super::memory::{self, check_memory};
use crate::aggregate::Rule;
use crate::budget::{PrivacyError, declare, public_samples};
use crate::config::{Clip, Entropy, Experiment, Start};
use crate::data::Dataset;
use crate::error::{FederationError, Result};
use crate::federation::{Federation, Prepared};
use crate::model::{DIGITS, Evaluator, Images, Network, Shape};
use crate::partition::{Partition, Records};
use crate::pool;
use crate::radio::{Radio, Uplink};
use crate::seed::{Purpose, stream};
use crate::station::Station;

/// A simulation that has no ledger yet.
pub struct Setup {
    devices: Devices,
    prepared: Prepared,
    has_own_parts: bool,
}

impl Setup {
    /// Computes the configured features, unless the data set has them, and builds the configured model;
    /// then as [`Setup::with_network`].
    pub fn new(experiment: Experiment, data: Dataset) -> Result<Self> {
        let data = data.with_features(experiment.model.feature_map(), &mut |_| {})?;
        let shape = data.train.shape;
        let network = crate::model::network(&experiment.model, shape, data.classes)
            .map_err(|source| FederationError::Model { shape, source: source.into() })?;
        Self::with_network(experiment, data, network)
    }

    /// Partitions the data and starts the threads for a network of one's own, in place of the
    /// experiment's `[model]`; data are taken as they are. Round 0 is the initial model.
    pub fn with_network(
        experiment: Experiment,
        mut data: Dataset,
        network: Network,
    ) -> Result<Self> {
        // Before the partition, which takes the labels to be below the number of classes.
        check(&experiment, (data.train.shape, data.classes), &network)?;
        let spec = &experiment.partition;
        let partition = Records::new(&*spec.scheme, spec.skew(), &mut data, experiment.run.seed)?;
        let sizes = partition.sizes();
        // All images of a training set that devices share may be on one of them.
        let public = match &partition {
            Records::Dealt(dealt) => {
                let held = dealt.devices.iter().map(|device| &*device.samples);
                Images::unheld(&data.train, held, experiment.run.seed)
            }
            Records::Drawn(_) => None,
        };
        Self::prepare(experiment, data, network, partition, &sizes, public)
    }

    /// As [`Setup::with_network`], for records that were dealt already. `sizes` are the numbers of
    /// records that the devices declare: one that holds fewer has records of zero gradient in their
    /// place, as zero-out adjacency has it.
    ///
    /// # Panics
    /// If there is not one size for each device, or a sample is not in the training set.
    pub fn with_records(
        experiment: Experiment,
        data: Dataset,
        network: Network,
        partition: Partition,
        sizes: &[u32],
    ) -> Result<Self> {
        assert_eq!(sizes.len(), partition.devices.len(), "sizes");
        // An image that no device holds may be one that was taken from a device.
        Self::prepare(experiment, data, network, Records::Dealt(partition), sizes, None)
    }

    /// `public` are images that batch-norm statistics may come from, if there are some.
    fn prepare(
        experiment: Experiment,
        data: Dataset,
        network: Network,
        partition: Records,
        sizes: &[u32],
        public: Option<Images>,
    ) -> Result<Self> {
        check(&experiment, (data.train.shape, data.classes), &network)?;
        if experiment.control.needs_pilot() {
            let power = experiment.control.power;
            return Err(FederationError::PowersNotChosen { power });
        }
        let threads = memory::threads(&experiment, sizes.len(), data.test.len());
        let held = (0..sizes.len() as u32).map(|device| partition.size(device));
        let (largest, updates) =
            (held.max().unwrap_or(0), memory::updates(&experiment, sizes.len(), threads));
        let (shape, images) =
            ((data.train.shape, data.classes), data.test.len().max(data.train.len()));
        check_memory(&experiment, shape, &network, largest, updates, threads, images)?;
        let seed = experiment.run.training_seed();
        let parameters = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        let samples = public_samples(&experiment, sizes)?;
        let budgets = declare(&experiment, &samples, &|_| None)?;
        let network = Arc::new(network);
        // Devices and base station take turns.
        let workers = pool::start(threads)?;
        let test = data.test.clone();
        let evaluator = Evaluator::new(network.clone(), test, public, seed, workers.clone());
        let station = Station::new(&experiment, parameters, samples.clone(), Some(evaluator))?;
        let mut radio = Radio::new(experiment.setting(), experiment.draws())?;
        radio.try_links(&station.participants())?;
        let origin = data.origin();
        let digest = partition.digest();
        let devices = Devices::new(&experiment, data, partition, samples, network, workers)?;
        let prepared = Prepared {
            experiment,
            origin,
            partition: digest,
            station,
            radio,
            budgets,
            repeat: repeat(devices.draws.entropy),
            declared: devices.experiment.clone(),
            threads,
        };
        Ok(Self { devices, prepared, has_own_parts: false })
    }

    /// Keeps the transcript of every round, however large, for those who read it.
    pub fn keep_transcript(mut self) -> Self {
        self.prepared.station.keep_transcript();
        self
    }

    /// Replaces the configured allocator by one of one's own. Filters hold whatever it decides.
    pub fn allocator(mut self, own: Box<dyn Allocator>) -> Result<Self> {
        let privacy = self.prepared.experiment.privacy.as_ref();
        if privacy.is_none_or(|privacy| privacy.allocator.is_fixed()) {
            return Err(FederationError::FixedSchedule);
        }
        self.prepared.station.replace_allocator(own);
        self.has_own_parts = true;
        Ok(self)
    }

    /// Replaces the configured rule of aggregation by one of one's own. Devices send label
    /// histograms where the configured rule reads them.
    pub fn rule(mut self, own: Box<dyn Rule>) -> Self {
        self.prepared.station.replace_rule(own);
        self.has_own_parts = true;
        self
    }

    /// Replaces the configured uplink by one of one's own. No channel noise may be counted as privacy:
    /// only the configured uplinks are known to add it.
    pub fn uplink(mut self, own: Uplink) -> Result<Self> {
        if self.prepared.experiment.channel_trust() > 0.0 {
            return Err(FederationError::TrustedUplink);
        }
        self.prepared.radio.replace_uplink(own, self.prepared.experiment.setting())?;
        self.has_own_parts = true;
        Ok(self)
    }

    /// The simulation with a ledger that is gone with the process.
    pub fn in_memory(self) -> Result<Simulation, PrivacyError> {
        let Self { devices, prepared, .. } = self;
        Ok(Simulation { devices, federation: prepared.in_memory()? })
    }

    /// The simulation that records its releases in `ledger` as `run`.
    ///
    /// A recorded round of the same run is the same release and costs nothing more, unless parts are
    /// one's own: the configuration does not tell of them, so that it is charged again.
    pub fn record_in(self, ledger: Ledger, run: &str) -> Result<Simulation, PrivacyError> {
        let Self { devices, mut prepared, has_own_parts } = self;
        if has_own_parts {
            prepared.repeat = Repeat::ChargeAgain;
        }
        Ok(Simulation { devices, federation: prepared.record_in(ledger, run)? })
    }

    /// The simulation whose federation `open` makes of what is prepared.
    pub(crate) fn open_with<T, E>(
        self,
        open: impl FnOnce(Prepared) -> Result<(T, Federation), E>,
    ) -> Result<(T, Simulation), E> {
        let Self { devices, prepared, .. } = self;
        let (opened, federation) = open(prepared)?;
        Ok((opened, Simulation { devices, federation }))
    }
}

/// The meaning of a round that is recorded already: with a seed the same release, with the operating
/// system's entropy a new one.
pub(crate) fn repeat(entropy: Entropy) -> Repeat {
    match entropy {
        Entropy::Seed => Repeat::Replay,
        Entropy::Os => Repeat::ChargeAgain,
    }
}

/// Fails where the network fits neither the data nor what is to be done with it.
pub(crate) fn check(
    experiment: &Experiment,
    (shape, classes): (Shape, usize),
    network: &Network,
) -> Result<()> {
    let (inputs, outputs) = (shape.len(), classes);
    if network.inputs() != inputs || network.classes() < outputs {
        let (has_inputs, has_outputs) = (network.inputs(), network.classes());
        return Err(FederationError::Network { has_inputs, has_outputs, inputs, outputs });
    }
    if experiment.learn.clip == Clip::Sample && network.mixes_samples() {
        return Err(FederationError::NoSampleGradients);
    }
    if experiment.model.start == Start::Digits && (shape, classes) != DIGITS {
        return Err(FederationError::OtherImages { shape, classes });
    }
    Ok(())
}
