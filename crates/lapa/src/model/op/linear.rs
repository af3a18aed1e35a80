//! Fully connected layer, y = W x + b, over the whole batch at once.
//!
//! `Saved::values` holds the clipped deltas of a block, `Saved::scratch` its inputs,
//! `Saved::packed_gradient` and `Saved::clipped_sum` the clipped gradients of a block and of all
//! blocks.

use super::{Op, Pass, Saved, grow, row};
use crate::model::gemm::{Matrix, multiply};
use crate::model::kernels::{add_wide, norm_squared};
use crate::model::sample_clip::{BLOCK, LARGEST_NORM_SQUARED};

/// Parameters: W (outputs × inputs, row by row), then b.
pub(in crate::model) struct Linear {
    pub inputs: usize,
    pub outputs: usize,
}

impl Linear {
    fn parameter_gradient(&self, n: usize, x: &[f32], dy: &[f32], gradient: &mut [f32]) {
        let (weights, bias) = gradient.split_at_mut(self.inputs * self.outputs);
        let deltas = Matrix::new(dy, n, self.outputs);
        multiply(deltas.transposed(), Matrix::new(x, n, self.inputs), 0.0, weights);
        bias.fill(0.0);
        for dy in dy[..n * self.outputs].chunks_exact(self.outputs) {
            for (bias, &dy) in bias.iter_mut().zip(dy) {
                *bias += dy;
            }
        }
    }
}

impl Op for Linear {
    fn output_len(&self) -> usize {
        self.outputs
    }

    fn parameter_count(&self) -> usize {
        (self.inputs + 1) * self.outputs
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let (weights, bias) = p.split_at(self.inputs * self.outputs);
        for y in y[..n * self.outputs].chunks_exact_mut(self.outputs) {
            y.copy_from_slice(bias);
        }
        let weights = Matrix::new(weights, self.outputs, self.inputs);
        multiply(Matrix::new(x, n, self.inputs), weights.transposed(), 1.0, y);
    }

    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], _: &mut Saved) {
        let weights = Matrix::new(p, self.outputs, self.inputs);
        multiply(Matrix::new(pass.dy, pass.n, self.outputs), weights, 0.0, dx);
    }

    fn gradient(&self, _: &[f32], pass: Pass<'_>, _: &mut Saved, gradient: &mut [f32]) {
        self.parameter_gradient(pass.n, pass.x, pass.dy, gradient);
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        grow(&mut saved.values, BLOCK * self.outputs);
        grow(&mut saved.scratch, BLOCK * self.inputs);
        saved.begin_sum(self.parameter_count());
        saved.members = 0;
    }

    /// The gradient is the outer product δ(x, 1)ᵀ, so its squared norm is |δ|²(|x|² + 1): the
    /// "ghost norm" of Goodfellow (2015, arXiv 1510.01799), without forming the product. Inputs so
    /// long that the rounding of a tiny clipped delta would show count as not finite.
    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, _: &mut Saved) -> f64 {
        let x = 1.0 + norm_squared(row(pass.x, i, self.inputs));
        if x > LARGEST_NORM_SQUARED {
            return f64::INFINITY;
        }
        norm_squared(row(pass.dy, i, self.outputs)) * x
    }

    fn add_sample(&self, pass: Pass<'_>, i: usize, factor: f32, saved: &mut Saved) {
        let Saved { values, scratch, members, .. } = saved;
        let clipped = &mut values[*members * self.outputs..][..self.outputs];
        for (clipped, &dy) in clipped.iter_mut().zip(row(pass.dy, i, self.outputs)) {
            *clipped = factor * dy;
        }
        scratch[*members * self.inputs..][..self.inputs].copy_from_slice(row(
            pass.x,
            i,
            self.inputs,
        ));
        *members += 1;
    }

    fn end_block(&self, saved: &mut Saved) {
        let Saved { values, scratch, packed_gradient, clipped_sum, members, .. } = saved;
        self.parameter_gradient(*members, scratch, values, packed_gradient);
        add_wide(clipped_sum, packed_gradient);
        *members = 0;
    }

    fn finish_clipped(&self, saved: &Saved, gradient: &mut [f64]) {
        gradient.copy_from_slice(&saved.clipped_sum);
    }
}
