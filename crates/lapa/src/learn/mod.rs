//! Stage 3: what a device computes from its own samples.

use rand::seq::SliceRandom;

use crate::config::{Clip, Learn, Update};
use crate::data::Split;
use crate::model::{Batch, CLIP_MARGIN, Worker};
use crate::seed::Stream;

/// What a device has computed and not yet sent. Its memory is reused from round to round.
#[derive(Clone, Debug, Default)]
pub struct LocalUpdate {
    /// Samples the device holds, |D_k|.
    pub samples: u32,
    /// The gradient, or (w₀ − w)/λ after an epoch; clipped as configured.
    pub gradient: Vec<f32>,
    /// Batch-norm statistics, averaged over the local batches; empty without batch norm.
    pub statistics: Vec<f32>,
    /// Euclidean norm of the gradient before device-level clipping.
    pub norm: f64,
    /// Share of what could be clipped that was.
    pub clipped: f64,
}

/// A device's update that is not a number: training has diverged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the update of a device is not finite")]
pub struct NotFinite;

/// One device's memory for local steps. One per thread, shared by the devices it works for.
pub struct Learner {
    worker: Worker,
    order: Vec<u32>,
    weights: Vec<f32>,
    gradient: Vec<f32>,
}

impl Learner {
    /// A learner that computes with `worker`.
    pub fn new(worker: Worker) -> Self {
        Self { worker, order: Vec::new(), weights: Vec::new(), gradient: Vec::new() }
    }

    /// The worker, for evaluation.
    pub fn worker(&mut self) -> &mut Worker {
        &mut self.worker
    }

    /// The update of a device that holds `samples`, from the global `parameters`.
    pub fn local_update(
        &mut self,
        learn: &Learn,
        parameters: &[f32],
        data: &Split,
        samples: &[u32],
        rng: &mut Stream,
        update: &mut LocalUpdate,
    ) -> Result<(), NotFinite> {
        update.samples = samples.len() as u32;
        update.gradient.resize(parameters.len(), 0.0);
        self.order.clear();
        self.order.extend_from_slice(samples);
        match learn.update {
            Update::Gradient => self.minibatch(learn, parameters, data, rng, update),
            Update::Epoch => self.epoch(learn, parameters, data, rng, update),
        }
        update.norm = norm(&update.gradient);
        if !update.norm.is_finite() {
            return Err(NotFinite);
        }
        if let (Clip::Device, Some(clip_norm)) = (learn.clip, learn.clip_norm) {
            update.clipped =
                f64::from(u8::from(clip(&mut update.gradient, update.norm, clip_norm)));
        }
        Ok(())
    }

    /// One gradient of a batch drawn without replacement: ∇F_k of the paper's eq. (1), over
    /// `batch_fraction` of the device's samples.
    fn minibatch(
        &mut self,
        learn: &Learn,
        parameters: &[f32],
        data: &Split,
        rng: &mut Stream,
        update: &mut LocalUpdate,
    ) {
        let size = (learn.batch_fraction * self.order.len() as f64).round().max(1.0) as usize;
        let (batch, _) = self.order.partial_shuffle(rng, size);
        let batch = Batch { data, samples: batch };
        let clipped = step(&mut self.worker, learn, parameters, batch, &mut update.gradient);
        update.clipped = clipped as f64 / size as f64;
        update.statistics.clear();
        update.statistics.extend_from_slice(self.worker.batch_statistics());
    }

    /// One pass over the shuffled samples in 1/`batch_fraction` equal batches, each a gradient
    /// step of size λ; the upload (w₀ − w)/λ is the sum of the local gradients.
    fn epoch(
        &mut self,
        learn: &Learn,
        parameters: &[f32],
        data: &Split,
        rng: &mut Stream,
        update: &mut LocalUpdate,
    ) {
        let n = self.order.len();
        let steps = ((1.0 / learn.batch_fraction).round() as usize).clamp(1, n);
        let rate = learn.learning_rate as f32;
        self.order.shuffle(rng);
        self.weights.clear();
        self.weights.extend_from_slice(parameters);
        self.gradient.resize(parameters.len(), 0.0);
        update.statistics.clear();
        update.statistics.resize(self.worker.batch_statistics().len(), 0.0);
        let mut clipped = 0;
        for s in 0..steps {
            let samples = &self.order[s * n / steps..(s + 1) * n / steps];
            let batch = Batch { data, samples };
            clipped += step(&mut self.worker, learn, &self.weights, batch, &mut self.gradient);
            for (weight, gradient) in self.weights.iter_mut().zip(&self.gradient) {
                *weight -= rate * gradient;
            }
            for (sum, value) in update.statistics.iter_mut().zip(self.worker.batch_statistics()) {
                *sum += value / steps as f32;
            }
        }
        let weights = parameters.iter().zip(&self.weights);
        for (gradient, (before, after)) in update.gradient.iter_mut().zip(weights) {
            *gradient = (before - after) / rate;
        }
        update.clipped = clipped as f64 / n as f64;
    }
}

