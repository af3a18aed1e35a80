//! Forward pass: convolution, pooling and relu of one sample, by AVX2 or, twice as wide, AVX-512.

use std::arch::x86_64::*;

use super::{BLOCK, Geometry};

/// y = relu(pool(conv(x) + bias)). With `WINNERS`, which the backward pass needs, `offsets` says which
/// cell of each input plane the winner's patch begins at; without, it stays as it is. `x` must be
/// followed by [`PADDING`](crate::model::kernels::PADDING) readable floats.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) fn forward<const K: usize, const WINNERS: bool>(
    g: &Geometry,
    packed: &[f32],
    bias: &[f32],
    x: &[f32],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    assert!(g.kernel == K && x.len() >= g.image_len() && y.len() >= g.pooled.len());
    assert!(!WINNERS || offsets.len() >= g.pooled.len());
    assert!(packed.len() >= g.forward_len() && bias.len() >= g.pooled.channels);
    let cells = g.pooled.area();
    let mut blank = [0; MOST_ROWS];
    if g.input.channels == 1 && g.input.rows <= MOST_ROWS {
        // SAFETY: `x` holds the image and the padding, as asserted above.
        unsafe { find_blank_rows(g, x, &mut blank) };
    }
    let mut first = 0;
    while first < g.pooled.channels {
        let weights = &packed[first * g.taps()..];
        let bias = &bias[first..];
        let y = &mut y[first * cells..];
        let offsets = offsets.get_mut(first * cells..).unwrap_or_default();
        let left = g.pooled.channels - first;
        // SAFETY: the assertions above cover every index the block computes; see there. A geometry
        // is wide only where the processor has AVX-512.
        unsafe {
            match left {
                1 => forward_block::<K, WINNERS, 1>(g, weights, bias, x, &blank, y, offsets),
                2 => forward_block::<K, WINNERS, 2>(g, weights, bias, x, &blank, y, offsets),
                3 => forward_block::<K, WINNERS, 3>(g, weights, bias, x, &blank, y, offsets),
                4 => forward_block::<K, WINNERS, 4>(g, weights, bias, x, &blank, y, offsets),
                PAIR.. if g.wide => {
                    forward_pair::<K, WINNERS>(g, weights, bias, x, &blank, y, offsets)
                }
                _ => forward_block::<K, WINNERS, BLOCK>(g, weights, bias, x, &blank, y, offsets),
            }
        }
        first += if g.wide && left >= PAIR { PAIR } else { BLOCK };
    }
}

/// Output channels that AVX-512 computes together.
const PAIR: usize = 2 * BLOCK;

/// Images of one channel and at most this many rows are searched for blank rows.
const MOST_ROWS: usize = 64;

/// Marks the input rows that are zero under each tile of eight output columns, a bit per tile:
/// images usually have a blank margin. Images of more than 32 tiles are taken as never blank.
///
/// # Safety
/// `x` holds the only plane of the image, followed by padding.
#[target_feature(enable = "avx2,fma")]
unsafe fn find_blank_rows(g: &Geometry, x: &[f32], blank: &mut [u32; MOST_ROWS]) {
    let tiles = g.pooled.cols.div_ceil(4);
    if tiles > 32 {
        return;
    }
    for (row, blank) in blank.iter_mut().enumerate().take(g.input.rows) {
        for tile in 0..tiles {
            // A tile of 8 columns reads 8 + K − 1 ≤ 16 pixels; those past the row only make
            // the answer careful.
            // SAFETY: the row begins in the image; the reads end within the image and padding,
            // except the second vector of the last tile, which is clamped to the image's end.
            let any = unsafe {
                let first = row * g.input.cols + 8 * tile;
                let second = (first + 8).min(g.input.len());
                _mm256_or_ps(
                    _mm256_loadu_ps(x.as_ptr().add(first)),
                    _mm256_loadu_ps(x.as_ptr().add(second)),
                )
            };
            let bits = _mm256_castps_si256(any);
            *blank |= (_mm256_testz_si256(bits, bits) as u32) << tile;
        }
    }
}

