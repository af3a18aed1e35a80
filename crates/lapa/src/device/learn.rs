//! Local learning: one batch gradient, or epochs, from a device's own samples.

use lapa_privacy::sampler::{Grid, clip};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

use super::{BatchSampling, Clip, Device, Learn, Update};
use crate::data::Split;
use crate::model::{BLOCK, Batch, Blocks, Clipped, SampleClip, Worker};

/// A raw update, before its noise. No code outside of `device/` can name it. Its memory is reused
/// from round to round.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalUpdate {
    /// The gradient, or (w₀ − w)/λ after the epochs; clipped as configured. In f64, since rounding it
    /// before the noise would move it by more than one sample may.
    pub gradient: Vec<f64>,
    /// On a grid: the sum of the clipped sample gradients, each rounded toward zero, in grid steps.
    /// `gradient` is then the mean of it, for the record only.
    pub grid_sum: Vec<i64>,
    /// Euclidean norm of the gradient before device-level clipping.
    pub norm: f64,
    /// Share of what could be clipped that was.
    pub clipped: f64,
}

/// An update that is not finite: training has diverged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the update of a device is not finite")]
pub struct NotFinite;

/// Samples that a block of a Poisson batch has on average: few enough for hardly any block to have
/// more than [`BLOCK`].
const MEAN_BLOCK: f64 = 40.0;

/// Batches of a device: how it draws them, and the public numbers they are declared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batches {
    /// The kind of sampling.
    pub sampling: BatchSampling,
    /// The public number of samples that batch sizes and means are taken of: |D_k|, or n̂ where
    /// |D_k| is not public.
    pub public_samples: u32,
    /// True if a gradient that is not finite counts as zero, because a refusal would tell of it.
    pub zero_if_not_finite: bool,
    /// True if neighboring data sets keep the places of all other samples on the device: all but
    /// those of add-remove adjacency do.
    pub keeps_places: bool,
}

impl Batches {
    /// As [`BatchSampling::denominator`].
    fn denominator(&self, fraction: f64) -> f64 {
        self.sampling.denominator(fraction, self.public_samples)
    }

    /// Blocks of a sum. They must not depend on the draw of one sample: those of Poisson batches
    /// follow from the places of the samples on the device, and end at `ends`.
    fn blocks<'a>(&self, ends: &'a [usize]) -> Blocks<'a> {
        match (self.keeps_places, self.sampling) {
            (false, _) => Blocks::Each(1),
            (true, BatchSampling::Poisson) => Blocks::Ends(ends),
            (true, BatchSampling::Full | BatchSampling::Fixed) => Blocks::Each(BLOCK),
        }
    }
}

/// Scratch memory for local steps. One per thread, shared by the devices it works for.
pub struct Learner {
    worker: Worker,
    order: Vec<u32>,
    /// Ends of the blocks of a Poisson batch in `order`.
    ends: Vec<usize>,
    weights: Vec<f32>,
    gradient: Vec<f64>,
    batch_gradient: Vec<f32>,
    update: LocalUpdate,
}

impl Learner {
    /// A learner that computes with `worker`.
    pub fn new(worker: Worker) -> Self {
        Self {
            worker,
            order: Vec::new(),
            ends: Vec::new(),
            weights: Vec::new(),
            gradient: Vec::new(),
            batch_gradient: Vec::new(),
            update: LocalUpdate::default(),
        }
    }

    /// The worker.
    pub(crate) fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    /// Memory for an update, to be handed back by [`Learner::keep_update`].
    pub(super) fn take_update(&mut self) -> LocalUpdate {
        std::mem::take(&mut self.update)
    }

    /// Keeps the memory of an update for the next device.
    pub(super) fn keep_update(&mut self, update: LocalUpdate) {
        self.update = update;
    }

