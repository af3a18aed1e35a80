//! Relu, tanh and gelu. None keeps anything: derivatives follow from the output, or the input.

use std::f32::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use super::{Op, Pass, Saved};
use crate::model::kernels;

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
    /// By a vector kernel, not the system's tanh, whose bits runs with layers of vectors depend on.
    pub fast: bool,
}

impl Op for Tanh {
    fn output_len(&self) -> usize {
        self.len
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let len = n * self.len;
        if self.fast {
            return kernels::tanh(&x[..len], &mut y[..len]);
        }
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

/// y = x·Φ(x), with Φ(x) = (1 + erf(x/√2))/2; y' = Φ(x) + x·φ(x) (Hendrycks & Gimpel 2016, without
/// their approximation by tanh).
pub(in crate::model) struct Gelu {
    pub len: usize,
}

impl Gelu {
    fn cdf(x: f32) -> f32 {
        0.5 * libm::erfcf(-FRAC_1_SQRT_2 * x)
    }

    fn density(x: f32) -> f32 {
        0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * (-0.5 * x * x).exp()
    }
}

impl Op for Gelu {
    fn output_len(&self) -> usize {
        self.len
    }

    fn forward(&self, _: &[f32], n: usize, x: &[f32], y: &mut [f32], _: &mut Saved) {
        let len = n * self.len;
        for (y, &x) in y[..len].iter_mut().zip(&x[..len]) {
            *y = x * Self::cdf(x);
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, dx: &mut [f32], _: &mut Saved) {
        let len = pass.n * self.len;
        for ((dx, &x), &dy) in dx[..len].iter_mut().zip(&pass.x[..len]).zip(&pass.dy[..len]) {
            *dx = dy * (Self::cdf(x) + x * Self::density(x));
        }
    }
}
