//! Vector kernels. The only place, beside the matrix product, with unsafe code.
//!
//! Plain loops are compiled twice by [`vectorised`]: for the baseline processor and for AVX2. Both
//! versions add in the same order and use no fused multiply-add, so they agree to the bit. The
//! convolution kernels exist for AVX2 + FMA only; elsewhere networks use the im2col stage.

#[cfg(target_arch = "x86_64")]
pub(super) mod conv_avx2;

/// Floats that may be read (never used) past the end of a batch by the vector loads.
pub(super) const PADDING: usize = 8;

/// The cells of one sample that carry gradient, compacted.
#[derive(Default)]
pub(super) struct Active {
    /// Where each cell's patch begins.
    pub offsets: Vec<u32>,
    /// The gradient in each cell.
    pub values: Vec<f32>,
    /// Cells per group.
    pub counts: Vec<u32>,
}

/// Whether this processor runs the AVX2 + FMA convolution kernels.
pub(super) fn has_fast_convolution() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Runs `f`, compiled for AVX2 where the processor has it. `f` must inline into this call.
#[inline(always)]
pub(super) fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn avx2<R>(f: impl FnOnce() -> R) -> R {
            f()
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { avx2(f) };
        }
    }
    f()
}

/// Σ_j f(j) over 0..len in eight interleaved partial sums.
#[inline(always)]
pub(super) fn lanes_sum(len: usize, f: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0f32; 8];
    let whole = len / 8 * 8;
    for first in (0..whole).step_by(8) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += f(first + lane);
        }
    }
    for (lane, j) in (whole..len).enumerate() {
        lanes[lane] += f(j);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// ‖x‖²
pub(super) fn norm_squared(x: &[f32]) -> f32 {
    vectorised(|| lanes_sum(x.len(), |j| x[j] * x[j]))
}

/// sum += factor·x
pub(super) fn add_scaled(sum: &mut [f32], factor: f32, x: &[f32]) {
    vectorised(|| {
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += factor * x;
        }
    });
}
