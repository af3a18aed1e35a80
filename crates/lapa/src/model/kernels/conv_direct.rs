//! Convolution of any kernel, stride and padding for AVX2 and FMA, one sample at a time, straight from
//! the image.
//!
//! The image is copied once with its padding, the columns of a stride apart from each other beside
//! each other. Then the cells under a tap of the kernel, for eight outputs of a row, are eight floats
//! in a row, and no matrix of columns is needed. Such eight outputs are a strip; a last one of a row
//! has fewer.

#![allow(clippy::needless_range_loop, reason = "register tiles read best by their indices")]

use std::arch::x86_64::*;

use crate::model::layer::Shape;
use crate::model::op::Windows;

/// Outputs of a strip.
const STRIP: usize = 8;
/// Output channels that are computed together; strips of them; and taps of a gradient of them. Their
/// sums are in registers.
const CHANNELS: usize = 4;
const STRIPS: usize = 2;
const TAPS: usize = 3;

/// Strips of a sum that is long beside its reduction.
const LONG: usize = 64;

/// Sizes of a convolution, and where things lie in its padded image.
pub(in crate::model) struct Direct {
    input: Shape,
    output: Shape,
    stride: usize,
    padding: usize,
    /// Floats of a phase: the padded columns i, i + stride, i + 2·stride, … of a row.
    phase: usize,
    /// Rows of the padded image.
    rows: usize,
    /// Offset of each tap: channel, kernel row, kernel column.
    taps: Vec<usize>,
    /// Offset of the cell of the first tap of each strip.
    strips: Vec<usize>,
}

/// Calls a tile with the numbers of its rows and columns as constants.
macro_rules! with_tile {
    ($n:expr, $t:expr, $self:ident.$function:ident($($argument:expr),* $(,)?)) => {
        match ($n, $t) {
            (4, 3) => $self.$function::<4, 3>($($argument),*),
            (4, 2) => $self.$function::<4, 2>($($argument),*),
            (4, 1) => $self.$function::<4, 1>($($argument),*),
            (3, 3) => $self.$function::<3, 3>($($argument),*),
            (3, 2) => $self.$function::<3, 2>($($argument),*),
            (3, 1) => $self.$function::<3, 1>($($argument),*),
            (2, 3) => $self.$function::<2, 3>($($argument),*),
            (2, 2) => $self.$function::<2, 2>($($argument),*),
            (2, 1) => $self.$function::<2, 1>($($argument),*),
            (1, 3) => $self.$function::<1, 3>($($argument),*),
            (1, 2) => $self.$function::<1, 2>($($argument),*),
            _ => $self.$function::<1, 1>($($argument),*),
        }
    };
}

impl Direct {
    pub fn new(windows: Windows, padding: usize) -> Self {
        let Windows { input, output, kernel, stride } = windows;
        let cols = output.cols.next_multiple_of(STRIP);
        let phase = cols + (kernel - 1) / stride;
        let rows = (output.rows - 1) * stride + kernel;
        let width = stride * phase;
        let tap = |tap: usize| {
            let (c, ky, kx) = (tap / (kernel * kernel), tap / kernel % kernel, tap % kernel);
            (c * rows + ky) * width + kx % stride * phase + kx / stride
        };
        let across = cols / STRIP;
        let strip = |strip| strip / across * stride * width + strip % across * STRIP;
        Self {
            input,
            output,
            stride,
            padding,
            phase,
            rows,
            taps: (0..input.channels * kernel * kernel).map(tap).collect(),
            strips: (0..output.rows * across).map(strip).collect(),
        }
    }

    /// Floats of a padded image.
    pub fn image_len(&self) -> usize {
        self.input.channels * self.rows * self.stride * self.phase
    }

    /// Floats of the outputs of a sample in strips.
    pub fn strips_len(&self) -> usize {
        self.output.channels * self.strips.len() * STRIP
    }

