//! What the base station does with what it received.

use std::convert::Infallible;

use lapa_privacy::allocate::{DeviceTranscript, Transcript};

use super::devices::rng;
use super::memory::EVALUATION_BLOCK;
use super::{Federation, FederationError};
use crate::aggregate::Histograms;
use crate::model::{Batch, Evaluation, Worker};
use crate::privatize::{Granted, noisy_counts};
use crate::seed::{Purpose, stream};

/// Bytes of what batch norm saw that are kept from statistics to evaluation.
const KEPT_BYTES: usize = 1 << 28;

impl Federation {
    /// Once, before round 1, for weights that go by labels: each device's histogram, charged
    /// before it is drawn.
    pub(crate) fn collect_histograms(&mut self) -> Result<(), FederationError> {
        let Some(histograms) = self.experiment.aggregate.rule.histograms() else { return Ok(()) };
        if self.weighting.knows_labels() {
            return Ok(());
        }
        let granted = match histograms {
            Histograms::Public => None,
            Histograms::Noisy(_) | Histograms::Exact => {
                Some(self.budgets.grant_histograms(histograms.budget_fraction())?)
            }
        };
        let mut counts = Vec::with_capacity(self.partition.devices.len());
        for (device, data) in (0..).zip(&self.partition.devices) {
            let exact = || data.label_counts.iter().map(|&count| f64::from(count)).collect();
            counts.push(match granted.as_ref().map(|granted| &granted[device as usize]) {
                // Declared public.
                None => exact(),
                // Nothing left to pay with: nothing is known of its labels.
                Some(None) => vec![0.0; data.label_counts.len()],
                Some(Some(histogram)) => {
                    let mut rng = rng(&self.experiment, self.draws, Purpose::Histogram, 0, device)?;
                    noisy_counts(&data.label_counts, histogram, &mut *rng)?
                }
            });
        }
        self.weighting.learn_labels(counts);
        Ok(())
    }

    /// Shows the allocator what the base station received.
    pub(crate) fn show_transcript(&mut self, round: u32, granted: &[Granted], weights: &[f64]) {
        if self.received.is_empty() {
            return;
        }
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
    pub(crate) fn weights(&mut self, granted: &[Granted]) -> Vec<f64> {
        let devices: Vec<u32> = granted.iter().map(|granted| granted.device).collect();
        let samples = self.samples_of(&devices);
        self.weighting.weights(&devices, &samples, &self.received)
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
        let due = round.is_multiple_of(run.evaluate_every) || round == run.rounds;
        if !due || self.test_samples.is_empty() {
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
        // Batch norm: the convolutions before it are computed once, for statistics and evaluation.
        let mut inputs = Vec::new();
        if !self.model.statistics.is_empty() {
            (self.model.statistics, inputs) = self.public_statistics();
        }
        let (parameters, statistics) = (self.model.evaluated(), &self.model.statistics);
        let results: Vec<Evaluation> =
            self.for_each_test_block(|worker, block, batch| match inputs.get(block) {
                Some(inputs) if !inputs.is_empty() => {
                    worker.evaluate_rest(inputs, parameters, statistics, batch)
                }
                _ => worker.evaluate(parameters, statistics, batch),
            });
        let (mut correct, mut loss) = (0, 0.0);
        for result in results {
            correct += result.correct;
            loss += result.loss_sum;
        }
        let count = self.test_samples.len() as f64;
        (correct as f64 / count, loss / count)
    }

    /// Batch-norm statistics of the current parameters over the test images, which the base
    /// station holds: so nothing but the noisy gradient has to leave a device. With them, what
    /// batch norm saw of each block, unless that is much.
    fn public_statistics(&self) -> (Vec<f32>, Vec<Vec<f32>>) {
        let (parameters, test_images) = (self.model.evaluated(), self.test_samples.len());
        let blocks = self.for_each_test_block(|worker, _, batch| {
            let statistics = worker.batch_statistics(parameters, batch).to_vec();
            let (samples, before) = (batch.samples.len(), worker.before_statistics(batch));
            let all = 4 * before.len() / samples * test_images;
            let before = if all <= KEPT_BYTES { before.to_vec() } else { Vec::new() };
            (samples, statistics, before)
        });
        let mut sums = vec![0.0f64; self.model.statistics.len()];
        let mut inputs = Vec::with_capacity(blocks.len());
        for (samples, statistics, before) in blocks {
            let share = samples as f64 / self.test_samples.len() as f64;
            sums.iter_mut().zip(statistics).for_each(|(sum, s)| *sum += share * f64::from(s));
            inputs.push(before);
        }
        (sums.into_iter().map(|sum| sum as f32).collect(), inputs)
    }

    /// What `work` makes of each block of test samples, in their order.
    fn for_each_test_block<T: Send>(
        &self,
        work: impl Fn(&mut Worker, usize, Batch<'_>) -> T + Sync,
    ) -> Vec<T> {
        let blocks: Vec<&[u32]> = self.test_samples.chunks(EVALUATION_BLOCK).collect();
        let (data, sizes) = (&self.data.test, vec![1; blocks.len()]);
        let results: Result<_, Infallible> = self.crew.for_each(&sizes, |learner, block| {
            Ok(work(learner.worker(), block, Batch { data, samples: blocks[block] }))
        });
        let Ok(results) = results;
        results
    }
}
