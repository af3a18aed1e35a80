//! Ops one after the other: a whole network, or a path of a residual block, and one worker's memory
//! for it.

use std::ops::Range;

use super::kernels::PADDING;
use super::op::{Op, Pass, Saved};

/// An op, and its share of the parameters and statistics of its chain.
pub(super) struct OpSlot {
    pub op: Box<dyn Op>,
    pub parameters: Range<usize>,
    pub statistics: Range<usize>,
}

/// Values of a batch between the ops of a chain. After the first batch of a size it allocates nothing
/// of its own.
#[derive(Default)]
pub(super) struct Chain {
    /// `activations[s]` are the inputs of op s; the last ones are the outputs.
    pub activations: Vec<Vec<f32>>,
    /// ∂loss/∂activations.
    pub deltas: Vec<Vec<f32>>,
    pub saved: Vec<Saved>,
}

impl Chain {
    /// Makes room for the activations of `n` samples of `inputs` values.
    pub fn make_room(&mut self, ops: &[OpSlot], inputs: usize, n: usize) {
        self.activations.resize_with(ops.len() + 1, Vec::new);
        self.deltas.resize_with(ops.len() + 1, Vec::new);
        self.saved.resize_with(ops.len(), Saved::default);
        let outputs = ops.iter().map(|slot| slot.op.output_len());
        for (values, len) in self.activations.iter_mut().zip(std::iter::once(inputs).chain(outputs))
        {
            make_room(values, n * len);
        }
    }

    /// Makes room for the gradients of `n` samples in the outputs of the ops.
    pub fn make_room_back(&mut self, ops: &[OpSlot], n: usize) {
        for (delta, slot) in self.deltas[1..].iter_mut().zip(ops) {
            make_room(delta, n * slot.op.output_len());
        }
    }

    /// Makes room for the gradient in the inputs too.
    pub fn make_room_at_inputs(&mut self) {
        if self.deltas[0].len() < self.activations[0].len() {
            self.deltas[0].resize(self.activations[0].len(), 0.0);
        }
    }

    /// Outputs of a training batch of `n` samples, from `activations[0]`.
    pub fn forward(&mut self, ops: &[OpSlot], parameters: &[f32], n: usize) {
        for (s, slot) in ops.iter().enumerate() {
            let (x, y) = self.activations.split_at_mut(s + 1);
            let parameters = &parameters[slot.parameters.clone()];
            slot.op.forward(parameters, n, &x[s], &mut y[0], &mut self.saved[s]);
        }
    }

    /// Outputs of a batch that is evaluated.
    pub fn infer(&mut self, ops: &[OpSlot], parameters: &[f32], statistics: &[f32], n: usize) {
        for (s, slot) in ops.iter().enumerate() {
            let (x, y) = self.activations.split_at_mut(s + 1);
            let (parameters, statistics) =
                (&parameters[slot.parameters.clone()], &statistics[slot.statistics.clone()]);
            slot.op.infer(parameters, statistics, n, &x[s], &mut y[0], &mut self.saved[s]);
        }
    }

    /// Back from the deltas of the outputs: fills `gradient`, and the deltas of the inputs too if
    /// there is room for them.
    pub fn gradient(&mut self, ops: &[OpSlot], parameters: &[f32], n: usize, gradient: &mut [f32]) {
        for (s, slot) in ops.iter().enumerate().rev() {
            let (pass, dx) = split(n, &self.activations, &mut self.deltas, s);
            let (saved, of) = (&mut self.saved[s], slot.parameters.clone());
            slot.op.gradient(&parameters[of.clone()], pass, saved, &mut gradient[of.clone()]);
            if !dx.is_empty() {
                slot.op.backward(&parameters[of], pass, dx, saved);
            }
        }
    }

    /// The same without the gradient in the parameters.
    pub fn backward(&mut self, ops: &[OpSlot], parameters: &[f32], n: usize) {
        for (s, slot) in ops.iter().enumerate().rev() {
            let (pass, dx) = split(n, &self.activations, &mut self.deltas, s);
            let (parameters, saved) = (&parameters[slot.parameters.clone()], &mut self.saved[s]);
            slot.op.backward_inside(parameters, pass, saved);
            if !dx.is_empty() {
                slot.op.backward(parameters, pass, dx, saved);
            }
        }
    }

    /// As [`Op::begin_clipped`], for all ops.
    pub fn begin_clipped(&mut self, ops: &[OpSlot]) {
        for (slot, saved) in ops.iter().zip(&mut self.saved) {
            slot.op.begin_clipped(saved);
        }
    }

    /// The squared norm of the gradient of sample `i` of `n` in all parameters.
    pub fn sample_norm_squared(&mut self, ops: &[OpSlot], n: usize, i: usize) -> f64 {
        let mut sum = 0.0;
        for (s, slot) in ops.iter().enumerate() {
            let (pass, _) = split(n, &self.activations, &mut self.deltas, s);
            sum += slot.op.sample_norm_squared(pass, i, &mut self.saved[s]);
        }
        sum
    }

    /// As [`Op::add_sample`], for all ops.
    pub fn add_sample(&mut self, ops: &[OpSlot], n: usize, i: usize, factor: f32) {
        for (s, slot) in ops.iter().enumerate() {
            let (pass, _) = split(n, &self.activations, &mut self.deltas, s);
            slot.op.add_sample(pass, i, factor, &mut self.saved[s]);
        }
    }

    /// As [`Op::end_block`], for all ops.
    pub fn end_block(&mut self, ops: &[OpSlot]) {
        for (slot, saved) in ops.iter().zip(&mut self.saved) {
            slot.op.end_block(saved);
        }
    }

    /// As [`Op::finish_clipped`], for all ops.
    pub fn finish_clipped(&self, ops: &[OpSlot], gradient: &mut [f64]) {
        for (slot, saved) in ops.iter().zip(&self.saved) {
            slot.op.finish_clipped(saved, &mut gradient[slot.parameters.clone()]);
        }
    }

    /// The outputs, and room after them.
    pub fn outputs(&self) -> &[f32] {
        self.activations.last().map_or(&[], Vec::as_slice)
    }
}

/// Grows a buffer to `len` values and what vector loads may read past them.
pub(super) fn make_room(buffer: &mut Vec<f32>, len: usize) {
    if buffer.len() < len + PADDING {
        buffer.resize(len + PADDING, 0.0);
    }
}

/// The pass of op `s`, and the room for its input's gradient.
fn split<'a>(
    n: usize,
    activations: &'a [Vec<f32>],
    deltas: &'a mut [Vec<f32>],
    s: usize,
) -> (Pass<'a>, &'a mut [f32]) {
    let (before, after) = deltas.split_at_mut(s + 1);
    let pass = Pass { n, x: &activations[s], y: &activations[s + 1], dy: &after[0] };
    (pass, &mut before[s])
}