    /// The update of a device from the global `parameters`.
    pub(super) fn local_update(
        &mut self,
        device: &Device<'_>,
        parameters: &[f32],
        rng: &mut dyn Rng,
        update: &mut LocalUpdate,
    ) -> Result<(), NotFinite> {
        let Device { learn, records: data, ref samples, batches, grid, .. } = *device;
        update.gradient.resize(parameters.len(), 0.0);
        self.batch_gradient.resize(parameters.len(), 0.0);
        self.order.clear();
        let dropped = match learn.update {
            Update::Gradient => {
                self.draw(learn, batches, samples, rng);
                match grid {
                    Some(grid) => self.on_grid(learn, &grid, parameters, data, update),
                    None => self.minibatch(learn, batches, parameters, data, update),
                }
            }
            Update::Epoch => {
                self.order.extend_from_slice(samples);
                self.epochs(learn, parameters, data, rng, update)
            }
        };
        if dropped > 0 && !batches.zero_if_not_finite {
            return Err(NotFinite);
        }
        match learn.clip_norm.filter(|_| learn.clip == Clip::Device) {
            Some(clip_norm) => self.clip_whole(clip_norm, batches, update)?,
            None => update.norm = length(&update.gradient),
        }
        if update.norm.is_finite() {
            return Ok(());
        }
        if !batches.zero_if_not_finite {
            return Err(NotFinite);
        }
        update.gradient.fill(0.0);
        update.norm = 0.0;
        Ok(())
    }

    /// Clips the update as a whole.
    fn clip_whole(
        &mut self,
        clip_norm: f64,
        batches: Batches,
        update: &mut LocalUpdate,
    ) -> Result<(), NotFinite> {
        let vector = &mut self.batch_gradient;
        vector.iter_mut().zip(&update.gradient).for_each(|(v, &g)| *v = g as f32);
        let clipped = match clip(vector, clip_norm) {
            Err(_) if batches.zero_if_not_finite => {
                vector.fill(0.0);
                clip(vector, clip_norm)
            }
            clipped => clipped,
        };
        let clipped = clipped.map_err(|_| NotFinite)?;
        update.gradient.iter_mut().zip(vector).for_each(|(g, &mut v)| *g = v.into());
        update.norm = clipped.norm;
        update.clipped = f64::from(u8::from(clipped.clipped));
        Ok(())
    }

    /// Leaves the batch of one round in `order`.
    fn draw(&mut self, learn: &Learn, batches: Batches, samples: &[u32], rng: &mut dyn Rng) {
        match batches.sampling {
            BatchSampling::Full => self.order.extend_from_slice(samples),
            BatchSampling::Fixed => {
                self.order.extend_from_slice(samples);
                let size = batches.denominator(learn.batch_fraction) as usize;
                let size = size.min(samples.len());
                let _ = self.order.partial_shuffle(rng, size);
                // The drawn samples are at the end.
                self.order.drain(..samples.len() - size);
            }
            BatchSampling::Poisson => {
                let rate = learn.batch_fraction;
                self.ends.clear();
                for places in samples.chunks((MEAN_BLOCK / rate).ceil() as usize) {
                    self.order.extend(places.iter().filter(|_| rng.random::<f64>() < rate));
                    self.ends.push(self.order.len());
                }
            }
        }
    }

    /// One gradient of a batch: ∇F_k of the paper's eq. (1). Returns how many samples were
    /// dropped.
    fn minibatch(
        &mut self,
        learn: &Learn,
        batches: Batches,
        parameters: &[f32],
        data: &Split,
        update: &mut LocalUpdate,
    ) -> usize {
        let batch = Batch { data, samples: &self.order };
        let denominator = batches.denominator(learn.batch_fraction);
        let (worker, plain) = (&mut self.worker, &mut self.batch_gradient);
        let clip = sample_clip(learn, denominator, batches.blocks(&self.ends));
        let clipped = step(worker, clip, parameters, batch, plain, &mut update.gradient);
        update.clipped = clipped.clipped as f64 / self.order.len().max(1) as f64;
        clipped.dropped
    }

