//! One thread's memory for a network, and what it computes.

use std::ops::Range;
use std::sync::Arc;

use half::slice::HalfFloatSliceExt;

use super::chain::Chain;
use super::kernels::scale_pixels;
use super::loss::{SampleLoss, cross_entropy, cross_entropy_gradient};
use super::network::Network;
use super::sample_clip::{BLOCK, SampleClip};
use crate::data::{Split, Values, look_up};

/// Samples of a data set, by index.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The data set.
    pub data: &'a Split,
    /// The samples.
    pub samples: &'a [u32],
}

/// Report of a clipped gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clipped {
    /// Mean loss of the batch.
    pub loss: f32,
    /// Samples whose gradient was longer than the clipping norm.
    pub clipped: usize,
    /// Samples whose gradient was not finite, and counted as zero.
    pub dropped: usize,
}

/// Loss and hits over some samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Samples classified correctly.
    pub correct: usize,
    /// Sum of the losses.
    pub loss_sum: f64,
}

/// Computes gradients of one network in one thread.
pub struct Worker {
    network: Arc<Network>,
    chain: Chain,
    statistics: Vec<f32>,
}

impl Worker {
    /// A worker; its memory grows with the first batches.
    pub fn new(network: Arc<Network>) -> Self {
        let statistics = vec![0.0; network.statistics_count()];
        Self { chain: Chain::default(), statistics, network }
    }

    /// gradient = the mean gradient of the batch; returns its mean loss.
    ///
    /// # Panics
    /// If the batch is empty or the lengths do not fit the network.
    pub fn gradient(&mut self, parameters: &[f32], batch: Batch<'_>, gradient: &mut [f32]) -> f32 {
        let n = batch.samples.len();
        self.forward(parameters, batch);
        let loss = self.loss_gradient(batch, 1.0 / n as f32);
        self.chain.gradient(&self.network.ops, parameters, n, gradient);
        loss
    }

    /// gradient = (1/d) Σ_i g_i·min(1, C'/‖g_i‖) over the gradients g_i of the samples, which
    /// never exist all at once: each sample's convolution gradient stays in cache, fully
    /// connected layers need only its norm. C' = C·(1 − 2⁻¹⁰) leaves room for the rounding of the
    /// sum: blocks of samples are added in f32, the blocks in f64.
    ///
    /// A gradient that is not finite, or longer than 2⁶⁰, counts as zero. An empty batch gives zero.
    ///
    /// # Panics
    /// If the lengths do not fit, or the network has batch norm ([`Network::mixes_samples`]).
    pub fn clipped_gradient(
        &mut self,
        parameters: &[f32],
        batch: Batch<'_>,
        clip: SampleClip<'_>,
        gradient: &mut [f64],
    ) -> Clipped {
        assert!(!self.network.mixes_samples(), "batch norm has no per-sample gradients");
        let n = batch.samples.len();
        if n == 0 {
            gradient.fill(0.0);
            return Clipped { loss: 0.0, clipped: 0, dropped: 0 };
        }
        self.forward(parameters, batch);
        let loss = self.loss_gradient(batch, 1.0);
        self.chain.backward(&self.network.ops, parameters, n);
        self.chain.begin_clipped(&self.network.ops);
        let mut report = Clipped { loss, clipped: 0, dropped: 0 };
        let (mut first, mut index) = (0, 0);
        while first < n {
            let end = clip.blocks.end(index, first, n);
            self.add_block(n, first..end, clip, &mut report);
            (first, index) = (end, index + 1);
        }
        self.chain.finish_clipped(&self.network.ops, gradient);
        gradient.iter_mut().for_each(|sum| *sum /= clip.denominator);
        report
    }

    /// Adds the clipped gradients of the samples `block` of `n` to the sum.
    fn add_block(
        &mut self,
        n: usize,
        block: Range<usize>,
        clip: SampleClip<'_>,
        report: &mut Clipped,
    ) {
        let (mut members, mut added) = (0, 0);
        for i in block {
            if !self.add_clipped(n, i, clip, report) {
                continue;
            }
            (members, added) = (members + 1, added + 1);
            if members >= BLOCK {
                self.chain.end_block(&self.network.ops);
                added = 0;
            }
        }
        if added > 0 {
            self.chain.end_block(&self.network.ops);
        }
    }

    /// Adds the clipped gradient of sample `i` of `n` to the block, unless it counts as zero, and
    /// says so.
    fn add_clipped(
        &mut self,
        n: usize,
        i: usize,
        clip: SampleClip<'_>,
        report: &mut Clipped,
    ) -> bool {
        let ops = &self.network.ops;
        let norm_squared = self.chain.sample_norm_squared(ops, n, i);
        let Some(factor) = clip.factor(norm_squared) else {
            report.dropped += 1;
            return false;
        };
        if norm_squared == 0.0 {
            return false;
        }
        report.clipped += usize::from(norm_squared.sqrt() > clip.norm);
        self.chain.add_sample(ops, n, i, factor);
        true
    }

