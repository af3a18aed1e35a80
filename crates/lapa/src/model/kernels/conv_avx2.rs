//! Convolution + 2×2 max-pool + relu for AVX2 and FMA, one sample at a time.
//!
//! Forward: 8 output columns per vector on planar data, 5 output channels × 2 rows in registers,
//! no im2col; pooling and relu happen on the two rows before they are stored.
//! Backward: after pooling only one conv output in four carries gradient, fewer after relu. The
//! cells that do are compacted first, and only they are visited.
//!
//! Shapes: any number of channels, any image, kernel size K known at compile time.

use std::arch::x86_64::*;

use super::Active;
use crate::model::layer::Shape;

/// Output channels computed together: 5 channels × 2 rows leave registers for inputs and weights.
const BLOCK: usize = 5;

/// Shapes of one fused stage and the layouts derived from them.
#[derive(Clone, Copy)]
pub(in crate::model) struct Geometry {
    /// Input planes.
    pub input: Shape,
    /// Pooled output planes.
    pub pooled: Shape,
    /// Kernel height and width.
    pub kernel: usize,
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

    /// Stride of a kernel row in the weights for the input gradient: one pixel of zeros in front
    /// (for cells that won in the right column), zeros behind.
    fn spread(&self) -> usize {
        self.input.channels + self.reach_padded()
    }

    fn taps(&self) -> usize {
        self.kernel * self.run()
    }

    /// Length of [`pack_forward`]'s output.
    pub fn forward_len(&self) -> usize {
        self.pooled.channels * self.taps()
    }

    /// Length of [`pack_spread`]'s output.
    pub fn spread_len(&self) -> usize {
        self.pooled.channels * self.kernel * self.spread()
    }

    /// Length of a packed gradient: padded runs, then the biases.
    pub fn gradient_len(&self) -> usize {
        self.pooled.channels * (self.kernel * self.run_padded() + 1)
    }

    /// Length of a channels-last image with room for whole-vector reads and writes.
    pub fn image_len(&self) -> usize {
        self.input.len() + super::PADDING
    }

    fn weight(&self, co: usize, ci: usize, ky: usize, kx: usize) -> usize {
        ((co * self.input.channels + ci) * self.kernel + ky) * self.kernel + kx
    }

    /// Calls `f(plain index, co, ci, ky, kx)` for every weight.
    fn for_each_weight(&self, mut f: impl FnMut(usize, usize, usize, usize, usize)) {
        for co in 0..self.pooled.channels {
            for ci in 0..self.input.channels {
                for ky in 0..self.kernel {
                    for kx in 0..self.kernel {
                        f(self.weight(co, ci, ky, kx), co, ci, ky, kx);
                    }
                }
            }
        }
    }

    /// Weights for the forward pass: blocks of [`BLOCK`] output channels, the block innermost.
    pub fn pack_forward(&self, weights: &[f32], packed: &mut [f32]) {
        let taps = self.taps();
        self.for_each_weight(|plain, co, ci, ky, kx| {
            let block = co / BLOCK * BLOCK;
            let width = BLOCK.min(self.pooled.channels - block);
            let tap = (ci * self.kernel + ky) * self.kernel + kx;
            packed[block * taps + tap * width + (co - block)] = weights[plain];
        });
    }

    /// Weights for the input gradient: channels innermost, kernel rows [`Self::spread`] apart.
    pub fn pack_spread(&self, weights: &[f32], packed: &mut [f32]) {
        packed.fill(0.0);
        let channels = self.input.channels;
        self.for_each_weight(|plain, co, ci, ky, kx| {
            let row = (co * self.kernel + ky) * self.spread();
            packed[row + channels + kx * channels + ci] = weights[plain];
        });
    }

    /// The plain gradient (weights, then biases) of a packed one.
    pub fn unpack_gradient(&self, packed: &[f32], gradient: &mut [f32]) {
        let (weights, bias) = gradient.split_at_mut(self.pooled.channels * self.taps());
        self.for_each_weight(|plain, co, ci, ky, kx| {
            let row = (co * self.kernel + ky) * self.run_padded();
            weights[plain] = packed[row + kx * self.input.channels + ci];
        });
        let biases = self.pooled.channels * self.kernel * self.run_padded();
        bias.copy_from_slice(&packed[biases..][..self.pooled.channels]);
    }
}

