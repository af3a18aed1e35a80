//! Convolution by im2col and matrix products: any shape, and the oracle of the fast kernels.
//!
//! `Saved::scratch` holds the columns of one sample (and their gradient), `Saved::packed_gradient`
//! and `Saved::clipped_sum` the clipped gradients of a block and of all blocks,
//! `Saved::sample_gradient` that of one sample.

use super::{Op, Pass, Saved, grow, row};
use crate::model::gemm::{Matrix, multiply};
use crate::model::kernels::{add_scaled, norm_squared};
use crate::model::layer::Shape;

/// Parameters: W (channels × inputs × kernel × kernel), then b.
pub(in crate::model) struct Conv {
    pub input: Shape,
    pub output: Shape,
    pub kernel: usize,
}

impl Conv {
    fn taps(&self) -> usize {
        self.input.channels * self.kernel * self.kernel
    }

    /// Calls `f(column row, input offset of its first cell)`: row (c, ky, kx) of the column matrix
    /// is the input plane c shifted by (ky, kx).
    fn for_each_tap(&self, mut f: impl FnMut(usize, usize)) {
        let mut tap = 0;
        for c in 0..self.input.channels {
            for ky in 0..self.kernel {
                for kx in 0..self.kernel {
                    f(tap, c * self.input.area() + ky * self.input.cols + kx);
                    tap += 1;
                }
            }
        }
    }

    fn im2col(&self, x: &[f32], columns: &mut [f32]) {
        let Shape { rows, cols, .. } = self.output;
        self.for_each_tap(|tap, first| {
            for r in 0..rows {
                columns[tap * rows * cols + r * cols..][..cols]
                    .copy_from_slice(&x[first + r * self.input.cols..][..cols]);
            }
        });
    }

    fn col2im(&self, columns: &[f32], dx: &mut [f32]) {
        let Shape { rows, cols, .. } = self.output;
        dx.fill(0.0);
        self.for_each_tap(|tap, first| {
            for r in 0..rows {
                let column = &columns[tap * rows * cols + r * cols..][..cols];
                for (dx, &d) in dx[first + r * self.input.cols..][..cols].iter_mut().zip(column) {
                    *dx += d;
                }
            }
        });
    }

    /// Adds the gradient of sample `i` to `out`.
    fn add_gradient(&self, pass: Pass<'_>, i: usize, columns: &mut Vec<f32>, out: &mut [f32]) {
        let area = self.output.area();
        grow(columns, self.taps() * area);
        self.im2col(row(pass.x, i, self.input.len()), columns);
        let dy = row(pass.dy, i, self.output.len());
        let (weights, bias) = out.split_at_mut(self.output.channels * self.taps());
        let columns = Matrix::new(columns, self.taps(), area).transposed();
        multiply(Matrix::new(dy, self.output.channels, area), columns, 1.0, weights);
        for (bias, dy) in bias.iter_mut().zip(dy.chunks_exact(area)) {
            *bias += dy.iter().sum::<f32>();
        }
    }
}

impl Op for Conv {
    fn output_len(&self) -> usize {
        self.output.len()
    }

    fn parameter_count(&self) -> usize {
        self.output.channels * (self.taps() + 1)
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let area = self.output.area();
        let (weights, bias) = p.split_at(self.output.channels * self.taps());
        grow(&mut saved.scratch, self.taps() * area);
        for i in 0..n {
            self.im2col(row(x, i, self.input.len()), &mut saved.scratch);
            let y = &mut y[i * self.output.len()..][..self.output.len()];
            for (y, &bias) in y.chunks_exact_mut(area).zip(bias) {
                y.fill(bias);
            }
            multiply(
                Matrix::new(weights, self.output.channels, self.taps()),
                Matrix::new(&saved.scratch, self.taps(), area),
                1.0,
                y,
            );
        }
    }

    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let area = self.output.area();
        grow(&mut saved.scratch, self.taps() * area);
        let weights = Matrix::new(p, self.output.channels, self.taps()).transposed();
        for i in 0..pass.n {
            let dy = Matrix::new(row(pass.dy, i, self.output.len()), self.output.channels, area);
            multiply(weights, dy, 0.0, &mut saved.scratch);
            self.col2im(&saved.scratch, &mut dx[i * self.input.len()..][..self.input.len()]);
        }
    }

    fn gradient(&self, pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        gradient.fill(0.0);
        for i in 0..pass.n {
            self.add_gradient(pass, i, &mut saved.scratch, gradient);
        }
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        grow(&mut saved.sample_gradient, self.parameter_count());
        saved.begin_sum(self.parameter_count());
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f64 {
        saved.sample_gradient.fill(0.0);
        self.add_gradient(pass, i, &mut saved.scratch, &mut saved.sample_gradient);
        norm_squared(&saved.sample_gradient)
    }

    fn add_sample(&self, _: Pass<'_>, _: usize, factor: f32, saved: &mut Saved) {
        add_scaled(&mut saved.packed_gradient, factor, &saved.sample_gradient);
    }

    fn end_block(&self, saved: &mut Saved) {
        saved.end_block();
    }

    fn finish_clipped(&self, saved: &Saved, gradient: &mut [f64]) {
        gradient.copy_from_slice(&saved.clipped_sum);
    }
}
