//! Vector kernels. The only place, beside the matrix product, with unsafe code.
//!
//! Plain loops are compiled twice by `vectorized!`: for the baseline processor and for AVX2. Both
//! versions add in the same order and use no fused multiply-add, so they agree to the bit. The
//! convolution kernels exist for AVX2 + FMA only; elsewhere networks use the im2col op.

#[cfg(target_arch = "x86_64")]
pub(super) mod conv_avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod conv_direct;

use std::sync::LazyLock;

/// Floats that may be read (never used) past the end of a batch by the vector loads.
pub(super) const PADDING: usize = 8;

/// The cells of one sample that carry gradient, compacted.
#[derive(Default)]
pub(super) struct Active {
    /// Start of each cell's patch.
    pub offsets: Vec<u32>,
    /// The gradient in each cell.
    pub values: Vec<f32>,
    /// Cells per list.
    pub counts: Vec<u32>,
    /// Working memory of the compaction.
    pub codes: Vec<f32>,
    /// Working memory of the compaction.
    pub by_cell: Vec<f32>,
}

/// Environment variable that forbids the AVX2 + FMA kernels when it is `portable`, so that their
/// results can be compared on one machine.
const VARIABLE: &str = "LAPA_KERNELS";

/// Use of the AVX2 + FMA convolution kernels: where the processor has them and `LAPA_KERNELS` does
/// not forbid them.
pub(super) fn has_fast_convolution() -> bool {
    static FAST: LazyLock<bool> = LazyLock::new(|| {
        #[cfg(target_arch = "x86_64")]
        return is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("popcnt")
            && std::env::var_os(VARIABLE).is_none_or(|kernels| kernels != "portable");
        #[cfg(not(target_arch = "x86_64"))]
        false
    });
    *FAST
}

/// Use of AVX-512, twice as wide as AVX2: where the processor has it. Sums are the same, bit by bit.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

/// The kernels that networks use on this processor: `avx2+fma` or `portable`.
pub fn in_use() -> &'static str {
    if has_fast_convolution() { "avx2+fma" } else { "portable" }
}

/// Defines a function that is compiled twice, plainly and for AVX2, and picks the version that
/// suits the processor.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?)
     $(-> $output:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            fn plain($($argument: $type),*) $(-> $output)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn avx2($($argument: $type),*) $(-> $output)? {
                    plain($($argument),*)
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2.
                    return unsafe { avx2($($argument),*) };
                }
            }
            plain($($argument),*)
        }
    };
}
pub(super) use vectorized;

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

/// ‖x‖² to 136·2⁻²⁴ of it, whatever the size of its coordinates.
pub(super) fn norm_squared(x: &[f32]) -> f64 {
    x.chunks(4096).map(squares).sum()
}

/// ‖x‖² of at most 4096 coordinates: in f32 where that is accurate, since no square that matters
/// was subnormal and none overflowed, else in f64, which holds the square of every f32.
fn squares(x: &[f32]) -> f64 {
    let fast = squares_f32(x);
    if (1e-30..1e30).contains(&fast) {
        f64::from(fast)
    } else {
        x.iter().map(|&x| f64::from(x) * f64::from(x)).sum()
    }
}

vectorized! {
    /// y = tanh(x) = e/(e + 2), e = exp(2x) − 1, with exp(2x) − 1 = 2ⁿ·(exp(r) − 1) + 2ⁿ − 1 for
    /// |r| ≤ ln(2)/2 by Taylor's series: right to 3 units of the last place.
    pub(super) fn tanh(x: &[f32], y: &mut [f32]) {
        const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
        for (y, &x) in y.iter_mut().zip(x) {
            // Beyond it tanh is 1; not f32::clamp's order, so that NaN stays.
            let t = if x > 10.0 { 20.0 } else { 2.0 * x };
            let t = if x < -10.0 { -20.0 } else { t };
            // Rounded to a whole number, which then stands in the last bits.
            let shifted = t * std::f32::consts::LOG2_E + ROUND;
            let n = shifted - ROUND;
            let r = t - n * LN_2[0] - n * LN_2[1];
            let series = 1.0 / 720.0 + r * (1.0 / 5040.0);
            let series = 1.0 / 24.0 + r * (1.0 / 120.0 + r * series);
            let series = r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * series)));
            let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
            let e = power * series + (power - 1.0);
            *y = e / (e + 2.0);
        }
    }
}

/// Adding and subtracting it rounds to a whole number.
const ROUND: f32 = 12_582_912.0;

vectorized! {
    /// ‖x‖², in 32 interleaved partial sums.
    fn squares_f32(x: &[f32]) -> f32 {
        let mut lanes = [0f32; 32];
        let (blocks, rest) = x.as_chunks::<32>();
        for block in blocks {
            for lane in 0..32 {
                lanes[lane] += block[lane] * block[lane];
            }
        }
        for (sum, x) in lanes.iter_mut().zip(rest) {
            *sum += x * x;
        }
        lanes_sum(32, |lane| lanes[lane])
    }
}

vectorized! {
    /// sum += factor·x
    pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, x: &[f32]) {
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += factor * x;
        }
    }
}

vectorized! {
    /// sum += x, in f64
    pub(super) fn add_wide(sum: &mut [f64], x: &[f32]) {
        for (sum, &x) in sum.iter_mut().zip(x) {
            *sum += f64::from(x);
        }
    }
}

vectorized! {
    /// Bytes to floats in [0, 1].
    pub(super) fn scale_pixels(pixels: &[u8], values: &mut [f32]) {
        for (value, &pixel) in values.iter_mut().zip(pixels) {
            *value = f32::from(pixel) * (1.0 / 255.0);
        }
    }
}
