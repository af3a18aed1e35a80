//! Evaluation of models on test images.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Batch, Evaluation, Network, Worker};
use crate::data::Split;
use crate::pool::{Pool, Threads};

/// Test samples evaluated together; fixed, so that sums do not depend on threads.
pub(crate) const EVALUATION_BLOCK: usize = 250;

/// Bytes of batch-norm inputs that are kept from statistics to evaluation.
const KEPT_BYTES: usize = 1 << 28;

/// Test images of the base station, and the threads that evaluate models on them.
pub(crate) struct Evaluator {
    network: Arc<Network>,
    images: Split,
    samples: Vec<u32>,
    pool: Pool<Worker>,
}

impl Evaluator {
    /// An evaluator on `images`.
    pub fn new(network: Arc<Network>, images: Split, threads: Threads) -> Self {
        let pool = Pool::new(threads, || Worker::new(network.clone()));
        let samples = (0..images.len() as u32).collect();
        Self { network, images, samples, pool }
    }

    /// The network.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// True if there is nothing to evaluate on.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Accuracy and mean loss. With batch norm, `statistics` become those of the test images under
    /// `parameters`: the base station holds these images, so nothing but the noisy gradient has to
    /// leave a device.
    pub fn evaluate(&self, parameters: &[f32], statistics: &mut Vec<f32>) -> (f64, f64) {
        // The convolutions before batch norm are computed once, for statistics and evaluation.
        let mut inputs = Vec::new();
        if !statistics.is_empty() {
            (*statistics, inputs) = self.statistics(parameters, statistics.len());
        }
        let statistics = &*statistics;
        let results: Vec<Evaluation> =
            self.for_each_block(|worker, block, batch| match inputs.get(block) {
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
        let count = self.samples.len() as f64;
        (correct as f64 / count, loss / count)
    }

    /// Batch-norm statistics over all images, and the inputs of batch norm by block, unless they
    /// are many.
    fn statistics(&self, parameters: &[f32], count: usize) -> (Vec<f32>, Vec<Vec<f32>>) {
        let images = self.samples.len();
        let blocks = self.for_each_block(|worker, _, batch| {
            let statistics = worker.batch_statistics(parameters, batch).to_vec();
            let (samples, before) = (batch.samples.len(), worker.before_statistics(batch));
            let all = 4 * before.len() / samples * images;
            let before = if all <= KEPT_BYTES { before.to_vec() } else { Vec::new() };
            (samples, statistics, before)
        });
        let mut sums = vec![0.0f64; count];
        let mut inputs = Vec::with_capacity(blocks.len());
        for (samples, statistics, before) in blocks {
            let fraction = samples as f64 / images as f64;
            sums.iter_mut().zip(statistics).for_each(|(sum, s)| *sum += fraction * f64::from(s));
            inputs.push(before);
        }
        (sums.into_iter().map(|sum| sum as f32).collect(), inputs)
    }

    /// The results of `work` on each block of test samples, in their order.
    fn for_each_block<T: Send>(
        &self,
        work: impl Fn(&mut Worker, usize, Batch<'_>) -> T + Sync,
    ) -> Vec<T> {
        let blocks: Vec<&[u32]> = self.samples.chunks(EVALUATION_BLOCK).collect();
        let data = &self.images;
        let results: Result<_, Infallible> =
            self.pool.for_each(&vec![1; blocks.len()], |worker, block| {
                Ok(work(worker, block, Batch { data, samples: blocks[block] }))
            });
        let Ok(results) = results;
        results
    }
}
