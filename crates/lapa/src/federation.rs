//! What a federation holds between rounds, and the work of each stage over its threads. The order
//! of the stages is in `round.rs`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand::seq::index;

use lapa_privacy::allocate::{AllocatorState, Basis, DeviceTranscript, Transcript};
use lapa_privacy::ledger::{DataKey, Ledger};
use lapa_privacy::mechanism::os_stream;
use rand::Rng;
use sha2::{Digest, Sha256};

use crate::aggregate::{self, GlobalDelta, GlobalModel};
use crate::config::{AllocatorName, Clip, Entropy, Experiment, ObserveDevices};
use crate::crew::{Crew, CrewError, lock};
use crate::data::Dataset;
use crate::learn::{Batches, Holding, LocalUpdate};
use crate::model::{Batch, Evaluation, Network, Worker};
use crate::observe::{DeviceRecord, DeviceRecords, DeviceSummary, RoundRecord};
use crate::partition::Partition;
use crate::privatize::{
    self, Budgets, Decision, Granted, PrivacySummary, PrivateUpdate, PrivatizeError, public_samples,
};
use crate::seed::{Purpose, stream};
use crate::transmit::Received;

/// Test samples evaluated together; fixed, so that sums do not depend on threads.
const EVALUATION_BLOCK: usize = 250;

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
    /// The public number of samples of each device.
    public_samples: Vec<u32>,
    budgets: Budgets,
    crew: Crew,
    test_samples: Vec<u32>,
    pub(crate) round: u32,
}

