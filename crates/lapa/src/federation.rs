//! What a federation holds between rounds, and the work of each stage over its threads. The order
//! of the stages is in `round.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand::seq::index;

use crate::aggregate::{GlobalDelta, GlobalModel};
use crate::config::{Clip, Experiment, ObserveDevices};
use crate::data::Dataset;
use crate::learn::{Learner, LocalUpdate};
use crate::model::{Batch, Evaluation, Network, Worker};
use crate::observe::{DeviceRecord, DeviceRecords, DeviceSummary, RoundRecord};
use crate::partition::Partition;
use crate::schedule;
use crate::seed::{Purpose, stream};

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
    pub(crate) updates: Vec<LocalUpdate>,
    learners: Vec<Mutex<Learner>>,
    pool: rayon::ThreadPool,
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
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The reason.
        source: rayon::ThreadPoolBuildError,
    },
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
        let threads = match experiment.run.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .map_err(|source| FederationError::Threads { threads, source })?;
        let parameters = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
        Ok(Self {
            model: GlobalModel {
                velocity: vec![0.0; parameters.len()],
                parameters,
                statistics: vec![0.0; network.statistics_count()],
            },
            delta: GlobalDelta::default(),
            updates: Vec::new(),
            learners: (0..threads)
                .map(|_| Mutex::new(Learner::new(Worker::new(network.clone()))))
                .collect(),
            pool,
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

    /// Stage 3 for all `devices`.
    pub(crate) fn learn(&mut self, round: u32, devices: &[u32]) -> Result<(), FederationError> {
        self.updates.resize_with(devices.len(), LocalUpdate::default);
        let slots: Vec<_> = self.updates.iter_mut().map(Mutex::new).collect();
        let samples = |slot: usize| &self.partition.devices[devices[slot] as usize].samples;
        let sizes: Vec<usize> = (0..devices.len()).map(|slot| samples(slot).len()).collect();
        let order = schedule::order(&sizes, self.learners.len());
        let (seed, learn) = (self.experiment.run.seed, &self.experiment.learn);
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(Vec::new());
        self.pool.broadcast(|thread| {
            let mut learner = lock(&self.learners[thread.index()]);
            while let Some(&slot) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let device = devices[slot];
                let mut rng = stream(seed, Purpose::Batch, round.into(), device.into());
                let update = &mut lock(&slots[slot]);
                let parameters = &self.model.parameters;
                if learner
                    .local_update(
                        learn,
                        parameters,
                        &self.data.train,
                        samples(slot),
                        &mut rng,
                        update,
                    )
                    .is_err()
                {
                    lock(&failed).push(device);
                }
            }
        });
        let failed = lock(&failed).iter().min().copied();
        match failed {
            None => Ok(()),
            Some(device) => {
                let learning_rate = learn.learning_rate;
                Err(FederationError::Diverged { round, device, learning_rate })
            }
        }
    }

    pub(crate) fn evaluation_due(&self) -> bool {
        let run = &self.experiment.run;
        self.round.is_multiple_of(run.evaluate_every) || self.round == run.rounds
    }

    /// Accuracy and mean loss of the model on the test set.
    pub fn evaluate(&self) -> (f64, f64) {
        let blocks: Vec<&[u32]> = self.test_samples.chunks(EVALUATION_BLOCK).collect();
        let results: Vec<_> = blocks.iter().map(|_| Mutex::new(Evaluation::default())).collect();
        let next = AtomicUsize::new(0);
        self.pool.broadcast(|thread| {
            let mut learner = lock(&self.learners[thread.index()]);
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                let Some(&samples) = blocks.get(block) else { break };
                let batch = Batch { data: &self.data.test, samples };
                let GlobalModel { parameters, statistics, .. } = &self.model;
                *lock(&results[block]) = learner.worker().evaluate(parameters, statistics, batch);
            }
        });
        let (mut correct, mut loss) = (0, 0.0);
        for result in &results {
            let result = lock(result);
            correct += result.correct;
            loss += result.loss_sum;
        }
        let count = self.test_samples.len() as f64;
        (correct as f64 / count, loss / count)
    }

    pub(crate) fn record(
        &self,
        devices: &[u32],
        weights: &[f64],
        evaluation: Option<(f64, f64)>,
        start: Instant,
    ) -> RoundRecord {
        let list: Vec<DeviceRecord> = devices
            .iter()
            .zip(weights)
            .zip(&self.updates)
            .map(|((&device, &weight), update)| DeviceRecord {
                device,
                samples: update.samples,
                weight,
                gradient_norm: update.norm,
                clipped: update.clipped,
            })
            .collect();
        let float = std::mem::size_of::<f32>() as u64;
        let down = float * self.network.parameter_count() as u64;
        let up = down + float * self.network.statistics_count() as u64;
        RoundRecord {
            round: self.round,
            accuracy: evaluation.map(|(accuracy, _)| accuracy),
            loss: evaluation.map(|(_, loss)| loss),
            uplink_bytes: up * devices.len() as u64,
            downlink_bytes: down * devices.len() as u64,
            devices: match self.experiment.observe.devices {
                ObserveDevices::List => DeviceRecords::List(list),
                ObserveDevices::Summary => DeviceRecords::Summary(DeviceSummary::of(&list)),
            },
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// What the base station holds.
    pub fn model(&self) -> &GlobalModel {
        &self.model
    }

    /// Continues after `round` rounds from `model`.
    pub fn restore(&mut self, round: u32, model: GlobalModel) {
        self.round = round;
        self.model = model;
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
        self.learners.len()
    }
}

/// Locks; a poisoned lock only means that another thread panicked, which rayon passes on.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
