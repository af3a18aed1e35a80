//! Forward pass: convolution, pooling and relu of one sample.

use std::arch::x86_64::*;

use super::{BLOCK, Geometry};

/// y = relu(pool(conv(x) + bias)); `offsets` says which cell of each input plane the winner's
/// patch begins at. `x` must be followed by [`PADDING`](crate::model::kernels::PADDING) readable floats.
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
    let mut blank = [0; MOST_ROWS];
    if g.input.channels == 1 && g.input.rows <= MOST_ROWS {
        // SAFETY: `x` holds the image and the padding, as asserted above.
        unsafe { find_blank_rows(g, x, &mut blank) };
    }
    for first in (0..g.pooled.channels).step_by(BLOCK) {
        let weights = &packed[first * g.taps()..];
        let bias = &bias[first..];
        let y = &mut y[first * cells..];
        let offsets = &mut offsets[first * cells..];
        // SAFETY: the assertions above cover every index the block computes; see there.
        unsafe {
            match g.pooled.channels - first {
                1 => forward_block::<K, 1>(g, weights, bias, x, &blank, y, offsets),
                2 => forward_block::<K, 2>(g, weights, bias, x, &blank, y, offsets),
                3 => forward_block::<K, 3>(g, weights, bias, x, &blank, y, offsets),
                4 => forward_block::<K, 4>(g, weights, bias, x, &blank, y, offsets),
                _ => forward_block::<K, BLOCK>(g, weights, bias, x, &blank, y, offsets),
            }
        }
    }
}

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
unsafe fn forward_block<const K: usize, const N: usize>(
    g: &Geometry,
    weights: &[f32],
    bias: &[f32],
    x: &[f32],
    blank: &[u32; MOST_ROWS],
    y: &mut [f32],
    offsets: &mut [u16],
) {
    let (width, plane) = (g.input.cols, g.input.area());
    for row in 0..g.pooled.rows {
        for col in (0..g.pooled.cols).step_by(4) {
            // No bit for tiles past the 32nd, which are never blank.
            let tile = 1u32.checked_shl(col as u32 / 4).unwrap_or(0);
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
                        // Zeros add nothing: skip a pair of input rows that is blank here.
                        let pair = (2 * row + ky).min(MOST_ROWS - 2);
                        if blank[pair] & blank[pair + 1] & tile != 0 {
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