/// One batch gradient, clipped per sample if so configured; returns how many samples were clipped.
fn step(
    worker: &mut Worker,
    learn: &Learn,
    parameters: &[f32],
    batch: Batch<'_>,
    gradient: &mut [f32],
) -> usize {
    match (learn.clip, learn.clip_norm) {
        (Clip::Sample, Some(clip_norm)) => {
            worker.clipped_gradient(parameters, batch, clip_norm as f32, gradient).clipped
        }
        _ => {
            worker.gradient(parameters, batch, gradient);
            0
        }
    }
}

fn norm(gradient: &[f32]) -> f64 {
    gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt()
}

/// g·min(1, C/‖g‖) given ‖g‖; says whether it changed anything.
fn clip(gradient: &mut [f32], norm: f64, clip_norm: f64) -> bool {
    if norm <= clip_norm {
        return false;
    }
    let factor = (f64::from(CLIP_MARGIN) * clip_norm / norm) as f32;
    for value in gradient {
        *value *= factor;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Layer, Network, Shape};
    use crate::seed::{Purpose, stream};

    fn setting() -> (Arc<Network>, Split, Vec<f32>) {
        let layers = [Layer::Linear { outputs: 3 }];
        let network = Arc::new(Network::new(Shape::new(1, 2, 2), &layers).unwrap());
        let images = (0..4 * 10).map(|i| (i * 37 % 256) as u8).collect();
        let labels = (0..10).map(|i| i % 3).collect();
        let data = Split { images, labels, rows: 2, cols: 2 };
        let parameters = network.initial_parameters(&mut stream(1, Purpose::ModelInit, 0, 0));
        (network, data, parameters)
    }

    fn learn(update: Update, batch_fraction: f64) -> Learn {
        let clip = Clip::None;
        Learn { update, batch_fraction, learning_rate: 0.25, momentum: 0.0, clip, clip_norm: None }
    }

    fn assert_close(ours: &[f32], theirs: &[f32]) {
        for (a, b) in ours.iter().zip(theirs) {
            assert!((a - b).abs() < 1e-5, "{a} ≠ {b}");
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
            learner
                .local_update(&learn(kind, 1.0), &p, &data, &samples, &mut rng, &mut update)
                .unwrap();
            assert_close(&update.gradient, &expected);
            assert_eq!((update.samples, update.clipped), (7, 0.0));
        }
    }

    /// An epoch in plain steps: w ← w − λ∇F on each batch of the same shuffled order, and
    /// (w₀ − w)/λ at the end.
    #[test]
    fn an_epoch_uploads_what_its_steps_moved() {
        let (network, data, p) = setting();
        let samples: Vec<u32> = (0..10).collect();
        let learn = learn(Update::Epoch, 0.2);
        let mut learner = Learner::new(Worker::new(network.clone()));
        let mut update = LocalUpdate::default();
        let mut rng = stream(7, Purpose::Batch, 1, 0);
        learner.local_update(&learn, &p, &data, &samples, &mut rng, &mut update).unwrap();

        let mut order = samples.clone();
        order.shuffle(&mut stream(7, Purpose::Batch, 1, 0));
        let mut worker = Worker::new(network);
        let (mut w, mut gradient) = (p.clone(), vec![0.0; p.len()]);
        for samples in order.chunks(2) {
            worker.gradient(&w, Batch { data: &data, samples }, &mut gradient);
            w.iter_mut().zip(&gradient).for_each(|(w, g)| *w -= 0.25 * g);
        }
        let expected: Vec<f32> = p.iter().zip(&w).map(|(p, w)| (p - w) / 0.25).collect();
        assert_close(&update.gradient, &expected);
    }

    #[test]
    fn an_update_that_is_not_finite_is_refused() {
        let (network, data, mut p) = setting();
        p[0] = f32::NAN;
        let mut learner = Learner::new(Worker::new(network));
        let mut rng = stream(7, Purpose::Batch, 1, 0);
        let result = learner.local_update(
            &learn(Update::Gradient, 1.0),
            &p,
            &data,
            &[1, 2],
            &mut rng,
            &mut LocalUpdate::default(),
        );
        assert_eq!(result, Err(NotFinite));
    }

    #[test]
    fn clipping_keeps_direction_and_never_exceeds_the_norm() {
        let original = [3.0f32, -4.0, 12.0];
        let mut gradient = original;
        assert!(clip(&mut gradient, norm(&original), 2.0));
        assert!(norm(&gradient) <= 2.0 && norm(&gradient) > 1.9999);
        for (g, o) in gradient.iter().zip(original) {
            assert!((g * 13.0 / 2.0 - o).abs() < 1e-3);
        }
        let mut short = original;
        assert!(!clip(&mut short, norm(&original), 13.0));
        assert_eq!(short, original);
    }
}