/// Transposes a `rows` × `cols` matrix: planar to channels-last (rows are the channels), and back
/// (columns are). Blocks of 4×4 in registers, edges one by one.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn transpose(rows: usize, cols: usize, from: &[f32], to: &mut [f32]) {
    assert!(from.len() >= rows * cols && to.len() >= rows * cols);
    let (whole_rows, whole_cols) = (rows / 4 * 4, cols / 4 * 4);
    for c in (0..whole_cols).step_by(4) {
        for r in (0..whole_rows).step_by(4) {
            // SAFETY: r + 3 < rows and c + 3 < cols, and both slices hold rows × cols values.
            unsafe {
                let from = from.as_ptr().add(r * cols + c);
                let to = to.as_mut_ptr().add(c * rows + r);
                let [mut a, mut b, mut c, mut d] =
                    std::array::from_fn(|row| _mm_loadu_ps(from.add(row * cols)));
                _MM_TRANSPOSE4_PS(&mut a, &mut b, &mut c, &mut d);
                for (col, values) in [a, b, c, d].into_iter().enumerate() {
                    _mm_storeu_ps(to.add(col * rows), values);
                }
            }
        }
        for r in whole_rows..rows {
            for c in c..c + 4 {
                to[c * rows + r] = from[r * cols + c];
            }
        }
    }
    for c in whole_cols..cols {
        for r in 0..rows {
            to[c * rows + r] = from[r * cols + c];
        }
    }
}

/// y = relu(pool(conv(x) + bias)); `offsets` says which cell of each input plane the winner's
/// patch begins at. `x` must be followed by [`super::PADDING`] readable floats.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn forward<const K: usize>(
    g: &Geometry,
    packed: &[f32],
    bias: &[f32],
    x: &[f32],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    assert!(g.kernel == K && x.len() >= g.image_len());
    assert!(y.len() >= g.pooled.len() && offsets.len() >= g.pooled.len());
    assert!(packed.len() >= g.forward_len() && bias.len() >= g.pooled.channels);
    let cells = g.pooled.area();
    for first in (0..g.pooled.channels).step_by(BLOCK) {
        let weights = &packed[first * g.taps()..];
        let bias = &bias[first..];
        let y = &mut y[first * cells..];
        let offsets = &mut offsets[first * cells..];
        // SAFETY: the assertions above cover every index the block computes; see there.
        unsafe {
            match g.pooled.channels - first {
                1 => forward_block::<K, 1>(g, weights, bias, x, y, offsets),
                2 => forward_block::<K, 2>(g, weights, bias, x, y, offsets),
                3 => forward_block::<K, 3>(g, weights, bias, x, y, offsets),
                4 => forward_block::<K, 4>(g, weights, bias, x, y, offsets),
                _ => forward_block::<K, BLOCK>(g, weights, bias, x, y, offsets),
            }
        }
    }
}

/// `N` output channels of [`forward`].
///
/// # Safety
/// Slices as asserted there. Loads reach row 2·pooled.rows + K − 2 < input.rows and column
/// 2·pooled.cols rounded up to 8, + K − 2 ≤ input.cols + 6: past the image only into the padding.
#[target_feature(enable = "avx2,fma")]
unsafe fn forward_block<const K: usize, const N: usize>(
    g: &Geometry,
    weights: &[f32],
    bias: &[f32],
    x: &[f32],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    let (width, plane) = (g.input.cols, g.input.area());
    for row in 0..g.pooled.rows {
        for col in (0..g.pooled.cols).step_by(4) {
            // SAFETY: see the function's contract.
            let (top, bottom) = unsafe {
                let mut top = [_mm256_setzero_ps(); N];
                for (top, bias) in top.iter_mut().zip(bias) {
                    *top = _mm256_set1_ps(*bias);
                }
                let mut bottom = top;
                let mut weight = weights.as_ptr();
                for channel in 0..g.input.channels {
                    let first = x.as_ptr().add(channel * plane + 2 * row * width + 2 * col);
                    for ky in 0..K {
                        for kx in 0..K {
                            let above = _mm256_loadu_ps(first.add(ky * width + kx));
                            let below = _mm256_loadu_ps(first.add((ky + 1) * width + kx));
                            for n in 0..N {
                                let w = _mm256_broadcast_ss(&*weight.add(n));
                                top[n] = _mm256_fmadd_ps(above, w, top[n]);
                                bottom[n] = _mm256_fmadd_ps(below, w, bottom[n]);
                            }
                            weight = weight.add(N);
                        }
                    }
                }
                (top, bottom)
            };
            let valid = (g.pooled.cols - col).min(4);
            let patch = (2 * row * width + 2 * col) as i32;
            for n in 0..N {
                let (values, winners) = pool_relu(top[n], bottom[n], patch, width as i32);
                let out = n * g.pooled.area() + row * g.pooled.cols + col;
                let (y, offsets) = (&mut y[out..][..valid], &mut offsets[out..][..valid]);
                if valid == 4 {
                    // SAFETY: four floats and four u16 fit the slices just taken.
                    unsafe {
                        _mm_storeu_ps(y.as_mut_ptr(), values);
                        _mm_storel_epi64(offsets.as_mut_ptr().cast(), winners);
                    }
                } else {
                    let (mut all, mut all_offsets) = ([0f32; 4], [0u16; 8]);
                    // SAFETY: the arrays hold one whole vector each.
                    unsafe {
                        _mm_storeu_ps(all.as_mut_ptr(), values);
                        _mm_storeu_si128(all_offsets.as_mut_ptr().cast(), winners);
                    }
                    y.copy_from_slice(&all[..valid]);
                    offsets.copy_from_slice(&all_offsets[..valid]);
                }
            }
        }
    }
}

