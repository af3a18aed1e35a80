//! Simulated devices: many devices of one partition, over the threads of one process.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use lapa_privacy::ledger::Recorded;
use lapa_privacy::sampler::Grid;

use crate::budget::Granted;
use crate::config::Experiment;
use crate::data::Dataset;
use crate::device::{AnswerError, Device, Learner, PrivateUpdate, Reply, Streams, noisy_counts};
use crate::error::{FederationError, Result};
use crate::federation::Asked;
use crate::model::{Network, Worker};
use crate::observe::Insight;
use crate::partition::Records;
use crate::pool::{Pool, Threads, lock};
use crate::radio::{Radio, Uplink};
use crate::round::Fleet;
use crate::seed::{Draws, Purpose};
use crate::station::Inbox;

/// The devices of a simulation, with their records.
pub(super) struct Devices {
    pub experiment: Experiment,
    pub data: Dataset,
    pub partition: Records,
    /// The public number of samples of each device.
    pub public_samples: Vec<u32>,
    pub network: Arc<Network>,
    pub pool: Pool<Learner>,
    grid: Option<Grid>,
    /// Source of batches and noise.
    pub draws: Draws,
}

impl Devices {
    pub fn new(
        experiment: &Experiment,
        data: Dataset,
        partition: Records,
        public_samples: Vec<u32>,
        network: Arc<Network>,
        threads: Threads,
    ) -> Result<Self> {
        Ok(Self {
            pool: Pool::new(threads, || Learner::new(Worker::new(network.clone()))),
            grid: experiment.grid()?,
            draws: experiment.draws(),
            experiment: experiment.clone(),
            data,
            partition,
            public_samples,
            network,
        })
    }

    fn device(&self, number: u32) -> Device<'_> {
        let public_samples = self.public_samples[number as usize];
        Device {
            number,
            learn: &self.experiment.learn,
            records: &self.data.train,
            samples: self.partition.of(number),
            batches: self.experiment.batches(public_samples),
            grid: self.grid,
        }
    }

    /// Label counts of all devices: as they are where no record is needed, since labels are
    /// public; 0 where a device has nothing left to pay with.
    pub fn histograms(&self, recorded: Option<Vec<Option<Recorded>>>) -> Result<Vec<Vec<f64>>> {
        let (labels, classes) = (&self.data.train.labels, self.data.classes);
        let counts = |device| self.partition.label_counts(device, labels, classes);
        let devices = 0..self.partition.devices() as u32;
        let Some(recorded) = recorded else {
            let exact = |device| counts(device).into_iter().map(f64::from).collect();
            return Ok(devices.map(exact).collect());
        };
        let histogram = |(device, recorded): (u32, Option<Recorded>)| {
            let Some(recorded) = recorded else { return Ok(vec![0.0; classes]) };
            let mut rng = self.draws.stream(Purpose::Histogram, 0, device)?;
            Ok(noisy_counts(&counts(device), (device, recorded), &mut *rng)?)
        };
        devices.zip(recorded).map(histogram).collect()
    }
}

/// Devices of a block for each thread: enough that threads seldom wait for the last of a block.
pub(super) const BLOCK: usize = 32;

impl Fleet for Devices {
    /// Signals that are received together cannot come in blocks.
    fn answers_all(&self, radio: &Radio) -> bool {
        matches!(radio.uplink(), Uplink::PerLink(_))
    }

    /// Each device learns and adds its noise at once, so that no more raw updates exist than
    /// threads; then the radio delivers them: all at once, or in blocks if the base station sums.
    fn answer(
        &mut self,
        asked: &mut Asked,
        model: &[f32],
        radio: &mut Radio,
        inbox: &mut Inbox,
    ) -> Result<Vec<Insight>> {
        let on_air = asked.on_air();
        let all = on_air.len();
        let block = if inbox.sums() { BLOCK * self.pool.threads() } else { all };
        let mut recorded = std::mem::take(&mut asked.recorded).into_iter();
        let mut insights = Vec::with_capacity(all);
        for start in (0..all).step_by(block.max(1)) {
            let slots = start..all.min(start + block);
            let (sent, seen) = self.learn(asked, slots.clone(), &mut recorded, model, inbox)?;
            insights.extend(seen);
            inbox.take(radio.deliver(asked.round, &on_air[slots], sent, &self.pool)?);
        }
        Ok(insights)
    }
}

impl Devices {
    /// The private updates of the grants in `slots`, whose records come next in `recorded`.
    fn learn(
        &self,
        asked: &Asked,
        slots: Range<usize>,
        recorded: &mut impl Iterator<Item = Recorded>,
        model: &[f32],
        inbox: &mut Inbox,
    ) -> Result<(Vec<PrivateUpdate>, Vec<Insight>)> {
        let (round, granted) = (asked.round, &asked.granted[slots]);
        let given = recorded.take(granted.len()).map(|one| Mutex::new(Some((one, inbox.room()))));
        let given: Vec<_> = given.collect();
        let size = |granted: &Granted| self.partition.size(granted.device) as usize;
        let sizes: Vec<usize> = granted.iter().map(size).collect();
        let replies = self.pool.for_each(&sizes, |learner, slot| {
            let (device, scale) = (self.device(granted[slot].device), granted[slot].scale);
            // Unwrap safety: there is a record for each grant, and each slot is taken once.
            let (recorded, room) = lock(&given[slot]).take().expect("a record for each grant");
            let mut batch = self.draws.stream(Purpose::Batch, round, device.number)?;
            let mut noise = self.draws.stream(Purpose::Noise, round, device.number)?;
            let streams = Streams { batch: &mut *batch, noise: &mut *noise };
            device.answer(model, recorded, scale, streams, learner, room).map_err(|error| {
                FederationError::of_device(error, round, device.number, device.learn)
            })
        })?;
        Ok(replies.into_iter().map(|Reply { update, insight }| (update, insight)).unzip())
    }
}

impl FederationError {
    /// The error of a device that could not answer.
    pub(crate) fn of_device(
        error: AnswerError,
        round: u32,
        device: u32,
        learn: &crate::config::Learn,
    ) -> Self {
        match error {
            AnswerError::NotFinite(_) => {
                Self::Diverged { round, device, learning_rate: learn.learning_rate }
            }
            AnswerError::Noise(error) => error.into(),
        }
    }
}
