//! Evaluation of models on test images.

use std::convert::Infallible;
use std::sync::Arc;

use super::calibration::Images;
use super::{Batch, Confusion, Network, Worker};
use crate::data::Split;
use crate::pool::{Pool, Threads};

/// Images evaluated together; fixed, so that sums do not depend on threads.
pub(crate) const EVALUATION_BLOCK: usize = 250;

/// Public images of the base station, and the threads that evaluate models on them.
pub(crate) struct Evaluator {
    network: Arc<Network>,
    test: Images,
    /// Images that batch-norm statistics come from; `None` without batch norm.
    calibration: Option<Images>,
    pool: Pool<Worker>,
    warning: Option<String>,
}

/// Results on all test images.
pub(crate) struct Results {
    /// Share of the images that are classified correctly.
    pub accuracy: f64,
    /// Mean loss.
    pub loss: f64,
    /// Images by class and prediction; `None` where one has no prediction.
    pub confusion: Option<Confusion>,
}

impl Evaluator {
    /// An evaluator on the images `test`. With batch norm, its statistics are those of the images
    /// `public`, or else of a part of the test images, drawn by `seed`, that is then not evaluated.
    pub fn new(
        network: Arc<Network>,
        test: Split,
        public: Option<Images>,
        seed: u64,
        threads: Threads,
    ) -> Self {
        let pool = Pool::new(threads, || Worker::new(network.clone()));
        let (test, all) = (Images::all(test), network.statistics_count());
        let mut evaluator = Self { network, test, calibration: public, pool, warning: None };
        match &evaluator.calibration {
            _ if all == 0 => evaluator.calibration = None,
            None => evaluator.hold_out(seed),
            Some(_) => {}
        }
        evaluator
    }

    fn hold_out(&mut self, seed: u64) {
        let all = self.test.numbers.len();
        let (calibration, test) = self.test.clone().hold_out(seed);
        if all > 0 {
            self.warning = Some(format!(
                "batch norm: too few training images are known to be on no device, so its statistics \
                 come from {} of the {all} test images, accuracy and loss from {}",
                calibration.numbers.len(),
                test.numbers.len()
            ));
        }
        (self.calibration, self.test) = (Some(calibration), test);
    }

    /// The network.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// True if there is nothing to evaluate on.
    pub fn is_empty(&self) -> bool {
        self.test.numbers.is_empty()
    }

    /// A warning about the images, once.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// Results on the test images. With batch norm, `statistics` become those of the calibration images
    /// under `parameters`: the base station holds these images, so nothing but the noisy gradient
    /// has to leave a device.
    pub fn evaluate(&self, parameters: &[f32], statistics: &mut Vec<f32>) -> Results {
        if let Some(images) = &self.calibration {
            *statistics = self.statistics(images, parameters, statistics.len());
        }
        let statistics = &*statistics;
        let blocks = self.for_each_block(&self.test, |worker, batch| {
            let (mut loss, mut pairs) = (0.0, Vec::with_capacity(batch.samples.len()));
            worker.judge(parameters, statistics, batch, &mut |label, sample| {
                loss += f64::from(sample.loss);
                pairs.push((label, sample.predicted));
            });
            (loss, pairs)
        });
        let pairs = || blocks.iter().flat_map(|(_, pairs)| pairs).copied();
        let correct = pairs().filter(|(label, taken)| *taken == Some((*label).into())).count();
        let loss = blocks.iter().fold(0.0, |sum, (loss, _)| sum + loss);
        let count = self.test.numbers.len() as f64;
        Results {
            accuracy: correct as f64 / count,
            loss: loss / count,
            confusion: Confusion::of(self.network.classes(), pairs()),
        }
    }

    /// Batch-norm statistics over all of `images`.
    fn statistics(&self, images: &Images, parameters: &[f32], count: usize) -> Vec<f32> {
        let blocks = self.for_each_block(images, |worker, batch| {
            (batch.samples.len(), worker.batch_statistics(parameters, batch).to_vec())
        });
        let mut sums = vec![0.0f64; count];
        for (samples, statistics) in blocks {
            let fraction = samples as f64 / images.numbers.len() as f64;
            sums.iter_mut().zip(statistics).for_each(|(sum, s)| *sum += fraction * f64::from(s));
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    }

    /// The results of `work` on each block of `images`, in their order.
    fn for_each_block<T: Send>(
        &self,
        images: &Images,
        work: impl Fn(&mut Worker, Batch<'_>) -> T + Sync,
    ) -> Vec<T> {
        let blocks: Vec<&[u32]> = images.numbers.chunks(EVALUATION_BLOCK).collect();
        let data = &images.split;
        let results: Result<_, Infallible> =
            self.pool.for_each(&vec![1; blocks.len()], |worker, block| {
                Ok(work(worker, Batch { data, samples: blocks[block] }))
            });
        let Ok(results) = results;
        results
    }
}
