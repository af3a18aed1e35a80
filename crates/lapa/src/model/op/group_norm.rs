//! Group norm (Wu & He 2018): each sample normalized over groups of channels, so one sample's
//! gradient never depends on another's. `Saved::values` holds mean and 1/std per sample and group,
//! `Saved::packed_gradient` and `Saved::clipped_sum` the clipped gradients of a block and of all
//! blocks, `Saved::sample_gradient` one sample's.

use super::{NORM_EPSILON, Op, Pass, Saved, grow, row};
use crate::model::kernels::{add_scaled, lanes_sum, norm_squared, vectorized};
use crate::model::layer::Shape;

/// Parameters: scale γ per channel, then shift β per channel.
pub(in crate::model) struct GroupNorm {
    pub shape: Shape,
    pub groups: usize,
}

impl GroupNorm {
    fn channels_per_group(&self) -> usize {
        self.shape.channels / self.groups
    }

    fn group_len(&self) -> usize {
        self.channels_per_group() * self.shape.area()
    }

    /// Adds (Σ dy·x̂, Σ dy) per channel of one sample to `out` = (dγ, dβ).
    fn add_gradient(&self, pass: Pass<'_>, i: usize, moments: &[f32], out: &mut [f32]) {
        let len = self.shape.len();
        let moments = row(moments, i, 2 * self.groups);
        add_gradient(self, row(pass.x, i, len), row(pass.dy, i, len), moments, out);
    }
}

fn moments_of(moments: &[f32], group: usize) -> [f32; 2] {
    [moments[2 * group], moments[2 * group + 1]]
}

impl Op for GroupNorm {
    fn output_len(&self) -> usize {
        self.shape.len()
    }

    fn parameter_count(&self) -> usize {
        2 * self.shape.channels
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        grow(&mut saved.values, n * 2 * self.groups);
        forward(self, p, &x[..n * self.shape.len()], y, &mut saved.values);
    }

    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        backward(self, p, pass, &saved.values, dx);
    }

    fn gradient(&self, _: &[f32], pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        gradient.fill(0.0);
        for i in 0..pass.n {
            self.add_gradient(pass, i, &saved.values, gradient);
        }
    }

    fn begin_clipped(&self, saved: &mut Saved) {
        grow(&mut saved.sample_gradient, self.parameter_count());
        saved.begin_sum(self.parameter_count());
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f64 {
        let Saved { sample_gradient, values, .. } = saved;
        sample_gradient.fill(0.0);
        self.add_gradient(pass, i, values, sample_gradient);
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

vectorized! {
    /// Normalizes group by group; `moments` receives mean and 1/std of each.
    fn forward(norm: &GroupNorm, p: &[f32], x: &[f32], y: &mut [f32], moments: &mut [f32]) {
        let (area, group_len) = (norm.shape.area(), norm.group_len());
        let (gamma, beta) = p.split_at(norm.shape.channels);
        let groups = x.chunks_exact(group_len).zip(y.chunks_exact_mut(group_len));
        for (index, ((x, y), moments)) in groups.zip(moments.chunks_exact_mut(2)).enumerate() {
            let mean = lanes_sum(group_len, |j| x[j]) / group_len as f32;
            let variance =
                lanes_sum(group_len, |j| (x[j] - mean) * (x[j] - mean)) / group_len as f32;
            let inverse_std = 1.0 / (variance + NORM_EPSILON).sqrt();
            moments.copy_from_slice(&[mean, inverse_std]);
            let first = index % norm.groups * norm.channels_per_group();
            for (c, (x, y)) in x.chunks_exact(area).zip(y.chunks_exact_mut(area)).enumerate() {
                let (scale, shift) = (gamma[first + c] * inverse_std, beta[first + c]);
                for (x, y) in x.iter().zip(y) {
                    *y = scale * (x - mean) + shift;
                }
            }
        }
    }
}

vectorized! {
    /// dx = (γ dy − mean(γ dy) − x̂·mean(γ dy·x̂))/std, means over the group.
    fn backward(norm: &GroupNorm, p: &[f32], pass: Pass<'_>, moments: &[f32], dx: &mut [f32]) {
        let (area, group_len) = (norm.shape.area(), norm.group_len());
        let count = group_len as f32;
        let rows = pass.x.chunks_exact(group_len).zip(pass.dy.chunks_exact(group_len));
        let rows = rows.zip(dx.chunks_exact_mut(group_len)).take(pass.n * norm.groups);
        for (index, ((x, dy), dx)) in rows.enumerate() {
            let [mean, inverse_std] = moments_of(moments, index);
            let first = index % norm.groups * norm.channels_per_group();
            let gamma = &p[first..][..norm.channels_per_group()];
            let (mut sum_dy, mut sum_dy_x) = (0.0, 0.0);
            for (c, gamma) in gamma.iter().enumerate() {
                let (x, dy) = (row(x, c, area), row(dy, c, area));
                sum_dy += gamma * lanes_sum(area, |j| dy[j]);
                sum_dy_x += gamma * lanes_sum(area, |j| dy[j] * (x[j] - mean));
            }
            let shift = inverse_std * sum_dy / count;
            let slope = inverse_std * inverse_std * inverse_std * sum_dy_x / count;
            for (c, gamma) in gamma.iter().enumerate() {
                let (x, dy) = (row(x, c, area), row(dy, c, area));
                let scale = gamma * inverse_std;
                for (j, dx) in dx[c * area..][..area].iter_mut().enumerate() {
                    *dx = scale * dy[j] - shift - slope * (x[j] - mean);
                }
            }
        }
    }
}

vectorized! {
    fn add_gradient(norm: &GroupNorm, x: &[f32], dy: &[f32], moments: &[f32], out: &mut [f32]) {
        let area = norm.shape.area();
        let (gamma, beta) = out.split_at_mut(norm.shape.channels);
        for c in 0..norm.shape.channels {
            let [mean, inverse_std] = moments_of(moments, c / norm.channels_per_group());
            let (x, dy) = (row(x, c, area), row(dy, c, area));
            beta[c] += lanes_sum(area, |j| dy[j]);
            gamma[c] += inverse_std * lanes_sum(area, |j| dy[j] * (x[j] - mean));
        }
    }
}
