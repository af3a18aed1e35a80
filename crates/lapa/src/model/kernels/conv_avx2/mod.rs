//! Convolution + 2×2 max-pool + relu for AVX2 and FMA, one sample at a time.
//!
//! `forward`: 8 output columns per vector on planar data, 5 output channels × 2 rows in registers
//! (with AVX-512 10 channels, both rows in one vector), no im2col; pooling and relu happen on the two
//! rows before they are stored.
//! `gradient` and `input_gradient`: after pooling only one conv output in four carries gradient,
//! fewer after relu. The cells that do are compacted first, and only they are visited.
//!
//! Shapes: any number of channels, any image, kernel size K known at compile time.

mod forward;
mod gradient;
mod input_gradient;

use std::arch::x86_64::*;

pub(in crate::model) use forward::forward;
pub(in crate::model) use gradient::{add_gradient, compact_by_channel, sample_gradient};
pub(in crate::model) use input_gradient::{compact_by_cell, input_gradient};

use crate::model::layer::Shape;

/// Output channels computed together: 5 channels × 2 rows leave registers for inputs and weights.
const BLOCK: usize = 5;

/// Shapes of one fused op and the layouts derived from them.
#[derive(Clone, Copy)]
pub(in crate::model) struct Geometry {
    /// Input planes.
    pub input: Shape,
    /// Pooled output planes.
    pub pooled: Shape,
    /// Kernel height and width.
    pub kernel: usize,
    /// Use of AVX-512 in the forward pass, which gives the same bits.
    pub wide: bool,
}

impl Geometry {
    /// Floats of a kernel row over all input channels, channels innermost: one contiguous run of
    /// a channels-last image.
    fn run(&self) -> usize {
        self.kernel * self.input.channels
    }

    /// [`Self::run`] rounded up to whole vectors: the stride of packed gradients.
    fn run_padded(&self) -> usize {
        self.run().next_multiple_of(8)
    }

    /// Floats of an input row that a pooled cell can reach, rounded up to whole vectors.
    fn reach_padded(&self) -> usize {
        (self.run() + self.input.channels).next_multiple_of(8)
    }

    /// Stride of a kernel row in the weights for the input gradient: whole cache lines.
    fn spread(&self) -> usize {
        self.reach_padded().next_multiple_of(16)
    }

    fn taps(&self) -> usize {
        self.kernel * self.run()
    }

    /// True if the kernels' 32-bit offsets, two bits of which are marks, reach every value.
    pub fn fits_offsets(&self) -> bool {
        self.spread_len().max(self.input.len()) < 1 << 30
    }

    /// Length of [`Self::pack_forward`]'s output.
    pub fn forward_len(&self) -> usize {
        self.pooled.channels * self.taps()
    }

    /// Length of [`Self::pack_spread`]'s output, with room to align it.
    pub fn spread_len(&self) -> usize {
        2 * self.pooled.channels * self.kernel * self.spread() + 16
    }

    /// Length of a packed gradient: padded runs, then the biases.
    pub fn gradient_len(&self) -> usize {
        self.pooled.channels * (self.kernel * self.run_padded() + 1)
    }

    /// Length of a channels-last image with room for whole-vector reads and writes.
    pub fn image_len(&self) -> usize {
        self.input.len() + super::PADDING
    }

    /// Calls `f(plain index, co, ci, ky, kx)` for every weight, in order.
    fn for_each_weight(&self, mut f: impl FnMut(usize, usize, usize, usize, usize)) {
        let mut plain = 0;
        for co in 0..self.pooled.channels {
            for ci in 0..self.input.channels {
                for ky in 0..self.kernel {
                    for kx in 0..self.kernel {
                        f(plain, co, ci, ky, kx);
                        plain += 1;
                    }
                }
            }
        }
    }

    /// Weights for the forward pass: blocks of [`BLOCK`] output channels, the block innermost.
    pub fn pack_forward(&self, weights: &[f32], packed: &mut [f32]) {
        let taps = self.taps();
        for (co, weights) in weights.chunks_exact(taps).enumerate() {
            let block = co / BLOCK * BLOCK;
            let width = BLOCK.min(self.pooled.channels - block);
            let own = packed[block * taps + co - block..].iter_mut().step_by(width);
            own.zip(weights).for_each(|(packed, &weight)| *packed = weight);
        }
    }

    /// Weights for the input gradient: channels innermost, kernel rows [`Self::spread`] apart,
    /// zeros behind. Twice: as they are, for cells that won in the left column of their window,
    /// and one pixel further, for those that won in the right one. Returns the aligned part.
    pub fn pack_spread<'a>(&self, weights: &[f32], packed: &'a mut [f32]) -> &'a [f32] {
        packed.fill(0.0);
        let lost = packed.as_ptr().align_offset(64).min(16);
        let packed = &mut packed[lost..];
        let channels = self.input.channels;
        self.for_each_weight(|plain, co, ci, ky, kx| {
            let row = (2 * co * self.kernel + ky) * self.spread();
            let right = row + self.kernel * self.spread() + channels;
            packed[row + kx * channels + ci] = weights[plain];
            packed[right + kx * channels + ci] = weights[plain];
        });
        packed
    }

    /// The plain gradient (weights, then biases) of a packed one.
    pub fn unpack_gradient<T: Copy>(&self, packed: &[T], gradient: &mut [T]) {
        let (weights, bias) = gradient.split_at_mut(self.pooled.channels * self.taps());
        self.for_each_weight(|plain, co, ci, ky, kx| {
            let row = (co * self.kernel + ky) * self.run_padded();
            weights[plain] = packed[row + kx * self.input.channels + ci];
        });
        let biases = self.pooled.channels * self.kernel * self.run_padded();
        bias.copy_from_slice(&packed[biases..][..self.pooled.channels]);
    }
}

/// Asks for `values` to be in the cache soon. The transposes read and write many short runs at
/// once, which the processor does not foresee by itself.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn prefetch(values: &[f32]) {
    for line in values.chunks(16) {
        _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
    }
}

/// Transposes a `rows` × `cols` matrix: planar to channels-last (rows are the channels), and back
/// (columns are). Blocks of 4×4 in registers; the last ones overlap those before.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn transpose(rows: usize, cols: usize, from: &[f32], to: &mut [f32]) {
    assert!(from.len() >= rows * cols && to.len() >= rows * cols);
    if rows < 4 || cols < 4 {
        for r in 0..rows {
            for c in 0..cols {
                to[c * rows + r] = from[r * cols + c];
            }
        }
        return;
    }
    for c in (0..cols).step_by(4) {
        let c = c.min(cols - 4);
        for r in (0..rows).step_by(4) {
            let r = r.min(rows - 4);
            // SAFETY: r + 3 < rows and c + 3 < cols, and both slices hold rows × cols values.
            unsafe {
                let from = from.as_ptr().add(r * cols + c);
                let to = to.as_mut_ptr().add(c * rows + r);
                let mut a = _mm_loadu_ps(from);
                let mut b = _mm_loadu_ps(from.add(cols));
                let mut c = _mm_loadu_ps(from.add(2 * cols));
                let mut d = _mm_loadu_ps(from.add(3 * cols));
                _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
                _mm_storeu_ps(to, a);
                _mm_storeu_ps(to.add(rows), b);
                _mm_storeu_ps(to.add(2 * rows), c);
                _mm_storeu_ps(to.add(3 * rows), d);
            }
        }
    }
}