    /// Loss and hits of the batch, with `statistics` in place of the batch's own (batch norm). Large
    /// images take turns in memory; sums are those of the whole batch.
    pub fn evaluate(
        &mut self,
        parameters: &[f32],
        statistics: &[f32],
        batch: Batch<'_>,
    ) -> Evaluation {
        let mut evaluation = Evaluation::default();
        self.judge(parameters, statistics, batch, &mut |label, sample| {
            evaluation.correct += usize::from(sample.predicted == Some(label.into()));
            evaluation.loss_sum += f64::from(sample.loss);
        });
        evaluation
    }

    /// Shows each sample of the batch in its order: label, loss and prediction.
    pub(super) fn judge(
        &mut self,
        parameters: &[f32],
        statistics: &[f32],
        batch: Batch<'_>,
        each: &mut dyn FnMut(u8, SampleLoss),
    ) {
        let classes = self.network.classes;
        for samples in batch.samples.chunks(self.network.footprint().evaluated_together()) {
            let part = Batch { samples, ..batch };
            let logits = self.logits(parameters, statistics, part).chunks_exact(classes);
            for (logits, &sample) in logits.zip(samples) {
                let label = batch.data.labels[sample as usize];
                each(label, cross_entropy(logits, usize::from(label)));
            }
        }
    }

    /// The outputs of the last layer for each sample of the batch, one after the other, with
    /// `statistics` in place of the batch's own (batch norm).
    pub fn logits(&mut self, parameters: &[f32], statistics: &[f32], batch: Batch<'_>) -> &[f32] {
        self.load(batch);
        self.chain.infer(&self.network.ops, parameters, statistics, batch.samples.len());
        &self.chain.outputs()[..batch.samples.len() * self.network.classes]
    }

    /// Batch-norm statistics of a batch, as [`Network::statistics_count`] describes them.
    pub fn batch_statistics(&mut self, parameters: &[f32], batch: Batch<'_>) -> &[f32] {
        let n = batch.samples.len();
        self.load(batch);
        let ops = &self.network.ops;
        // Nobody asks for the outputs after the last of them.
        let last = ops.iter().rposition(|slot| !slot.statistics.is_empty());
        for (s, slot) in ops.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let (x, y) = self.chain.activations.split_at_mut(s + 1);
            let (x, y, saved) = (&x[s], &mut y[0], &mut self.chain.saved[s]);
            let parameters = &parameters[slot.parameters.clone()];
            if slot.statistics.is_empty() {
                slot.op.infer(parameters, &[], n, x, y, saved);
            } else {
                slot.op.forward(parameters, n, x, y, saved);
                self.statistics[slot.statistics.clone()].copy_from_slice(&saved.statistics);
            }
        }
        &self.statistics
    }

    fn forward(&mut self, parameters: &[f32], batch: Batch<'_>) {
        let n = batch.samples.len();
        assert!(n > 0, "an empty batch has no mean gradient");
        assert_eq!(parameters.len(), self.network.parameter_count(), "parameters");
        self.load(batch);
        self.chain.forward(&self.network.ops, parameters, n);
    }

    /// Copies the samples in, as a network sees them, and makes room for what follows from them.
    fn load(&mut self, batch: Batch<'_>) {
        let (inputs, n) = (self.network.input.len(), batch.samples.len());
        assert_eq!(batch.data.shape.len(), inputs, "values per sample");
        self.chain.make_room(&self.network.ops, inputs, n);
        let images = self.chain.activations[0].chunks_exact_mut(inputs);
        for (input, &sample) in images.zip(batch.samples) {
            let places = batch.data.places(sample as usize);
            match &batch.data.values {
                Values::Bytes(bytes) => scale_pixels(&bytes[places], input),
                Values::Floats(floats) => input.copy_from_slice(&floats[places]),
                Values::Halves(halves) => halves[places].convert_to_f32_slice(input),
                Values::Normalized(bytes, tables) => look_up(tables, &bytes[places], input),
            }
        }
    }

    /// Makes room for the deltas, and fills those of the logits; returns the mean loss.
    fn loss_gradient(&mut self, batch: Batch<'_>, scale: f32) -> f32 {
        let (last, classes) = (self.network.ops.len(), self.network.classes);
        // Nobody asks for the gradient in the images.
        self.chain.make_room_back(&self.network.ops, batch.samples.len());
        let logits = self.chain.activations[last].chunks_exact(classes);
        let deltas = self.chain.deltas[last].chunks_exact_mut(classes);
        let mut sum = 0.0;
        for ((logits, delta), &sample) in logits.zip(deltas).zip(batch.samples) {
            let label = usize::from(batch.data.labels[sample as usize]);
            sum += f64::from(cross_entropy_gradient(logits, label, scale, delta));
        }
        (sum / batch.samples.len() as f64) as f32
    }
}