/// Why a federation cannot be set up, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FederationError {
    /// The partition asked for cannot be had.
    #[error(transparent)]
    Partition(#[from] crate::partition::PartitionError),
    /// The model does not fit the images.
    #[error("the model does not fit images of {rows}×{cols}: {source}")]
    Model {
        /// Image rows.
        rows: usize,
        /// Image columns.
        cols: usize,
        /// What does not fit.
        source: crate::model::ModelError,
    },
    /// A network of one's own does not fit the data.
    #[error(
        "the network has {has_inputs} inputs and {has_outputs} outputs, \
         but the data need {inputs} inputs and at least {outputs} outputs"
    )]
    Network {
        /// Inputs of the network.
        has_inputs: usize,
        /// Outputs of the network.
        has_outputs: usize,
        /// Pixels per image.
        inputs: usize,
        /// Classes.
        outputs: usize,
    },
    /// A network of one's own has batch norm, and samples are to be clipped.
    #[error("learn.clip = \"sample\" does not go with batch norm: use group norm")]
    NoSampleGradients,
    /// No threads.
    #[error(transparent)]
    Threads(#[from] CrewError),
    /// Noise cannot be set or recorded.
    #[error(transparent)]
    Privatize(#[from] PrivatizeError),
    /// Training has diverged.
    #[error(
        "training diverged: the update of device {device} in round {round} is not finite; \
         lower learn.learning_rate (now {learning_rate})"
    )]
    Diverged {
        /// The round, from 1.
        round: u32,
        /// The device, from 0.
        device: u32,
        /// λ
        learning_rate: f64,
    },
    /// Training has diverged: every update was finite, the model they led to is of no use.
    #[error(
        "training diverged: the test loss after round {round} is not finite; \
         lower learn.learning_rate (now {learning_rate})"
    )]
    LossNotFinite {
        /// The round, from 1.
        round: u32,
        /// λ
        learning_rate: f64,
    },
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
        let (inputs, outputs) = (data.train.rows * data.train.cols, data.classes);
        if network.inputs() != inputs || network.classes() < outputs {
            let (has_inputs, has_outputs) = (network.inputs(), network.classes());
            return Err(FederationError::Network { has_inputs, has_outputs, inputs, outputs });
        }
        if experiment.learn.clip == Clip::Sample && network.mixes_samples() {
            return Err(FederationError::NoSampleGradients);
        }
        let seed = experiment.run.seed;
        let partition = crate::partition::partition(
            &experiment.partition,
            &data.train.labels,
            data.classes,
            seed,
        )?;
        let network = Arc::new(network);
        let crew = Crew::new(experiment.run.threads, &network)?;
        let parameters = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        let sizes: Vec<u32> =
            partition.devices.iter().map(|device| device.samples.len() as u32).collect();
        let public_samples = public_samples(&experiment, &sizes);
        let budgets = Budgets::new(&experiment, &public_samples)?;
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
            updates: Vec::new(),
            received: Vec::new(),
            public_samples,
            budgets,
            crew,
            test_samples: (0..data.test.len() as u32).collect(),
            round: 0,
            experiment,
            data,
            partition,
            network,
        })
    }

    /// The devices of a round, ascending: a random share, at least one.
    pub(crate) fn participants(&self, round: u32) -> Vec<u32> {
        let all = self.partition.devices.len();
        let share = self.experiment.run.participation;
        let count = ((share * all as f64).round() as usize).clamp(1, all);
        if count == all {
            return (0..all as u32).collect();
        }
        let mut rng = stream(self.experiment.run.seed, Purpose::Participation, round.into(), 0);
        let mut devices: Vec<u32> =
            index::sample(&mut rng, all, count).into_iter().map(|device| device as u32).collect();
        devices.sort_unstable();
        devices
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

    /// Asks for the releases of a round and has them recorded; devices without one sit it out.
    pub(crate) fn grant(
        &mut self,
        round: u32,
        devices: &[u32],
    ) -> Result<(Vec<Granted>, Decision), FederationError> {
        let weights = aggregate::fedavg(&self.samples_of(devices));
        Ok(self.budgets.grant(round, devices, &weights)?)
    }

    /// The public numbers of samples of `devices`.
    pub(crate) fn samples_of(&self, devices: &[u32]) -> Vec<u32> {
        devices.iter().map(|&device| self.public_samples[device as usize]).collect()
    }

    /// Stage 3 for all devices with a grant.
    pub(crate) fn learn(&mut self, round: u32, granted: &[Granted]) -> Result<(), FederationError> {
        self.updates.resize_with(granted.len(), LocalUpdate::default);
        for (update, received) in self.updates.iter_mut().zip(self.received.drain(..)) {
            update.gradient = received.into_gradient();
        }
        let Self { experiment, data, partition, model, public_samples, crew, updates, .. } = self;
        let slots: Vec<_> = updates.iter_mut().map(Mutex::new).collect();
        let grid = privatize::grid(&experiment.learn, &experiment.privacy)?;
        let samples = |slot: usize| &partition.devices[granted[slot].device as usize].samples;
        let sizes: Vec<usize> = (0..granted.len()).map(|slot| samples(slot).len()).collect();
        crew.for_each(&sizes, |learner, slot| {
            let device = granted[slot].device;
            let holding = Holding {
                data: &data.train,
                samples: samples(slot),
                batches: batches(experiment, public_samples[device as usize]),
                grid,
            };
            let mut rng = rng(experiment, Purpose::Batch, round, device)?;
            let (learn, update) = (&experiment.learn, &mut lock(&slots[slot]));
            learner.local_update(learn, holding, &model.parameters, &mut *rng, update).map_err(
                |_| {
                    let learning_rate = learn.learning_rate;
                    FederationError::Diverged { round, device, learning_rate }
                },
            )
        })?;
        Ok(())
    }

    /// Stage 4 for all devices with a grant.
    pub(crate) fn privatize(
        &mut self,
        round: u32,
        granted: &[Granted],
    ) -> Result<Vec<PrivateUpdate>, FederationError> {
        let experiment = &self.experiment;
        let grid = privatize::grid(&experiment.learn, &experiment.privacy)?;
        let slots: Vec<_> = self.updates.iter_mut().map(Mutex::new).collect();
        self.crew.for_each(&vec![1; granted.len()], |_, slot| {
            let granted = &granted[slot];
            let mut rng = rng(experiment, Purpose::Noise, round, granted.device)?;
            Ok(PrivateUpdate::new(&mut lock(&slots[slot]), granted, grid.as_ref(), &mut *rng)?)
        })
    }

    /// Shows the allocator what the base station received.
    pub(crate) fn show_transcript(&mut self, round: u32, granted: &[Granted], weights: &[f64]) {
        let devices: Vec<_> = granted
            .iter()
            .zip(weights)
            .zip(&self.received)
            .map(|((granted, &weight), received)| DeviceTranscript {
                device: granted.device,
                weight,
                gradient: received.gradient(),
                sigma: received.sigma(),
            })
            .collect();
        let transcript = Transcript { round, devices: &devices, global: &self.delta.gradient };
        let mut rng = stream(self.experiment.run.seed, Purpose::Allocate, round.into(), 0);
        self.budgets.observe(&transcript, &mut rng);
    }

    /// Aggregation weights of the devices with a grant.
    pub(crate) fn weights(&self, granted: &[Granted]) -> Vec<f64> {
        let devices: Vec<u32> = granted.iter().map(|granted| granted.device).collect();
        aggregate::fedavg(&self.samples_of(&devices))
    }

    /// The server's step; none in a round in which nothing was received.
    pub(crate) fn step(&mut self) {
        let learn = &self.experiment.learn;
        if !self.received.is_empty() {
            self.model.apply(&self.delta, learn.learning_rate, learn.momentum);
        }
        self.model.update_average(self.round + 1, learn.averaging);
    }

    pub(crate) fn evaluate_if_due(&mut self) -> Result<Option<(f64, f64)>, FederationError> {
        let (run, round) = (&self.experiment.run, self.round);
        if !round.is_multiple_of(run.evaluate_every) && round != run.rounds {
            return Ok(None);
        }
        let (accuracy, loss) = self.evaluate();
        if !loss.is_finite() {
            let learning_rate = self.experiment.learn.learning_rate;
            return Err(FederationError::LossNotFinite { round, learning_rate });
        }
        Ok(Some((accuracy, loss)))
    }

    /// Accuracy and mean loss of the model on the test set.
    pub fn evaluate(&mut self) -> (f64, f64) {
        if !self.model.statistics.is_empty() {
            self.model.statistics = self.public_statistics();
        }
        let (parameters, statistics) = (self.model.evaluated(), &self.model.statistics);
        let results: Vec<Evaluation> = self
            .for_each_test_block(|worker, batch| worker.evaluate(parameters, statistics, batch));
        let (mut correct, mut loss) = (0, 0.0);
        for result in results {
            correct += result.correct;
            loss += result.loss_sum;
        }
        let count = self.test_samples.len() as f64;
        (correct as f64 / count, loss / count)
    }

    /// Batch-norm statistics of the current parameters over the test images, which the base
    /// station holds: so nothing but the noisy gradient has to leave a device.
    fn public_statistics(&self) -> Vec<f32> {
        let parameters = self.model.evaluated();
        let blocks = self.for_each_test_block(|worker, batch| {
            (batch.samples.len(), worker.batch_statistics(parameters, batch).to_vec())
        });
        let mut sums = vec![0.0f64; self.model.statistics.len()];
        for (samples, statistics) in blocks {
            let share = samples as f64 / self.test_samples.len() as f64;
            sums.iter_mut().zip(statistics).for_each(|(sum, s)| *sum += share * f64::from(s));
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    }

    /// What `work` makes of each block of test samples, in their order.
    fn for_each_test_block<T: Send>(
        &self,
        work: impl Fn(&mut Worker, Batch<'_>) -> T + Sync,
    ) -> Vec<T> {
        let blocks: Vec<&[u32]> = self.test_samples.chunks(EVALUATION_BLOCK).collect();
        let (data, sizes) = (&self.data.test, vec![1; blocks.len()]);
        let results: Result<_, Infallible> = self.crew.for_each(&sizes, |learner, block| {
            Ok(work(learner.worker(), Batch { data, samples: blocks[block] }))
        });
        let Ok(results) = results;
        results
    }

    pub(crate) fn record(
        &mut self,
        granted: &[Granted],
        decision: Decision,
        weights: &[f64],
        evaluation: Option<(f64, f64)>,
        start: Instant,
    ) -> Result<RoundRecord, FederationError> {
        // What no base station could observe is for simulations only.
        let simulated = self.experiment.privacy.entropy == Entropy::Seed;
        let mut list = Vec::with_capacity(granted.len());
        for ((granted, &weight), update) in granted.iter().zip(weights).zip(&self.updates) {
            let device = granted.device;
            let spent = self.budgets.spent(device)?;
            list.push(DeviceRecord {
                device,
                samples: self.public_samples[device as usize],
                weight,
                epsilon: granted.epsilon,
                sigma_artificial: granted.sigma(),
                spent_claimed: spent.claimed,
                spent_provable: spent.provable,
                angle: granted.angle,
                gradient_norm: simulated.then_some(update.norm),
                clipped: simulated.then_some(update.clipped),
            });
        }
        let bytes = (std::mem::size_of::<f32>() * self.network.parameter_count()) as u64;
        Ok(RoundRecord {
            round: self.round,
            accuracy: evaluation.map(|(accuracy, _)| accuracy),
            loss: evaluation.map(|(_, loss)| loss),
            pid_error: decision.pid_error,
            epsilon_round: decision.epsilon_round,
            uplink_bytes: bytes * granted.len() as u64,
            downlink_bytes: bytes * granted.len() as u64,
            devices: match self.experiment.observe.devices {
                ObserveDevices::List => DeviceRecords::List(list),
                ObserveDevices::Summary => DeviceRecords::Summary(DeviceSummary::of(&list).into()),
            },
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// What the run has spent so far, and what that proves.
    pub fn privacy(&mut self) -> Result<PrivacySummary, FederationError> {
        Ok(PrivacySummary::new(&self.experiment, &mut self.budgets)?)
    }

    /// The budgets of the devices.
    pub fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.budgets.take_warnings()
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
    /// ledger has recorded.
    pub fn restore(
        &mut self,
        round: u32,
        model: GlobalModel,
        allocator: Option<AllocatorState>,
    ) -> Result<(), PrivatizeError> {
        self.round = round;
        self.model = model;
        self.budgets.restore(round, allocator)
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

/// The random stream of a device in a round: the seed's, or a new one of the operating system.
fn rng(
    experiment: &Experiment,
    purpose: Purpose,
    round: u32,
    device: u32,
) -> Result<Box<dyn Rng>, PrivatizeError> {
    Ok(match experiment.privacy.entropy {
        Entropy::Seed => {
            Box::new(stream(experiment.run.seed, purpose, round.into(), device.into()))
        }
        Entropy::Os => Box::new(os_stream()?),
    })
}

fn batches(experiment: &Experiment, public_samples: u32) -> Batches {
    let privacy = &experiment.privacy;
    Batches {
        sampling: privacy.sampling,
        public_samples,
        zero_if_not_finite: privacy.basis == Basis::Certified
            && privacy.allocator != AllocatorName::None,
    }
}