/// `N` output channels of [`forward`].
///
/// # Safety
/// Slices as asserted there. Loads reach row 2·pooled.rows + K − 2 < input.rows and column
/// 2·pooled.cols rounded up to 8, + K − 2 ≤ input.cols + 6: past the image only into the padding.
#[target_feature(enable = "avx2,fma")]
unsafe fn forward_block<const K: usize, const WINNERS: bool, const N: usize>(
    g: &Geometry,
    weights: &[f32],
    bias: &[f32],
    x: &[f32],
    blank: &[u32; MOST_ROWS],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    let (width, plane) = (g.input.cols, g.input.area());
    let mut sums = [Sums::default(); N];
    for row in 0..g.pooled.rows {
        for col in (0..g.pooled.cols).step_by(4) {
            let tile = tile_of(col);
            // SAFETY: see the function's contract; a sum holds two vectors.
            unsafe {
                let mut top = [_mm256_setzero_ps(); N];
                // A count known at compile time keeps the sums in registers, in the loops below too.
                for n in 0..N {
                    top[n] = _mm256_set1_ps(bias[n]);
                }
                let mut bottom = top;
                let mut weight = weights.as_ptr();
                for channel in 0..g.input.channels {
                    let first = x.as_ptr().add(channel * plane + 2 * row * width + 2 * col);
                    for ky in 0..K {
                        if is_blank(blank, 2 * row + ky, tile) {
                            weight = weight.add(K * N);
                            continue;
                        }
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
                for n in 0..N {
                    _mm256_storeu_ps(sums[n].0[0].as_mut_ptr(), top[n]);
                    _mm256_storeu_ps(sums[n].0[1].as_mut_ptr(), bottom[n]);
                }
            }
            store::<WINNERS>(g, &sums, [row, col], y, offsets);
        }
    }
}

/// Two blocks of output channels of [`forward`], by AVX-512: the lower half of a vector is the upper
/// row of eight columns. Each sum adds the same products in the same order as [`forward_block`].
///
/// # Safety
/// As [`forward_block`]; the processor has AVX-512 F and DQ.
#[target_feature(enable = "avx2,fma,avx512f,avx512dq")]
unsafe fn forward_pair<const K: usize, const WINNERS: bool>(
    g: &Geometry,
    weights: &[f32],
    bias: &[f32],
    x: &[f32],
    blank: &[u32; MOST_ROWS],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    let (width, plane) = (g.input.cols, g.input.area());
    let second = BLOCK * g.taps();
    let mut sums = [Sums::default(); PAIR];
    for row in 0..g.pooled.rows {
        for col in (0..g.pooled.cols).step_by(4) {
            let tile = tile_of(col);
            // SAFETY: see the function's contract; a sum holds one vector.
            unsafe {
                let mut both = [_mm512_setzero_ps(); PAIR];
                // A count known at compile time keeps the sums in registers, in the loops below too.
                for n in 0..PAIR {
                    both[n] = _mm512_set1_ps(bias[n]);
                }
                let mut weight = weights.as_ptr();
                for channel in 0..g.input.channels {
                    let first = x.as_ptr().add(channel * plane + 2 * row * width + 2 * col);
                    for ky in 0..K {
                        if is_blank(blank, 2 * row + ky, tile) {
                            weight = weight.add(K * BLOCK);
                            continue;
                        }
                        for kx in 0..K {
                            let above = _mm256_loadu_ps(first.add(ky * width + kx));
                            let below = _mm256_loadu_ps(first.add((ky + 1) * width + kx));
                            let rows =
                                _mm512_insertf32x8::<1>(_mm512_castps256_ps512(above), below);
                            for n in 0..BLOCK {
                                let w = _mm512_set1_ps(*weight.add(n));
                                both[n] = _mm512_fmadd_ps(rows, w, both[n]);
                                let w = _mm512_set1_ps(*weight.add(second + n));
                                both[BLOCK + n] = _mm512_fmadd_ps(rows, w, both[BLOCK + n]);
                            }
                            weight = weight.add(BLOCK);
                        }
                    }
                }
                for n in 0..PAIR {
                    _mm512_storeu_ps(sums[n].0.as_mut_ptr().cast(), both[n]);
                }
            }
            store::<WINNERS>(g, &sums, [row, col], y, offsets);
        }
    }
}

/// The bit of the tile of a pooled column; 0 for tiles past the 32nd, which are never blank.
fn tile_of(col: usize) -> u32 {
    1u32.checked_shl(col as u32 / 4).unwrap_or(0)
}

/// True if the input rows `row` and `row` + 1 are blank under the tile: zeros add nothing.
#[inline]
fn is_blank(blank: &[u32; MOST_ROWS], row: usize, tile: u32) -> bool {
    let row = row.min(MOST_ROWS - 2);
    blank[row] & blank[row + 1] & tile != 0
}

/// Two rows of eight sums of a channel. In memory of their own, so that those of the loops above stay
/// in registers.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Sums([[f32; 8]; 2]);

/// Pools the sums of each channel, and stores the results as far as they lie in the row. Inlined, it
/// costs the loops above their registers.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn store<const WINNERS: bool>(
    g: &Geometry,
    sums: &[Sums],
    [row, col]: [usize; 2],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    let (width, valid) = (g.input.cols, (g.pooled.cols - col).min(4));
    let patch = (2 * row * width + 2 * col) as i32;
    for (n, Sums([top, bottom])) in sums.iter().enumerate() {
        // SAFETY: each row of sums is one vector.
        let (top, bottom) =
            unsafe { (_mm256_loadu_ps(top.as_ptr()), _mm256_loadu_ps(bottom.as_ptr())) };
        let (values, winners) = if WINNERS {
            pool_relu(top, bottom, patch, width as i32)
        } else {
            (pool_relu_values(top, bottom), _mm_setzero_si128())
        };
        let out = n * g.pooled.area() + row * g.pooled.cols + col;
        let y = &mut y[out..][..valid];
        let offsets = if WINNERS { &mut offsets[out..][..valid] } else { &mut [] };
        if valid == 4 {
            // SAFETY: four floats and four u16 fit the slices just taken.
            unsafe {
                _mm_storeu_ps(y.as_mut_ptr(), values);
                if WINNERS {
                    _mm_storel_epi64(offsets.as_mut_ptr().cast(), winners);
                }
            }
            continue;
        }
        let (mut all, mut all_offsets) = ([0f32; 4], [0u16; 8]);
        // SAFETY: the arrays hold one whole vector each.
        unsafe {
            _mm_storeu_ps(all.as_mut_ptr(), values);
            _mm_storeu_si128(all_offsets.as_mut_ptr().cast(), winners);
        }
        y.copy_from_slice(&all[..valid]);
        if WINNERS {
            offsets.copy_from_slice(&all_offsets[..valid]);
        }
    }
}

/// The values of [`pool_relu`]: a maximum is its second argument on ties and with NaN, as there.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn pool_relu_values(top: __m256, bottom: __m256) -> __m128 {
    let even = _mm256_shuffle_ps::<0x88>(top, bottom);
    let odd = _mm256_shuffle_ps::<0xDD>(top, bottom);
    let best = _mm256_max_ps(odd, even);
    let best = _mm256_max_ps(_mm256_permute_ps::<0x4E>(best), best);
    let best = _mm256_permutevar8x32_ps(best, _mm256_setr_epi32(0, 1, 4, 5, 0, 1, 4, 5));
    _mm_max_ps(_mm_setzero_ps(), _mm256_castps256_ps128(best))
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

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::model::kernels::{PADDING, has_avx512, has_fast_convolution};
    use crate::model::layer::Shape;
    use crate::seed::{Purpose, Stream, stream};

    /// One fused multiply-add after the other, a value at a time.
    fn plain(g: &Geometry, weights: &[f32], bias: &[f32], x: &[f32]) -> Vec<f32> {
        let (size, width) = (g.kernel, g.input.cols);
        let conv = |co: usize, row: usize, col: usize| {
            let mut sum = bias[co];
            for (tap, w) in weights[co * g.taps()..][..g.taps()].iter().enumerate() {
                let (ci, ky, kx) = (tap / size / size, tap / size % size, tap % size);
                sum = x[ci * g.input.area() + (row + ky) * width + col + kx].mul_add(*w, sum);
            }
            sum
        };
        let cells = g.pooled.area();
        let cell = |at: usize| {
            let (co, row, col) =
                (at / cells, at % cells / g.pooled.cols * 2, at % g.pooled.cols * 2);
            let window = [(0, 0), (0, 1), (1, 0), (1, 1)];
            window.map(|(r, c)| conv(co, row + r, col + c)).into_iter().fold(0.0, f32::max)
        };
        (0..g.pooled.len()).map(cell).collect()
    }

    fn values(len: usize, rng: &mut Stream) -> Vec<f32> {
        (0..len).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
    }

    fn compare<const K: usize>(input: Shape, channels: usize, rng: &mut Stream) {
        let pooled = Shape::new(channels, (input.rows + 1 - K) / 2, (input.cols + 1 - K) / 2);
        let mut g = Geometry { input, pooled, kernel: K, wide: false };
        let (weights, bias) = (values(g.forward_len(), rng), values(channels, rng));
        let mut x = values(input.len() + PADDING, rng);
        // A margin, as images have it.
        for (at, x) in x.iter_mut().enumerate() {
            if input.channels == 1 && !(4 * input.cols..11 * input.cols).contains(&at) {
                *x = 0.0;
            }
        }
        let mut packed = vec![0.0; g.forward_len()];
        g.pack_forward(&weights, &mut packed);
        let expected = plain(&g, &weights, &bias, &x);
        let mut winners: Vec<Vec<u16>> = Vec::new();
        for wide in [false, true] {
            if wide && !has_avx512() {
                continue;
            }
            g.wide = wide;
            let (mut y, mut bare) =
                (vec![f32::NAN; g.pooled.len()], vec![f32::NAN; g.pooled.len()]);
            let mut offsets = vec![u16::MAX; g.pooled.len()];
            // SAFETY: the caller checked that the processor has AVX2 and FMA.
            unsafe {
                forward::<K, true>(&g, &packed, &bias, &x, &mut y, &mut offsets);
                forward::<K, false>(&g, &packed, &bias, &x, &mut bare, &mut []);
            }
            assert_eq!(y, expected, "{input}, {channels} channels, wide: {wide}");
            assert_eq!(bare, expected, "{input}, {channels} channels, wide: {wide}");
            winners.push(offsets);
        }
        assert!(winners.windows(2).all(|pair| pair[0] == pair[1]), "{input}: winners");
    }

    /// Narrow and wide, with winners and without: the same bits as one value at a time.
    #[test]
    fn every_forward_pass_has_the_bits_of_a_plain_loop() {
        if !has_fast_convolution() {
            return;
        }
        let mut rng = stream(1, Purpose::ModelInit, 0, 0);
        for channels in [1, 4, 7, 10, 13, 20, 29] {
            for (planes, rows, cols) in [(1, 28, 28), (3, 12, 12), (1, 17, 21), (2, 13, 10)] {
                compare::<5>(Shape::new(planes, rows, cols), channels, &mut rng);
                compare::<3>(Shape::new(planes, rows, cols), channels, &mut rng);
            }
        }
    }

    /// A weight that is not a number shows, and does not vanish in a maximum.
    #[test]
    fn not_a_number_passes_through() {
        if !has_fast_convolution() {
            return;
        }
        let (input, pooled) = (Shape::new(2, 6, 6), Shape::new(10, 2, 2));
        let g = Geometry { input, pooled, kernel: 3, wide: has_avx512() };
        let packed = vec![f32::NAN; g.forward_len()];
        let (x, bias) = (vec![1.0; input.len() + PADDING], [0.0; 10]);
        let mut y = vec![0.0; pooled.len()];
        // SAFETY: the processor has AVX2 and FMA, as checked above.
        unsafe { forward::<3, false>(&g, &packed, &bias, &x, &mut y, &mut []) };
        assert!(y.iter().all(|y| y.is_nan()));
    }
}