/// Pools two rows of eight to four values, applies relu, and gives each winner's position in the
/// plane as u16. Ties go to the first cell in row-major order.
#[target_feature(enable = "avx2,fma")]
fn pool_relu(top: __m256, bottom: __m256, patch: i32, width: i32) -> (__m128, __m128i) {
    // Per 128-bit half: [top 01, top 23, bottom 01, bottom 23].
    let even = _mm256_shuffle_ps::<0x88>(top, bottom);
    let odd = _mm256_shuffle_ps::<0xDD>(top, bottom);
    let odd_wins = _mm256_cmp_ps::<_CMP_GT_OQ>(odd, even);
    let best = _mm256_blendv_ps(even, odd, odd_wins);
    let column = _mm256_and_si256(_mm256_castps_si256(odd_wins), _mm256_set1_epi32(1));
    let position =
        _mm256_add_epi32(column, _mm256_setr_epi32(0, 0, width, width, 0, 0, width, width));
    // Swap the halves of each half, and compare bottom with top.
    let other = _mm256_permute_ps::<0x4E>(best);
    let other_position = _mm256_shuffle_epi32::<0x4E>(position);
    let bottom_wins = _mm256_cmp_ps::<_CMP_GT_OQ>(other, best);
    let best = _mm256_blendv_ps(best, other, bottom_wins);
    let position = _mm256_blendv_epi8(position, other_position, _mm256_castps_si256(bottom_wins));
    // Lanes 0, 1, 4, 5 hold the four results.
    let gather = _mm256_setr_epi32(0, 1, 4, 5, 0, 1, 4, 5);
    let best = _mm256_castps256_ps128(_mm256_permutevar8x32_ps(best, gather));
    let position = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(position, gather));
    let first = _mm_add_epi32(_mm_set1_epi32(patch), _mm_setr_epi32(0, 2, 4, 6));
    let position = _mm_add_epi32(position, first);
    // max(0, x) with x second keeps NaN.
    (_mm_max_ps(_mm_setzero_ps(), best), _mm_packus_epi32(position, position))
}

/// For each mask of eight lanes, the set lanes in order, a byte each.
static SET_LANES: [u64; 256] = {
    let mut table = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut found) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask] |= (lane as u64) << (8 * found);
                found += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// Lists the cells that carry gradient, channel by channel: their offset and value.