    /// Copies a sample into `image`, whose padding is zero already.
    pub fn pad(&self, x: &[f32], image: &mut [f32]) {
        let (stride, width) = (self.stride, self.stride * self.phase);
        let planes = x.chunks_exact(self.input.area());
        for (x, image) in planes.zip(image.chunks_exact_mut(self.rows * width)) {
            let rows = image.chunks_exact_mut(width).skip(self.padding);
            for (x, row) in x.chunks_exact(self.input.cols).zip(rows) {
                for (phase, row) in row.chunks_exact_mut(self.phase).enumerate() {
                    // The first column of this phase that is no padding.
                    let first = (phase + stride * self.padding - self.padding) % stride;
                    let row = row.get_mut((first + self.padding) / stride..).unwrap_or_default();
                    let x = x.get(first..).unwrap_or_default();
                    if stride == 1 {
                        let len = row.len().min(x.len());
                        row[..len].copy_from_slice(&x[..len]);
                    } else {
                        row.iter_mut().zip(x.iter().step_by(stride)).for_each(|(row, x)| *row = *x);
                    }
                }
            }
        }
    }

    /// The outputs of a sample in strips, those past the end of a row zero: `dy` itself where rows are
    /// whole strips, else a copy in `copy`, which is zero there already.
    pub fn in_strips<'a>(&self, dy: &'a [f32], copy: &'a mut [f32]) -> &'a [f32] {
        let cols = self.output.cols;
        if cols.is_multiple_of(STRIP) {
            return dy;
        }
        let rows = copy.chunks_exact_mut(cols.next_multiple_of(STRIP));
        for (row, dy) in rows.zip(dy.chunks_exact(cols)) {
            row[..cols].copy_from_slice(dy);
        }
        copy
    }

    /// Weights in the order in which [`Direct::forward`] reads them, blocks of output channels side by
    /// side; `weight(o, tap)` is one of them.
    pub fn pack(&self, packed: &mut [f32], weight: impl Fn(usize, usize) -> f32) {
        let mut packed = packed.iter_mut();
        for first in (0..self.output.channels).step_by(CHANNELS) {
            let block = first..self.output.channels.min(first + CHANNELS);
            for tap in 0..self.taps.len() {
                for (o, packed) in block.clone().zip(&mut packed) {
                    *packed = weight(o, tap);
                }
            }
        }
    }

