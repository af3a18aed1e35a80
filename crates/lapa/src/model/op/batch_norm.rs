//! Batch norm (Ioffe & Szegedy 2015): each channel normalized over the batch and all positions.
//!
//! Sums run elementwise over the samples first, then over the positions of a channel, so that the
//! inner loops are plain vector loops. `Saved::values` holds the per-position accumulators and
//! coefficients, `Saved::statistics` mean and mean square per channel.

use super::{NORM_EPSILON, Op, Pass, Saved, grow};
use crate::model::kernels::vectorized;
use crate::model::layer::Shape;

/// Parameters: scale γ per channel, then shift β per channel.
pub(in crate::model) struct BatchNorm {
    pub shape: Shape,
}

impl BatchNorm {
    /// Means over the positions of each channel and over `n` samples.
    fn channel_mean(&self, n: usize, sums: &[f32], c: usize) -> f64 {
        let area = self.shape.area();
        let sum: f64 = sums[c * area..][..area].iter().map(|&v| f64::from(v)).sum();
        sum / (n * area) as f64
    }

    /// y = scale·(x − mean) + shift with one coefficient per channel.
    fn normalize(&self, n: usize, x: &[f32], y: &mut [f32], saved: &mut [f32], p: &[f32]) {
        let len = self.shape.len();
        let (gamma, beta) = p.split_at(self.shape.channels);
        let (mean, rest) = saved.split_at_mut(len);
        let (inverse_std, rest) = rest.split_at_mut(len);
        let (scale, shift) = rest[..2 * len].split_at_mut(len);
        for j in 0..len {
            let c = j / self.shape.area();
            scale[j] = gamma[c] * inverse_std[j];
            shift[j] = beta[c];
        }
        scale_and_shift(n, x, mean, scale, shift, y);
    }
}

impl Op for BatchNorm {
    fn output_len(&self) -> usize {
        self.shape.len()
    }

    fn parameter_count(&self) -> usize {
        2 * self.shape.channels
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let Shape { channels, .. } = self.shape;
        let (len, area) = (self.shape.len(), self.shape.area());
        grow(&mut saved.values, 4 * len);
        saved.statistics.resize(2 * channels, 0.0);
        let (mean, rest) = saved.values.split_at_mut(len);
        let sums = &mut rest[..len];
        sums.fill(0.0);
        add_values(n, x, sums);
        for c in 0..channels {
            let channel_mean = self.channel_mean(n, sums, c) as f32;
            mean[c * area..][..area].fill(channel_mean);
            saved.statistics[c] = channel_mean;
        }
        sums.fill(0.0);
        add_squares(n, x, mean, sums);
        for c in 0..channels {
            let variance = self.channel_mean(n, sums, c) as f32;
            sums[c * area..][..area].fill(1.0 / (variance + NORM_EPSILON).sqrt());
            let mean = saved.statistics[c];
            saved.statistics[channels + c] = variance + mean * mean;
        }
        self.normalize(n, x, y, &mut saved.values, p);
    }

    fn infer(
        &self,
        p: &[f32],
        statistics: &[f32],
        n: usize,
        x: &[f32],
        y: &mut [f32],
        saved: &mut Saved,
    ) {
        let Shape { channels, .. } = self.shape;
        let (len, area) = (self.shape.len(), self.shape.area());
        grow(&mut saved.values, 4 * len);
        for c in 0..channels {
            let (mean, mean_square) = (statistics[c], statistics[channels + c]);
            let variance = (mean_square - mean * mean).max(0.0);
            saved.values[c * area..][..area].fill(mean);
            saved.values[len + c * area..][..area].fill(1.0 / (variance + NORM_EPSILON).sqrt());
        }
        self.normalize(n, x, y, &mut saved.values, p);
    }

