//! Group norm (Wu & He 2018): each sample normalised over groups of channels, so one sample's
//! gradient never depends on another's. `Saved::values` holds mean and 1/std per sample and group,
//! `Saved::packed_gradient` the running clipped gradient, `Saved::sample_gradient` one sample's.

use super::{NORM_EPSILON, Pass, Saved, Stage, grow, row};
use crate::model::kernels::{add_scaled, lanes_sum, norm_squared, vectorised};
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
    #[inline(always)]
    fn add_gradient(&self, x: &[f32], dy: &[f32], moments: &[f32], out: &mut [f32]) {
        let area = self.shape.area();
        let (gamma, beta) = out.split_at_mut(self.shape.channels);
        for c in 0..self.shape.channels {
            let [mean, inverse_std] = moments_of(moments, c / self.channels_per_group());
            let (x, dy) = (row(x, c, area), row(dy, c, area));
            beta[c] += lanes_sum(area, |j| dy[j]);
            gamma[c] += inverse_std * lanes_sum(area, |j| dy[j] * (x[j] - mean));
        }
    }
}

fn moments_of(moments: &[f32], group: usize) -> [f32; 2] {
    [moments[2 * group], moments[2 * group + 1]]
}

impl Stage for GroupNorm {
    fn output_len(&self) -> usize {
        self.shape.len()
    }

    fn parameter_count(&self) -> usize {
        2 * self.shape.channels
    }

    fn forward(&self, p: &[f32], n: usize, x: &[f32], y: &mut [f32], saved: &mut Saved) {
        let (len, area, group_len) = (self.shape.len(), self.shape.area(), self.group_len());
        let (gamma, beta) = p.split_at(self.shape.channels);
        grow(&mut saved.values, n * 2 * self.groups);
        let values = &mut saved.values;
        vectorised(|| {
            for i in 0..n {
                for g in 0..self.groups {
                    let first = i * len + g * group_len;
                    let x = &x[first..][..group_len];
                    let y = &mut y[first..][..group_len];
                    let mean = lanes_sum(group_len, |j| x[j]) / group_len as f32;
                    let variance = lanes_sum(group_len, |j| (x[j] - mean) * (x[j] - mean))
                        / group_len as f32;
                    let inverse_std = 1.0 / (variance + NORM_EPSILON).sqrt();
                    values[2 * (i * self.groups + g)] = mean;
                    values[2 * (i * self.groups + g) + 1] = inverse_std;
                    let rows = x.chunks_exact(area).zip(y.chunks_exact_mut(area));
                    for (c, (x, y)) in rows.enumerate() {
                        let c = g * self.channels_per_group() + c;
                        let scale = gamma[c] * inverse_std;
                        for j in 0..area {
                            y[j] = scale * (x[j] - mean) + beta[c];
                        }
                    }
                }
            }
        });
    }

    /// dx = (γ dy − mean(γ dy) − x̂·mean(γ dy·x̂))/std, means over the group.
    fn backward(&self, p: &[f32], pass: Pass<'_>, dx: &mut [f32], saved: &mut Saved) {
        let (len, area) = (self.shape.len(), self.shape.area());
        let count = self.group_len() as f32;
        let gamma = &p[..self.shape.channels];
        let values = &saved.values;
        vectorised(|| {
            for i in 0..pass.n {
                let (x, dy) = (row(pass.x, i, len), row(pass.dy, i, len));
                let dx = &mut dx[i * len..][..len];
                for g in 0..self.groups {
                    let [mean, inverse_std] = moments_of(values, i * self.groups + g);
                    let channels = g * self.channels_per_group()..(g + 1) * self.channels_per_group();
                    let (mut sum_dy, mut sum_dy_x) = (0.0, 0.0);
                    for c in channels.clone() {
                        let (x, dy) = (row(x, c, area), row(dy, c, area));
                        sum_dy += gamma[c] * lanes_sum(area, |j| dy[j]);
                        sum_dy_x += gamma[c] * lanes_sum(area, |j| dy[j] * (x[j] - mean));
                    }
                    let shift = inverse_std * sum_dy / count;
                    let slope = inverse_std * inverse_std * inverse_std * sum_dy_x / count;
                    for c in channels {
                        let (x, dy) = (row(x, c, area), row(dy, c, area));
                        let scale = gamma[c] * inverse_std;
                        for (j, dx) in dx[c * area..][..area].iter_mut().enumerate() {
                            *dx = scale * dy[j] - shift - slope * (x[j] - mean);
                        }
                    }
                }
            }
        });
    }

    fn gradient(&self, pass: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        let len = self.shape.len();
        gradient.fill(0.0);
        vectorised(|| {
            for i in 0..pass.n {
                let moments = row(&saved.values, i, 2 * self.groups);
                self.add_gradient(row(pass.x, i, len), row(pass.dy, i, len), moments, gradient);
            }
        });
    }

    fn begin_clipped(&self, _: usize, saved: &mut Saved) {
        grow(&mut saved.sample_gradient, self.parameter_count());
        grow(&mut saved.packed_gradient, self.parameter_count());
        saved.packed_gradient.fill(0.0);
    }

    fn sample_norm_squared(&self, pass: Pass<'_>, i: usize, saved: &mut Saved) -> f32 {
        let len = self.shape.len();
        let Saved { sample_gradient, values, .. } = saved;
        sample_gradient.fill(0.0);
        let moments = row(values, i, 2 * self.groups);
        vectorised(|| {
            let (x, dy) = (row(pass.x, i, len), row(pass.dy, i, len));
            self.add_gradient(x, dy, moments, sample_gradient);
        });
        norm_squared(sample_gradient)
    }

    fn add_sample(&self, _: Pass<'_>, _: usize, factor: f32, saved: &mut Saved) {
        add_scaled(&mut saved.packed_gradient, factor, &saved.sample_gradient);
    }

    fn finish_clipped(&self, _: Pass<'_>, saved: &mut Saved, gradient: &mut [f32]) {
        gradient.copy_from_slice(&saved.packed_gradient);
    }
}