#[target_feature(enable = "avx2,fma,popcnt")]
pub(in crate::model) fn compact_by_channel(
    g: &Geometry,
    y: &[f32],
    dy: &[f32],
    offsets: &[u16],
    active: &mut Active,
) {
    let (cells, all) = (g.pooled.area(), g.pooled.len());
    assert!(y.len() >= all && dy.len() >= all && offsets.len() >= all);
    let Active { offsets: found, values, counts } = active;
    counts.resize(g.pooled.channels, 0);
    // Whole vectors are stored, so a list may spill into the next one before that is written.
    found.resize(all + 8, 0);
    values.resize(all + 8, 0.0);
    let stride = g.input.channels as u32;
    for (channel, counted) in counts.iter_mut().enumerate() {
        let (first, end) = (channel * cells, (channel + 1) * cells);
        let (mut cell, mut count) = (first, first);
        while cell + 8 <= end {
            // SAFETY: cell + 8 ≤ all for the loads, and count ≤ cell for the stores.
            unsafe {
                let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(
                    _mm256_loadu_ps(y.as_ptr().add(cell)),
                    _mm256_setzero_ps(),
                );
                let mask = _mm256_movemask_ps(positive) as usize;
                let lanes = _mm_cvtsi64_si128(SET_LANES[mask] as i64);
                let lanes = _mm256_cvtepu8_epi32(lanes);
                let offset = _mm_loadu_si128(offsets.as_ptr().add(cell).cast());
                let offset = _mm256_mullo_epi32(
                    _mm256_cvtepu16_epi32(offset),
                    _mm256_set1_epi32(stride as i32),
                );
                let offset = _mm256_permutevar8x32_epi32(offset, lanes);
                let value = _mm256_loadu_ps(dy.as_ptr().add(cell));
                let value = _mm256_permutevar8x32_ps(value, lanes);
                _mm256_storeu_si256(found.as_mut_ptr().add(count).cast(), offset);
                _mm256_storeu_ps(values.as_mut_ptr().add(count), value);
                count += mask.count_ones() as usize;
            }
            cell += 8;
        }
        for cell in cell..end {
            // Written always, kept only if active: no branch to mispredict.
            found[count] = u32::from(offsets[cell]) * stride;
            values[count] = dy[cell];
            count += usize::from(y[cell] > 0.0);
        }
        *counted = (count - first) as u32;
    }
}

/// Adds the gradient of one sample to a packed gradient: each active cell adds its value times
/// the input patch under it. `image` is the input, channels last, with padding.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn add_gradient<const K: usize>(
    g: &Geometry,
    image: &[f32],
    active: &Active,
    gradient: &mut [f32],
) {
    assert!(g.kernel == K && image.len() >= g.image_len() && gradient.len() >= g.gradient_len());
    let cells = g.pooled.area();
    let (stride, vectors) = (g.run_padded(), g.run_padded() / 8);
    let row = g.input.cols * g.input.channels;
    let (weights, bias) = gradient.split_at_mut(g.pooled.channels * K * stride);
    for channel in 0..g.pooled.channels {
        let all = channel * cells..channel * cells + active.counts[channel] as usize;
        let (offsets, values) = (&active.offsets[all.clone()], &active.values[all]);
        let sums = &mut weights[channel * K * stride..][..K * stride];
        bias[channel] += super::lanes_sum(values.len(), |j| values[j]);
        // SAFETY: an offset is a cell of the conv output, so the patch from it lies in the image;
        // whole vectors read at most 7 floats further, which the padding covers.
        unsafe {
            if vectors == 1 {
                add_small_patches::<K>(image, row, offsets, values, sums);
                continue;
            }
            for ky in (0..K).step_by(2) {
                for first in (0..vectors).step_by(7) {
                    let image = &image[ky * row + 8 * first..];
                    let sums = &mut sums[ky * stride + 8 * first..];
                    let cells = (offsets, values);
                    match (vectors - first, ky + 1 < K) {
                        (1, true) => add_runs::<1, 2>(image, row, cells, sums, stride),
                        (2, true) => add_runs::<2, 2>(image, row, cells, sums, stride),
                        (3, true) => add_runs::<3, 2>(image, row, cells, sums, stride),
                        (4, true) => add_runs::<4, 2>(image, row, cells, sums, stride),
                        (5, true) => add_runs::<5, 2>(image, row, cells, sums, stride),
                        (6, true) => add_runs::<6, 2>(image, row, cells, sums, stride),
                        (_, true) => add_runs::<7, 2>(image, row, cells, sums, stride),
                        (1, false) => add_runs::<1, 1>(image, row, cells, sums, stride),
                        (2, false) => add_runs::<2, 1>(image, row, cells, sums, stride),
                        (3, false) => add_runs::<3, 1>(image, row, cells, sums, stride),
                        (4, false) => add_runs::<4, 1>(image, row, cells, sums, stride),
                        (5, false) => add_runs::<5, 1>(image, row, cells, sums, stride),
                        (6, false) => add_runs::<6, 1>(image, row, cells, sums, stride),
                        (_, false) => add_runs::<7, 1>(image, row, cells, sums, stride),
                    }
                }
            }
        }
    }
}