    /// y = W∗x + b of a padded sample; `bias` may be empty, for b = 0.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn forward(&self, packed: &[f32], bias: &[f32], image: &[f32], y: &mut [f32]) {
        let channels = self.output.channels;
        assert!(packed.len() >= channels * self.taps.len() && image.len() >= self.image_len());
        assert!(y.len() >= self.output.len() && (bias.is_empty() || bias.len() >= channels));
        for first in (0..channels).step_by(CHANNELS) {
            let n = CHANNELS.min(channels - first);
            let packed = &packed[first * self.taps.len()..];
            let bias = bias.get(first..).unwrap_or_default();
            let y = &mut y[first * self.output.area()..];
            for strip in (0..self.strips.len()).step_by(STRIPS) {
                let t = STRIPS.min(self.strips.len() - strip);
                // SAFETY: the assertions above; n channels and t strips are left.
                unsafe { with_tile!(n, t, self.forward_tile(packed, bias, image, strip, y)) };
            }
        }
    }

    /// `N` channels and `T` strips of [`Direct::forward`].
    ///
    /// # Safety
    /// Slices as asserted there, from the first of at least `N` channels on; `T` strips from `strip`
    /// on. A strip and a tap reach the last float of a phase at most.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn forward_tile<const N: usize, const T: usize>(
        &self,
        packed: &[f32],
        bias: &[f32],
        image: &[f32],
        strip: usize,
        y: &mut [f32],
    ) {
        let mut sums = [[_mm256_setzero_ps(); N]; T];
        // Counts known at compile time keep the sums in registers, in the loops below too.
        for n in 0..N {
            for t in 0..T {
                sums[t][n] = _mm256_set1_ps(bias.get(n).copied().unwrap_or_default());
            }
        }
        // SAFETY: see the function's contract.
        unsafe {
            let mut starts = [image.as_ptr(); T];
            for t in 0..T {
                starts[t] = image.as_ptr().add(*self.strips.get_unchecked(strip + t));
            }
            let mut weight = packed.as_ptr();
            for &tap in &self.taps {
                let mut x = [_mm256_setzero_ps(); T];
                for t in 0..T {
                    x[t] = _mm256_loadu_ps(starts[t].add(tap));
                }
                for n in 0..N {
                    let w = _mm256_broadcast_ss(&*weight.add(n));
                    for t in 0..T {
                        sums[t][n] = _mm256_fmadd_ps(x[t], w, sums[t][n]);
                    }
                }
                weight = weight.add(N);
            }
        }
        let mut outputs = [[[0f32; STRIP]; T]; N];
        for n in 0..N {
            for t in 0..T {
                // SAFETY: the array holds a vector.
                unsafe { _mm256_storeu_ps(outputs[n][t].as_mut_ptr(), sums[t][n]) };
            }
        }
        self.store(strip, &outputs, y);
    }

    /// Writes strips of some channels from `strip` on. Plain loops: iterators are not compiled into
    /// functions with processor features.
    #[inline(always)]
    fn store<const T: usize>(&self, strip: usize, outputs: &[[[f32; STRIP]; T]], y: &mut [f32]) {
        let (cols, area) = (self.output.cols, self.output.area());
        let across = cols.div_ceil(STRIP);
        for t in 0..T {
            let (row, col) = ((strip + t) / across, (strip + t) % across * STRIP);
            let len = STRIP.min(cols - col);
            for n in 0..outputs.len() {
                let y = &mut y[n * area + row * cols + col..][..len];
                if len == STRIP {
                    y.copy_from_slice(&outputs[n][t]);
                } else {
                    y.copy_from_slice(&outputs[n][t][..len]);
                }
            }
        }
    }

    /// Samples whose gradients are summed together: enough for sums longer than their reduction.
    pub fn samples_together(&self) -> usize {
        (LONG / self.strips.len()).max(1)
    }

    /// gradient = ∂loss/∂W of `n` padded samples, or that is added to it, from ∂loss/∂y in strips.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn gradient<const ADD: bool>(
        &self,
        n: usize,
        images: &[f32],
        dy: &[f32],
        gradient: &mut [f32],
    ) {
        let (channels, taps) = (self.output.channels, self.taps.len());
        assert!(images.len() >= n * self.image_len() && dy.len() >= n * self.strips_len());
        assert!(gradient.len() >= channels * taps);
        for first in (0..channels).step_by(CHANNELS) {
            let block = CHANNELS.min(channels - first);
            let dy = &dy[first * self.strips.len() * STRIP..];
            for tap in (0..taps).step_by(TAPS) {
                let t = TAPS.min(taps - tap);
                let mut sums = [[0.0; CHANNELS]; TAPS];
                // SAFETY: the assertions above; as many channels and taps are left.
                unsafe { with_tile!(block, t, self.gradient_tile(n, images, dy, tap, &mut sums)) };
                for o in 0..block {
                    for t in 0..t {
                        let gradient = &mut gradient[(first + o) * taps + tap + t];
                        *gradient = if ADD { *gradient + sums[t][o] } else { sums[t][o] };
                    }
                }
            }
        }
    }

    /// `N` channels and `T` taps of [`Direct::gradient`], tap by tap.
    ///
    /// # Safety
    /// Slices as asserted there, from the first of at least `N` channels on; `T` taps from `tap` on.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn gradient_tile<const N: usize, const T: usize>(
        &self,
        n: usize,
        images: &[f32],
        dy: &[f32],
        tap: usize,
        totals: &mut [[f32; CHANNELS]; TAPS],
    ) {
        let mut sums = [[_mm256_setzero_ps(); CHANNELS]; T];
        let plane = self.strips.len() * STRIP;
        for sample in 0..n {
            // SAFETY: see the function's contract.
            unsafe {
                let image = images.as_ptr().add(sample * self.image_len());
                let mut place = dy.as_ptr().add(sample * self.strips_len());
                let mut starts = [image; T];
                for t in 0..T {
                    starts[t] = image.add(*self.taps.get_unchecked(tap + t));
                }
                for &strip in &self.strips {
                    let mut x = [_mm256_setzero_ps(); T];
                    for t in 0..T {
                        x[t] = _mm256_loadu_ps(starts[t].add(strip));
                    }
                    for o in 0..N {
                        let dy = _mm256_loadu_ps(place.add(o * plane));
                        for t in 0..T {
                            sums[t][o] = _mm256_fmadd_ps(x[t], dy, sums[t][o]);
                        }
                    }
                    place = place.add(STRIP);
                }
            }
        }
        for t in 0..T {
            let [a, b, c, d] = sums[t];
            let four = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let four = _mm_add_ps(_mm256_castps256_ps128(four), _mm256_extractf128_ps::<1>(four));
            // SAFETY: the array holds four floats.
            unsafe { _mm_storeu_ps(totals[t].as_mut_ptr(), four) };
        }
    }
}
