//! Parameter gradient of one sample: each active cell adds its value times the patch under it.

#![allow(clippy::needless_range_loop, reason = "register tiles read best by their indices")]

use std::arch::x86_64::*;

use super::Geometry;
use crate::model::kernels::{Active, lanes_sum};

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

/// The permutation that moves the set lanes of `mask` to the front.
#[target_feature(enable = "avx2,fma")]
pub(super) fn set_lanes(mask: usize) -> __m256i {
    _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(SET_LANES[mask] as i64))
}

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
    let Active { offsets: found, values, counts, .. } = active;
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
                let lanes = set_lanes(mask);
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

/// Adds the gradient of one sample to a packed gradient. `image` is the input, channels last, with
/// padding.
///
/// # Safety
/// `active` was filled by [`compact_by_channel`] for the same geometry.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) unsafe fn add_gradient<const K: usize>(
    g: &Geometry,
    image: &[f32],
    active: &Active,
    gradient: &mut [f32],
) {
    // SAFETY: the function's contract.
    unsafe { visit::<K, false>(g, image, active, gradient) };
}

/// Writes the gradient of one sample in packed order, with zeros as padding.
///
/// # Safety
/// As [`add_gradient`].
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) unsafe fn sample_gradient<const K: usize>(
    g: &Geometry,
    image: &[f32],
    active: &Active,
    gradient: &mut [f32],
) {
    // SAFETY: the function's contract.
    unsafe { visit::<K, true>(g, image, active, gradient) }
}

/// Sums over the active cells of each channel, from zero if `FRESH`, else on top of `gradient`.
///
/// # Safety
/// As [`add_gradient`].
#[target_feature(enable = "avx2,fma")]
unsafe fn visit<const K: usize, const FRESH: bool>(
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
    let tail = tail_mask(g.run());
    for channel in 0..g.pooled.channels {
        let all = channel * cells..channel * cells + active.counts[channel] as usize;
        let (offsets, values) = (&active.offsets[all.clone()], &active.values[all]);
        let sums = &mut weights[channel * K * stride..][..K * stride];
        let sum = lanes_sum(values.len(), |j| values[j]);
        bias[channel] = if FRESH { sum } else { bias[channel] + sum };
        // SAFETY: an offset is a cell of the conv output, so the patch from it lies in the image;
        // whole vectors read at most 7 floats further, which the padding covers.
        unsafe {
            if vectors == 1 {
                add_small_patches::<K, FRESH>(image, row, (offsets, values), sums, tail);
                continue;
            }
            for ky in (0..K).step_by(2) {
                let rows = (K - ky).min(2);
                for first in (0..vectors).step_by(MOST_VECTORS) {
                    let image = &image[ky * row + 8 * first..];
                    let sums = &mut sums[ky * stride + 8 * first..];
                    let count = (vectors - first).min(MOST_VECTORS);
                    let ends = first + count == vectors;
                    let add = AddRuns::<FRESH>::TABLE[rows - 1][count - 1];
                    add(image, row, (offsets, values), (sums, stride), ends, tail);
                }
            }
        }
    }
}

/// Vectors of a run that [`add_runs`] takes at once: two rows of them fill the registers.
const MOST_VECTORS: usize = 7;

/// All ones in the lanes that the last vector of a run of `run` floats really has.
#[target_feature(enable = "avx2,fma")]
fn tail_mask(run: usize) -> __m256 {
    let used = (run - 1) % 8 + 1;
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(used as i32), lane))
}

/// [`add_runs`] by rows and vectors.
struct AddRuns<const FRESH: bool>;

type AddRunsFn = unsafe fn(&[f32], usize, (&[u32], &[f32]), (&mut [f32], usize), bool, __m256);

impl<const F: bool> AddRuns<F> {
    const TABLE: [[AddRunsFn; MOST_VECTORS]; 2] = [
        [
            add_runs::<1, 1, F>,
            add_runs::<1, 2, F>,
            add_runs::<1, 3, F>,
            add_runs::<1, 4, F>,
            add_runs::<1, 5, F>,
            add_runs::<1, 6, F>,
            add_runs::<1, 7, F>,
        ],
        [
            add_runs::<2, 1, F>,
            add_runs::<2, 2, F>,
            add_runs::<2, 3, F>,
            add_runs::<2, 4, F>,
            add_runs::<2, 5, F>,
            add_runs::<2, 6, F>,
            add_runs::<2, 7, F>,
        ],
    ];
}

/// sums += Σ value·image[offset..offset + 8·V], for R image rows `row` floats apart, whose sums
/// are `stride` floats apart. `ends`: the last vector is the last of its run, of which fresh sums
/// keep the lanes of `tail`.
///
/// # Safety
/// Every run lies in `image` as allocated, padding included, and `sums` holds the R runs.
#[target_feature(enable = "avx2,fma")]
unsafe fn add_runs<const R: usize, const V: usize, const FRESH: bool>(
    image: &[f32],
    row: usize,
    (offsets, values): (&[u32], &[f32]),
    (sums, stride): (&mut [f32], usize),
    ends: bool,
    tail: __m256,
) {
    // SAFETY: the function's contract.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); V]; R];
        if !FRESH {
            for r in 0..R {
                for v in 0..V {
                    acc[r][v] = _mm256_loadu_ps(sums.as_ptr().add(r * stride + 8 * v));
                }
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
                // Lanes past the end of a run hold products with the next pixels.
                if FRESH && ends && v + 1 == V {
                    acc[r][v] = _mm256_and_ps(acc[r][v], tail);
                }
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
unsafe fn add_small_patches<const K: usize, const FRESH: bool>(
    image: &[f32],
    row: usize,
    (offsets, values): (&[u32], &[f32]),
    sums: &mut [f32],
    tail: __m256,
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
            if FRESH {
                _mm256_storeu_ps(sum, _mm256_and_ps(both, tail));
            } else {
                _mm256_storeu_ps(sum, _mm256_add_ps(_mm256_loadu_ps(sum), both));
            }
        }
    }
}