    /// dx = γ/std · (dy − mean(dy) − x̂·mean(dy·x̂)), means over batch and positions.
    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let (len, area) = (self.shape.len(), self.shape.area());
        let (mean, rest) = saved.values.split_at_mut(len);
        let (inverse_std, rest) = rest.split_at_mut(len);
        let (sum_dy, rest) = rest.split_at_mut(len);
        let sum_dy_x = &mut rest[..len];
        for c in 0..self.shape.channels {
            let scale = p[c] * inverse_std[c * area];
            let mean_dy = self.channel_mean(pass.n, sum_dy, c) as f32;
            let mean_dy_x = self.channel_mean(pass.n, sum_dy_x, c) as f32;
            sum_dy[c * area..][..area].fill(scale * mean_dy);
            sum_dy_x[c * area..][..area].fill(scale * mean_dy_x * inverse_std[c * area]);
            inverse_std[c * area..][..area].fill(scale);
        }
        input_gradient(pass, mean, [inverse_std, sum_dy, sum_dy_x], dx);
    }

    /// dγ = Σ dy·x̂, dβ = Σ dy. Leaves both sums for [`Op::backward`].
    fn gradient(&self, _: &[f32], pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        let len = self.shape.len();
        let (mean, rest) = saved.values.split_at_mut(len);
        let (inverse_std, rest) = rest.split_at_mut(len);
        let (sum_dy, sum_dy_x) = rest[..2 * len].split_at_mut(len);
        sum_dy.fill(0.0);
        sum_dy_x.fill(0.0);
        add_deltas(pass, mean, sum_dy, sum_dy_x);
        for (sum, inverse_std) in sum_dy_x.iter_mut().zip(inverse_std) {
            *sum *= *inverse_std;
        }
        let count = (pass.n * self.shape.area()) as f64;
        let (gamma, beta) = gradient.split_at_mut(self.shape.channels);
        for c in 0..self.shape.channels {
            gamma[c] = (self.channel_mean(pass.n, &saved.values[3 * len..], c) * count) as f32;
            beta[c] = (self.channel_mean(pass.n, &saved.values[2 * len..], c) * count) as f32;
        }
    }
}

// The loops over all samples, position by position; each slice holds a value per position.

vectorized! {
    fn add_values(n: usize, x: &[f32], sums: &mut [f32]) {
        for x in x.chunks_exact(sums.len()).take(n) {
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum += x;
            }
        }
    }
}

vectorized! {
    fn add_squares(n: usize, x: &[f32], mean: &[f32], sums: &mut [f32]) {
        for x in x.chunks_exact(sums.len()).take(n) {
            for ((sum, x), mean) in sums.iter_mut().zip(x).zip(mean) {
                *sum += (x - mean) * (x - mean);
            }
        }
    }
}

vectorized! {
    fn scale_and_shift(
        n: usize, x: &[f32], mean: &[f32], scale: &[f32], shift: &[f32], y: &mut [f32],
    ) {
        let len = mean.len();
        let (scale, shift) = (&scale[..len], &shift[..len]);
        for (x, y) in x.chunks_exact(len).zip(y.chunks_exact_mut(len)).take(n) {
            for j in 0..len {
                y[j] = scale[j] * (x[j] - mean[j]) + shift[j];
            }
        }
    }
}

vectorized! {
    /// Σ dy and Σ dy·(x − mean) over the samples.
    fn add_deltas(pass: Pass<'_>, mean: &[f32], sum_dy: &mut [f32], sum_dy_x: &mut [f32]) {
        let len = mean.len();
        let (sum_dy, sum_dy_x) = (&mut sum_dy[..len], &mut sum_dy_x[..len]);
        for (x, dy) in pass.x.chunks_exact(len).zip(pass.dy.chunks_exact(len)).take(pass.n) {
            for j in 0..len {
                sum_dy[j] += dy[j];
                sum_dy_x[j] += dy[j] * (x[j] - mean[j]);
            }
        }
    }
}

vectorized! {
    fn input_gradient(pass: Pass<'_>, mean: &[f32], factors: [&[f32]; 3], dx: &mut [f32]) {
        let len = mean.len();
        let [scale, shift, slope] = factors.map(|factor| &factor[..len]);
        let rows = pass.x.chunks_exact(len).zip(pass.dy.chunks_exact(len)).take(pass.n);
        for ((x, dy), dx) in rows.zip(dx.chunks_exact_mut(len)) {
            for j in 0..len {
                dx[j] = scale[j] * dy[j] - shift[j] - slope[j] * (x[j] - mean[j]);
            }
        }
    }
}