/// sums += Σ value·image[offset..offset + 8·V], for R image rows `row` floats apart, whose sums
/// are `stride` floats apart. R·V ≤ 14 accumulators stay in registers.
///
/// # Safety
/// Every run lies in `image` as allocated, padding included, and `sums` holds the R runs.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_runs<const V: usize, const R: usize>(
    image: &[f32],
    row: usize,
    (offsets, values): (&[u32], &[f32]),
    sums: &mut [f32],
    stride: usize,
) {
    // SAFETY: the function's contract.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); V]; R];
        for r in 0..R {
            for v in 0..V {
                acc[r][v] = _mm256_loadu_ps(sums.as_ptr().add(r * stride + 8 * v));
            }
        }
        for (&offset, value) in offsets.iter().zip(values) {
            let value = _mm256_broadcast_ss(value);
            let run = image.as_ptr().add(offset as usize);
            for r in 0..R {
                for v in 0..V {
                    let pixels = _mm256_loadu_ps(run.add(r * row + 8 * v));
                    acc[r][v] = _mm256_fmadd_ps(value, pixels, acc[r][v]);
                }
            }
        }
        for r in 0..R {
            for v in 0..V {
                _mm256_storeu_ps(sums.as_mut_ptr().add(r * stride + 8 * v), acc[r][v]);
            }
        }
    }
}

/// All K rows at once where a row fits one vector; two cells at a time hide the latency.
///
/// # Safety
/// As [`add_runs`], for K rows `row` floats apart.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_small_patches<const K: usize>(
    image: &[f32],
    row: usize,
    offsets: &[u32],
    values: &[f32],
    sums: &mut [f32],
) {
    // SAFETY: the function's contract.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); K]; 2];
        let mut pairs = offsets.chunks_exact(2).zip(values.chunks_exact(2));
        for (offset, value) in &mut pairs {
            for half in 0..2 {
                let value = _mm256_broadcast_ss(&value[half]);
                let patch = image.as_ptr().add(offset[half] as usize);
                for ky in 0..K {
                    let run = _mm256_loadu_ps(patch.add(ky * row));
                    acc[half][ky] = _mm256_fmadd_ps(value, run, acc[half][ky]);
                }
            }
        }
        if offsets.len() % 2 == 1 {
            let last = offsets.len() - 1;
            let value = _mm256_broadcast_ss(&values[last]);
            let patch = image.as_ptr().add(offsets[last] as usize);
            for ky in 0..K {
                let run = _mm256_loadu_ps(patch.add(ky * row));
                acc[0][ky] = _mm256_fmadd_ps(value, run, acc[0][ky]);
            }
        }
        for ky in 0..K {
            let sum = sums.as_mut_ptr().add(8 * ky);
            let both = _mm256_add_ps(acc[0][ky], acc[1][ky]);
            _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), both));
        }
    }
}

/// Zeroes the lanes between the runs of a packed gradient, which hold neighbouring pixels'
/// products, so that its norm is that of the gradient.
pub(in crate::model) fn clear_padding(g: &Geometry, gradient: &mut [f32]) {
    let (run, stride) = (g.run(), g.run_padded());
    if run < stride {
        let weights = g.pooled.channels * g.kernel * stride;
        for row in gradient[..weights].chunks_exact_mut(stride) {
            row[run..].fill(0.0);
        }
    }
}

/// Lists the cells that carry gradient, cell by cell, those that won in the top row first and
/// those of the bottom row after: where their weights begin, and the value. `starts` are the
/// input positions of the windows.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn compact_by_cell(
    g: &Geometry,
    starts: &[u16],
    y: &[f32],
    dy: &[f32],
    offsets: &[u16],
    active: &mut Active,
) {
    let (cells, channels) = (g.pooled.area(), g.pooled.channels);
    let Active { offsets: found, values, counts } = active;
    counts.clear();
    counts.resize(2 * cells, 0);
    found.resize(2 * g.pooled.len(), 0);
    values.resize(2 * g.pooled.len(), 0.0);
    let (width, shift) = (g.input.cols as u32, g.input.channels as u32);
    for channel in 0..channels {
        let weights = (channel * g.kernel * g.spread()) as u32;
        let all = channel * cells..(channel + 1) * cells;
        let (y, dy, offsets) = (&y[all.clone()], &dy[all.clone()], &offsets[all]);
        for first in (0..cells).step_by(8) {
            let mut mask = 0;
            if let Some(y) = y.get(first..first + 8) {
                // SAFETY: the slice holds eight floats.
                let y = unsafe { _mm256_loadu_ps(y.as_ptr()) };
                let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(y, _mm256_setzero_ps());
                mask = _mm256_movemask_ps(positive) as u32;
            } else {
                for (lane, &y) in y[first..].iter().enumerate() {
                    mask |= u32::from(y > 0.0) << lane;
                }
            }
            while mask != 0 {
                let cell = first + mask.trailing_zeros() as usize;
                mask &= mask - 1;
                let position = u32::from(offsets[cell] - starts[cell]);
                let bottom = u32::from(position >= width);
                let right = position - bottom * width;
                let list = 2 * cell + bottom as usize;
                let slot = list * channels + counts[list] as usize;
                counts[list] += 1;
                found[slot] = weights + (1 - right) * shift;
                values[slot] = dy[cell];
            }
        }
    }
}

