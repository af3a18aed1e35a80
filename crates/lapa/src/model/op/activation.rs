//! Relu and tanh. Neither keeps anything: both derivatives follow from the output.

use super::{Op, Pass, Saved};

/// y = max(0, x); the derivative at 0 is 0, as in PyTorch.
pub(in crate::model) struct Relu {
    pub len: usize,
}

impl Op for Relu {
    fn output_len(&self) -> usize {
        self.len
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let len = n * self.len;
        for (y, &x) in y[..len].iter_mut().zip(&x[..len]) {
            // Not f32::max, which would turn NaN into 0.
            *y = if x <= 0.0 { 0.0 } else { x };
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], _: &mut Saved) {
        let len = pass.n * self.len;
        for ((dx, &y), &dy) in dx[..len].iter_mut().zip(&pass.y[..len]).zip(&pass.dy[..len]) {
            *dx = if y <= 0.0 { 0.0 } else { dy };
        }
    }
}

/// y = tanh(x), y' = 1 − y².
pub(in crate::model) struct Tanh {
    pub len: usize,
}

impl Op for Tanh {
    fn output_len(&self) -> usize {
        self.len
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let len = n * self.len;
        for (y, &x) in y[..len].iter_mut().zip(&x[..len]) {
            *y = x.tanh();
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], _: &mut Saved) {
        let len = pass.n * self.len;
        for ((dx, &y), &dy) in dx[..len].iter_mut().zip(&pass.y[..len]).zip(&pass.dy[..len]) {
            *dx = dy * (1.0 - y * y);
        }
    }
}
