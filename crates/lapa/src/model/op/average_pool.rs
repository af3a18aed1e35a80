//! Average pooling over square windows, or over whole channels.

use super::{Op, Pass, Saved, Windows};
use crate::model::kernels::lanes_sum;
use crate::model::layer::Shape;

/// The mean of each window.
pub(in crate::model) struct AveragePool {
    pub windows: Windows,
}

impl Op for AveragePool {
    fn output_len(&self) -> usize {
        self.windows.output.len()
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let w = &self.windows;
        let factor = 1.0 / (w.kernel * w.kernel) as f32;
        let planes = x[..n * w.input.len()].chunks_exact(w.input.area());
        for (x, y) in planes.zip(y.chunks_exact_mut(w.output.area())) {
            for (cell, y) in y.iter_mut().enumerate() {
                let mut sum = 0.0;
                for row in 0..w.kernel {
                    let first = w.first(cell) + row * w.input.cols;
                    sum += x[first..][..w.kernel].iter().sum::<f32>();
                }
                *y = factor * sum;
            }
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], _: &mut Saved) {
        let w = &self.windows;
        let factor = 1.0 / (w.kernel * w.kernel) as f32;
        let dx = &mut dx[..pass.n * w.input.len()];
        dx.fill(0.0);
        let gradients = pass.dy.chunks_exact(w.output.area());
        for (dx, dy) in dx.chunks_exact_mut(w.input.area()).zip(gradients) {
            for (cell, &dy) in dy.iter().enumerate() {
                for row in 0..w.kernel {
                    let first = w.first(cell) + row * w.input.cols;
                    dx[first..][..w.kernel].iter_mut().for_each(|dx| *dx += factor * dy);
                }
            }
        }
    }
}

/// The mean of each channel.
pub(in crate::model) struct GlobalAveragePool {
    pub input: Shape,
}

impl Op for GlobalAveragePool {
    fn output_len(&self) -> usize {
        self.input.channels
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let area = self.input.area();
        for (x, y) in x[..n * self.input.len()].chunks_exact(area).zip(y) {
            *y = lanes_sum(area, |j| x[j]) / area as f32;
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], _: &mut Saved) {
        let area = self.input.area();
        let dx = dx[..pass.n * self.input.len()].chunks_exact_mut(area);
        for (dx, dy) in dx.zip(pass.dy) {
            dx.fill(dy / area as f32);
        }
    }
}