    /// The sum of a batch's clipped gradients in integers: each sample's is rounded toward zero on
    /// the grid, which leaves its norm at most C.
    fn on_grid(
        &mut self,
        learn: &Learn,
        grid: &Grid,
        parameters: &[f32],
        data: &Split,
        update: &mut LocalUpdate,
    ) -> usize {
        update.grid_sum.clear();
        update.grid_sum.resize(parameters.len(), 0);
        self.gradient.resize(parameters.len(), 0.0);
        let (mut clipped, mut dropped) = (0, 0);
        let clip = sample_clip(learn, 1.0, Blocks::Each(1));
        for sample in self.order.chunks(1) {
            let batch = Batch { data, samples: sample };
            let (worker, plain) = (&mut self.worker, &mut self.batch_gradient);
            let report = step(worker, clip, parameters, batch, plain, &mut self.gradient);
            grid.add(&mut update.grid_sum, &self.gradient);
            clipped += report.clipped;
            dropped += report.dropped;
        }
        let scale = grid.step() / self.order.len().max(1) as f64;
        for (mean, &sum) in update.gradient.iter_mut().zip(&update.grid_sum) {
            *mean = sum as f64 * scale;
        }
        update.clipped = clipped as f64 / self.order.len().max(1) as f64;
        dropped
    }

    /// Passes over the samples, shuffled for each, in 1/`batch_fraction` equal batches, each a
    /// gradient step of size λ; the upload (w₀ − w)/λ is the sum of the local gradients.
    fn epochs(
        &mut self,
        learn: &Learn,
        parameters: &[f32],
        data: &Split,
        rng: &mut dyn Rng,
        update: &mut LocalUpdate,
    ) -> usize {
        let n = self.order.len();
        let steps = ((1.0 / learn.batch_fraction).round() as usize).clamp(1, n);
        let (rate, epochs) = (learn.learning_rate as f32, learn.local_epochs as usize);
        self.weights.clear();
        self.weights.extend_from_slice(parameters);
        self.gradient.resize(parameters.len(), 0.0);
        let (mut clipped, mut dropped) = (0, 0);
        for s in (0..epochs).flat_map(|_| 0..steps) {
            if s == 0 {
                self.order.shuffle(rng);
            }
            let samples = &self.order[s * n / steps..(s + 1) * n / steps];
            let batch = Batch { data, samples };
            let clip = sample_clip(learn, samples.len() as f64, Blocks::Each(BLOCK));
            let (worker, plain) = (&mut self.worker, &mut self.batch_gradient);
            let report = step(worker, clip, &self.weights, batch, plain, &mut self.gradient);
            clipped += report.clipped;
            dropped += report.dropped;
            for (weight, gradient) in self.weights.iter_mut().zip(&self.gradient) {
                *weight -= rate * *gradient as f32;
            }
        }
        let weights = parameters.iter().zip(&self.weights);
        for (gradient, (before, after)) in update.gradient.iter_mut().zip(weights) {
            *gradient = ((before - after) / rate).into();
        }
        update.clipped = clipped as f64 / (n * epochs) as f64;
        dropped
    }
}

/// The clip of each sample's gradient; `None` if samples are not clipped.
fn sample_clip<'a>(learn: &Learn, denominator: f64, blocks: Blocks<'a>) -> Option<SampleClip<'a>> {
    let norm = learn.clip_norm.filter(|_| learn.clip == Clip::Sample)?;
    Some(SampleClip { norm, denominator, blocks })
}

/// One batch gradient, clipped per sample if so configured; `plain` is memory for one that is not.
fn step(
    worker: &mut Worker,
    clip: Option<SampleClip<'_>>,
    parameters: &[f32],
    batch: Batch<'_>,
    plain: &mut [f32],
    gradient: &mut [f64],
) -> Clipped {
    if let Some(clip) = clip {
        return worker.clipped_gradient(parameters, batch, clip, gradient);
    }
    let loss = worker.gradient(parameters, batch, plain);
    gradient.iter_mut().zip(plain).for_each(|(g, &mut p)| *g = p.into());
    Clipped { loss, clipped: 0, dropped: 0 }
}