/// Input gradient of one sample, channels last: each active cell adds its value times the kernel.
/// `image` must be zeroed and padded; `spread` comes from [`Geometry::pack_spread`].
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn input_gradient<const K: usize>(
    g: &Geometry,
    starts: &[u16],
    spread: &[f32],
    active: &Active,
    image: &mut [f32],
) {
    assert!(g.kernel == K && image.len() >= g.image_len() && spread.len() >= g.spread_len());
    let vectors = g.reach_padded() / 8;
    // Rows outside, cells inside: the weights of two kernel rows stay in the first-level cache.
    for row in 0..=K {
        for first in (0..vectors).step_by(8) {
            let at = (row, first);
            // SAFETY: a cell's reach lies in the image; whole vectors write (zeros) at most 7
            // floats further, which the padding covers. List entries point into `spread`, and
            // `spread()` leaves room for whole vectors behind each kernel row.
            unsafe {
                match vectors - first {
                    1 => add_kernel_rows::<1>(g, starts, at, spread, active, image),
                    2 => add_kernel_rows::<2>(g, starts, at, spread, active, image),
                    3 => add_kernel_rows::<3>(g, starts, at, spread, active, image),
                    4 => add_kernel_rows::<4>(g, starts, at, spread, active, image),
                    5 => add_kernel_rows::<5>(g, starts, at, spread, active, image),
                    6 => add_kernel_rows::<6>(g, starts, at, spread, active, image),
                    7 => add_kernel_rows::<7>(g, starts, at, spread, active, image),
                    _ => add_kernel_rows::<8>(g, starts, at, spread, active, image),
                }
            }
        }
    }
}

/// Input row `row` of every cell's reach, vectors `first..first + V`.
///
/// # Safety
/// As argued in [`input_gradient`].
#[target_feature(enable = "avx2,fma")]
unsafe fn add_kernel_rows<const V: usize>(
    g: &Geometry,
    starts: &[u16],
    (row, first): (usize, usize),
    spread: &[f32],
    active: &Active,
    image: &mut [f32],
) {
    let channels = g.pooled.channels;
    for (cell, &start) in starts.iter().enumerate() {
        let start = (usize::from(start) + row * g.input.cols) * g.input.channels + 8 * first;
        // SAFETY: the function's contract.
        unsafe {
            let out = image.as_mut_ptr().add(start);
            let mut acc = [_mm256_setzero_ps(); V];
            for (v, acc) in acc.iter_mut().enumerate() {
                *acc = _mm256_loadu_ps(out.add(8 * v));
            }
            for bottom in 0..2 {
                // A cell that won in the bottom row reaches one row further down.
                let Some(ky) = row.checked_sub(bottom).filter(|&ky| ky < g.kernel) else {
                    continue;
                };
                let weights = spread.as_ptr().add(ky * g.spread() + 8 * first);
                let list = (2 * cell + bottom) * channels;
                let list = list..list + active.counts[2 * cell + bottom] as usize;
                for (&offset, value) in
                    active.offsets[list.clone()].iter().zip(&active.values[list])
                {
                    let value = _mm256_broadcast_ss(value);
                    let weights = weights.add(offset as usize);
                    for (v, acc) in acc.iter_mut().enumerate() {
                        let w = _mm256_loadu_ps(weights.add(8 * v));
                        *acc = _mm256_fmadd_ps(value, w, *acc);
                    }
                }
            }
            for (v, acc) in acc.iter().enumerate() {
                _mm256_storeu_ps(out.add(8 * v), *acc);
            }
        }
    }
}
