//! Weight standardization (Qiao et al. 2019, arXiv 1903.10520): Ŵ = (W − mean W)/√(var W + ε) for the
//! weights of each output channel, and the gradient through it.

use super::NORM_EPSILON;
use crate::model::kernels::{lanes_sum, vectorized};

vectorized! {
    /// Ŵ, row by row of `taps` weights, then 1/√(var + ε) of each row.
    pub(super) fn standardize(weights: &[f32], taps: usize, out: &mut [f32]) {
        let (standardized, inverse_stds) = out.split_at_mut(weights.len());
        let rows = weights.chunks_exact(taps).zip(standardized.chunks_exact_mut(taps));
        for ((w, out), inverse_std) in rows.zip(inverse_stds) {
            let mean = lanes_sum(taps, |j| w[j]) / taps as f32;
            let variance = lanes_sum(taps, |j| (w[j] - mean) * (w[j] - mean)) / taps as f32;
            *inverse_std = 1.0 / (variance + NORM_EPSILON).sqrt();
            for (out, w) in out.iter_mut().zip(w) {
                *out = *inverse_std * (w - mean);
            }
        }
    }
}

vectorized! {
    /// ∂L/∂W in place of g = ∂L/∂Ŵ: (g − mean g − Ŵ·mean(g·Ŵ))/√(var + ε), row by row.
    pub(super) fn through_standardization(gradient: &mut [f32], taps: usize, saved: &[f32]) {
        let (standardized, inverse_stds) = saved.split_at(gradient.len());
        let rows = gradient.chunks_exact_mut(taps).zip(standardized.chunks_exact(taps));
        for ((g, w), inverse_std) in rows.zip(inverse_stds) {
            let mean = lanes_sum(taps, |j| g[j]) / taps as f32;
            let slope = lanes_sum(taps, |j| g[j] * w[j]) / taps as f32;
            for (g, w) in g.iter_mut().zip(w) {
                *g = inverse_std * (*g - mean - slope * w);
            }
        }
    }
}
