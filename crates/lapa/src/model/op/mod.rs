//! Ops of a network: one per layer, or one fused op for conv + pool + relu.

mod activation;
mod average_pool;
mod batch_norm;
mod conv;
#[cfg(target_arch = "x86_64")]
mod conv_direct;
#[cfg(target_arch = "x86_64")]
mod conv_pool_relu;
mod group_norm;
mod linear;
mod max_pool;
mod residual;
mod standardize;
#[cfg(test)]
mod tests;

pub(super) use activation::{Gelu, Relu, Tanh};
pub(super) use average_pool::{AveragePool, GlobalAveragePool};
pub(super) use batch_norm::BatchNorm;
pub(super) use conv::Conv;
#[cfg(target_arch = "x86_64")]
pub(super) use conv_direct::DirectConv;
#[cfg(target_arch = "x86_64")]
pub(super) use conv_pool_relu::ConvPoolRelu;
pub(super) use group_norm::GroupNorm;
pub(super) use linear::Linear;
pub(super) use max_pool::MaxPool;
pub(super) use residual::Residual;

use super::chain::Chain;
use super::kernels::add_wide;
use super::layer::Shape;

/// Variance offset of both norms, PyTorch's default.
const NORM_EPSILON: f32 = 1e-5;

/// Memory of an op between forward and backward, in one worker. Each op says in its own
/// file which buffers it uses; all grow to the largest batch seen and are then reused.
#[derive(Default)]
pub(super) struct Saved {
    /// Values kept for the backward pass, or for the end of a clipped gradient.
    pub values: Vec<f32>,
    /// Positions: which cell won a pooling window.
    pub offsets: Vec<u16>,
    /// Weights in the order the kernels read them.
    pub packed: Vec<f32>,
    /// The sum of the gradients of a batch, or of a block of clipped ones, in packed order.
    pub packed_gradient: Vec<f32>,
    /// The sum of the blocks of clipped gradients in packed order.
    pub clipped_sum: Vec<f64>,
    /// Samples of the block so far (fully connected layers only).
    pub members: usize,
    /// The gradient of one sample in packed order.
    pub sample_gradient: Vec<f32>,
    /// Working memory of the kernels.
    pub scratch: Vec<f32>,
    /// Compacted lists of the cells that carry gradient.
    pub active: crate::model::kernels::Active,
    /// Mean and mean square per channel of the last batch (batch norm only).
    pub statistics: Vec<f32>,
    /// Padded samples, a padded gradient, and gradients in strips (direct convolution only). What is
    /// not written is zero.
    pub padded: [Vec<f32>; 3],
    /// Paths of a residual block.
    pub paths: Vec<Chain>,
}

/// Square windows that step over the planes of an image.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    pub input: Shape,
    pub output: Shape,
    pub kernel: usize,
    pub stride: usize,
}

impl Windows {
    /// Offset in an input plane of the first cell of the window of output `cell`.
    fn first(&self, cell: usize) -> usize {
        let (row, col) = (cell / self.output.cols, cell % self.output.cols);
        self.stride * (row * self.input.cols + col)
    }
}

/// A batch at one op: inputs, outputs and the gradient of the loss in the outputs.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    /// Samples.
    pub n: usize,
    /// Inputs, sample by sample (may be followed by padding).
    pub x: &'a [f32],
    /// Outputs.
    pub y: &'a [f32],
    /// ∂loss/∂outputs.
    pub dy: &'a [f32],
}

/// One op of a network, over whole batches.
pub(super) trait Op: Send + Sync {
    /// Values per sample that it makes.
    fn output_len(&self) -> usize;

    /// Entries of the flat parameter vector that it owns.
    fn parameter_count(&self) -> usize {
        0
    }

    /// Outputs of a training batch; fills `saved`.
    fn forward(&self, parameters: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved);

    /// Outputs of an evaluation batch, with nothing kept for a backward pass. Those of batch norm
    /// follow from `statistics`; all others are those of [`Op::forward`], bit by bit.
    fn infer(
        &self,
        parameters: &[f32],
        _statistics: &[f32],
        n: usize,
        x: &[f32],
        y: &mut [f32],
        saved: &mut Saved,
    ) {
        self.forward(parameters, n, x, y, saved);
    }

    /// Gradients at the ops inside this one, in a pass without [`Op::gradient`]: called before
    /// [`Op::backward`] and the gradients of single samples.
    fn backward_inside(&self, _parameters: &[f32], _pass: Pass<'_>, _saved: &mut Saved) {}

    /// dx = ∂loss/∂inputs. In a batch pass, called after [`Op::gradient`].
    fn backward(&self, parameters: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved);

    /// gradient = ∂loss/∂parameters, summed over the batch.
    fn gradient(
        &self,
        _parameters: &[f32],
        _pass: Pass<'_>,
        _saved: &mut Saved,
        _gradient: &mut [f32],
    ) {
    }

    /// Prepares for per-sample gradients: the sum is zero.
    fn begin_clipped(&self, _saved: &mut Saved) {}

    /// ‖∂loss_i/∂parameters‖² of sample `i`; may keep that gradient in `saved`.
    fn sample_norm_squared(&self, _pass: Pass<'_>, _i: usize, _saved: &mut Saved) -> f64 {
        0.0
    }

    /// Adds `factor` times the gradient of sample `i`, whose norm was asked for just before, to the
    /// block.
    fn add_sample(&self, _pass: Pass<'_>, _i: usize, _factor: f32, _saved: &mut Saved) {}

    /// Adds the block, of at most [`BLOCK`](crate::model::BLOCK) samples, to the sum, in f64, and
    /// begins the next one.
    fn end_block(&self, _saved: &mut Saved) {}

    /// gradient = the sum of the blocks.
    fn finish_clipped(&self, _saved: &Saved, _gradient: &mut [f64]) {}
}

impl Saved {
    /// The sum of clipped gradients of `len` parameters begins at zero.
    fn begin_sum(&mut self, len: usize) {
        grow(&mut self.packed_gradient, len);
        grow(&mut self.clipped_sum, len);
        self.packed_gradient.fill(0.0);
        self.clipped_sum.fill(0.0);
    }

    /// Adds the block in `packed_gradient` to the sum, and begins the next one.
    fn end_block(&mut self) {
        add_wide(&mut self.clipped_sum, &self.packed_gradient);
        self.packed_gradient.fill(0.0);
    }
}

/// Row `i` of a batch whose rows have `len` values.
fn row(values: &[f32], i: usize, len: usize) -> &[f32] {
    &values[i * len..][..len]
}

/// Grows a buffer to at least `len` values.
fn grow<T: Clone + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::default());
    }
}
