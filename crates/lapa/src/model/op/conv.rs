//! Convolution by im2col and matrix products: any shape, and the oracle of the fast kernels.
//!
//! `Saved::scratch` holds the columns of one sample (and their gradient), `Saved::packed_gradient`
//! and `Saved::clipped_sum` the clipped gradients of a block and of all blocks,
//! `Saved::sample_gradient` that of one sample, `Saved::packed` standardized weights.

use std::ops::Range;

use super::standardize::{standardize, through_standardization};
use super::{Op, Pass, Saved, Windows, grow, row};
use crate::model::gemm::{Matrix, multiply};
use crate::model::kernels::{add_scaled, norm_squared};

/// Parameters: W (channels × inputs × kernel × kernel), then b.
pub(in crate::model) struct Conv {
    pub windows: Windows,
    pub padding: usize,
    pub standardized: bool,
}

impl Conv {
    /// Weights of an output channel.
    pub(super) fn taps(&self) -> usize {
        self.windows.input.channels * self.windows.kernel * self.windows.kernel
    }

    pub(super) fn weights(&self) -> usize {
        self.windows.output.channels * self.taps()
    }

    /// Calls `f(cells of the column matrix, cells of the input plane)` for each run of cells that row
    /// (c, ky, kx) of the column matrix takes from a row of the input: the plane c shifted by
    /// (ky, kx), which ends in the padding. `f` has the offset and the length of the run.
    fn for_each_run(&self, mut f: impl FnMut(usize, usize, usize)) {
        let Windows { input, output, kernel, stride } = self.windows;
        for tap in 0..self.taps() {
            let (c, ky, kx) = (tap / (kernel * kernel), tap / kernel % kernel, tap % kernel);
            let cols = self.inside(kx, input.cols, output.cols);
            if cols.is_empty() {
                continue;
            }
            for row in self.inside(ky, input.rows, output.rows) {
                let from = c * input.area()
                    + (row * stride + ky - self.padding) * input.cols
                    + (cols.start * stride + kx).saturating_sub(self.padding);
                f(tap * output.area() + row * output.cols + cols.start, from, cols.len());
            }
        }
    }

    /// Places, of `outputs`, whose cell at `offset` lies in the input.
    fn inside(&self, offset: usize, inputs: usize, outputs: usize) -> Range<usize> {
        let stride = self.windows.stride;
        let first = self.padding.saturating_sub(offset).div_ceil(stride);
        let end = (inputs + self.padding).saturating_sub(offset).div_ceil(stride).min(outputs);
        first.min(end)..end
    }

    fn im2col(&self, x: &[f32], columns: &mut [f32]) {
        if self.padding > 0 {
            columns.fill(0.0);
        }
        let stride = self.windows.stride;
        self.for_each_run(|to, from, len| {
            let columns = &mut columns[to..][..len];
            if stride == 1 {
                columns.copy_from_slice(&x[from..][..len]);
            } else {
                for (column, x) in columns.iter_mut().zip(x[from..].iter().step_by(stride)) {
                    *column = *x;
                }
            }
        });
    }

    fn col2im(&self, columns: &[f32], dx: &mut [f32]) {
        dx.fill(0.0);
        let stride = self.windows.stride;
        self.for_each_run(|to, from, len| {
            let columns = &columns[to..][..len];
            for (dx, &d) in dx[from..].iter_mut().step_by(stride).zip(columns) {
                *dx += d;
            }
        });
    }

    /// The weights that the convolution is done with.
    pub(super) fn used<'a>(&self, p: &'a [f32], packed: &'a [f32]) -> &'a [f32] {
        if self.standardized { packed } else { p }
    }

    /// The gradient in the weights, from that in those the convolution is done with.
    pub(super) fn through_standardization(&self, gradient: &mut [f32], packed: &[f32]) {
        if self.standardized {
            through_standardization(&mut gradient[..self.weights()], self.taps(), packed);
        }
    }

    /// Adds the gradient of sample `i` to `out`.
    fn add_gradient(&self, pass: Pass<'_>, i: usize, columns: &mut Vec<f32>, out: &mut [f32]) {
        let Windows { input, output, .. } = self.windows;
        let area = output.area();
        grow(columns, self.taps() * area);
        self.im2col(row(pass.x, i, input.len()), columns);
        let dy = row(pass.dy, i, output.len());
        let (weights, bias) = out.split_at_mut(self.weights());
        let columns = Matrix::new(columns, self.taps(), area).transposed();
        multiply(Matrix::new(dy, output.channels, area), columns, 1.0, weights);
        for (bias, dy) in bias.iter_mut().zip(dy.chunks_exact(area)) {
            *bias += dy.iter().sum::<f32>();
        }
    }
}

impl Op for Conv {
    fn output_len(&self) -> usize {
        self.windows.output.len()
    }

    fn parameter_count(&self) -> usize {
        self.weights() + self.windows.output.channels
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let Windows { input, output, .. } = self.windows;
        let area = output.area();
        let (weights, bias) = p.split_at(self.weights());
        let Saved { scratch, packed, .. } = saved;
        if self.standardized {
            grow(packed, self.parameter_count());
            standardize(weights, self.taps(), packed);
        }
        let weights = Matrix::new(self.used(weights, packed), output.channels, self.taps());
        grow(scratch, self.taps() * area);
        for i in 0..n {
            self.im2col(row(x, i, input.len()), scratch);
            let y = &mut y[i * output.len()..][..output.len()];
            for (y, &bias) in y.chunks_exact_mut(area).zip(bias) {
                y.fill(bias);
            }
            multiply(weights, Matrix::new(scratch, self.taps(), area), 1.0, y);
        }
    }

    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let Windows { input, output, .. } = self.windows;
        let area = output.area();
        let Saved { scratch, packed, .. } = saved;
        grow(scratch, self.taps() * area);
        let weights = Matrix::new(self.used(p, packed), output.channels, self.taps()).transposed();
        for i in 0..pass.n {
            let dy = Matrix::new(row(pass.dy, i, output.len()), output.channels, area);
            multiply(weights, dy, 0.0, scratch);
            self.col2im(scratch, &mut dx[i * input.len()..][..input.len()]);
        }
    }

    fn gradient(&self, _: &[f32], pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        gradient.fill(0.0);
        for i in 0..pass.n {
            self.add_gradient(pass, i, &mut saved.scratch, gradient);
        }
        self.through_standardization(gradient, &saved.packed);
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        grow(&mut saved.sample_gradient, self.parameter_count());
        saved.begin_sum(self.parameter_count());
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f64 {
        let Saved { sample_gradient, scratch, packed, .. } = saved;
        sample_gradient.fill(0.0);
        self.add_gradient(pass, i, scratch, sample_gradient);
        self.through_standardization(sample_gradient, packed);
        norm_squared(sample_gradient)
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