/// ‖v‖
fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Layer, Network, Shape};
    use crate::seed::{Purpose, stream};

    const FIXED: Batches = Batches {
        sampling: BatchSampling::Fixed,
        public_samples: 7,
        zero_if_not_finite: false,
        keeps_places: true,
    };

    fn setting() -> (Arc<Network>, Split, Vec<f32>) {
        let layers = [Layer::Linear { outputs: 3 }];
        let network = Arc::new(Network::new(Shape::new(1, 2, 2), &layers).unwrap());
        let images = (0..4 * 10).map(|i| (i * 37 % 256) as u8).collect::<Vec<u8>>();
        let labels = (0..10).map(|i| i % 3).collect();
        let data = Split { values: images.into(), labels, shape: Shape::new(1, 2, 2) };
        let parameters = network.initial_parameters(&mut stream(1, Purpose::ModelInit, 0, 0));
        (network, data, parameters)
    }

    fn learn(update: Update, batch_fraction: f64) -> Learn {
        let clip = Clip::None;
        Learn {
            update,
            local_epochs: 1,
            sampling: BatchSampling::Fixed,
            batch_fraction,
            learning_rate: 0.25,
            momentum: 0.0,
            averaging: 0.0,
            weight_decay: 0.0,
            clip,
            clip_norm: None,
        }
    }

    fn device<'a>(learn: &'a Learn, records: &'a Split, samples: &'a [u32]) -> Device<'a> {
        Device { number: 0, learn, records, samples: samples.into(), batches: FIXED, grid: None }
    }

    fn assert_close(ours: &[f64], theirs: &[f32]) {
        for (a, &b) in ours.iter().zip(theirs) {
            assert!((a - f64::from(b)).abs() < 1e-5, "{a} ≠ {b}");
        }
    }

    /// With all samples in one batch the order does not matter, and both updates are the plain
    /// gradient of the device's loss.
    #[test]
    fn one_full_batch_gives_the_gradient_in_both_readings() {
        let (network, data, p) = setting();
        let samples: Vec<u32> = (2..9).collect();
        let mut expected = vec![0.0; p.len()];
        let batch = Batch { data: &data, samples: &samples };
        Worker::new(network.clone()).gradient(&p, batch, &mut expected);
        for kind in [Update::Gradient, Update::Epoch] {
            let mut learner = Learner::new(Worker::new(network.clone()));
            let mut update = LocalUpdate::default();
            let mut rng = stream(7, Purpose::Batch, 1, 0);

            let learn = learn(kind, 1.0);
            let device = device(&learn, &data, &samples);
            learner.local_update(&device, &p, &mut rng, &mut update).unwrap();
            assert_close(&update.gradient, &expected);
            assert_eq!(update.clipped, 0.0);
        }
    }

    /// Epochs in plain steps: w ← w − λ∇F on each batch of the same shuffled orders, and
    /// (w₀ − w)/λ at the end.
    fn compare_with_plain_steps(local_epochs: u32) {
        let (network, data, p) = setting();
        let samples: Vec<u32> = (0..10).collect();
        let learn = Learn { local_epochs, ..learn(Update::Epoch, 0.2) };
        let mut learner = Learner::new(Worker::new(network.clone()));
        let mut update = LocalUpdate::default();
        let mut rng = stream(7, Purpose::Batch, 1, 0);

        learner.local_update(&device(&learn, &data, &samples), &p, &mut rng, &mut update).unwrap();

        let mut order = samples.clone();
        let mut rng = stream(7, Purpose::Batch, 1, 0);
        let mut worker = Worker::new(network);
        let (mut w, mut gradient) = (p.clone(), vec![0.0; p.len()]);
        for _ in 0..local_epochs {
            order.shuffle(&mut rng);
            for samples in order.chunks(2) {
                worker.gradient(&w, Batch { data: &data, samples }, &mut gradient);
                w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= 0.25 * g);
            }
        }
        let expected: Vec<f32> = p.iter().zip(&w).map(|(p, w)| (p - w) / 0.25).collect();
        assert_close(&update.gradient, &expected);
    }

    #[test]
    fn an_epoch_uploads_what_its_steps_moved() {
        compare_with_plain_steps(1);
    }

    #[test]
    fn three_epochs_upload_what_all_their_steps_moved() {
        compare_with_plain_steps(3);
    }

    #[test]
    fn an_update_that_is_not_finite_is_refused() {
        let (network, data, mut p) = setting();
        p[0] = f32::NAN;
        let mut learner = Learner::new(Worker::new(network));
        let mut rng = stream(7, Purpose::Batch, 1, 0);
        let learn = learn(Update::Gradient, 1.0);
        let device = device(&learn, &data, &[1, 2]);
        let result = learner.local_update(&device, &p, &mut rng, &mut LocalUpdate::default());
        assert_eq!(result, Err(NotFinite));
    }
}
