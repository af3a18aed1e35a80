//! Input gradient of one sample: each active cell adds its value times the kernel.

use std::arch::x86_64::*;

use super::gradient::set_lanes;
use super::{Geometry, transpose};
use crate::model::kernels::Active;

/// Marks a cell whose value relu set to zero.
const INACTIVE: u32 = 1 << 31;
/// Marks a cell that won in the bottom row of its window.
const BOTTOM: u32 = 1 << 30;

/// Lists the cells that carry gradient, window by window, those that won in the top row in one
/// list and those of the bottom row in another: where their weights begin, and the value.
/// `starts` are the input positions of the windows.
#[target_feature(enable = "avx2,fma,popcnt")]
pub(in crate::model) fn compact_by_cell(
    g: &Geometry,
    starts: &[u16],
    y: &[f32],
    dy: &[f32],
    offsets: &[u16],
    active: &mut Active,
) {
    let (cells, channels, all) = (g.pooled.area(), g.pooled.channels, g.pooled.len());
    let Active { offsets: found, values, counts, codes, by_cell } = active;
    codes.resize(all, 0.0);
    by_cell.resize(2 * all + 8, 0.0);
    let copy = (g.kernel * g.spread()) as u32;
    for channel in 0..channels {
        let weights = 2 * channel as u32 * copy;
        let of_channel = channel * cells..(channel + 1) * cells;
        let (y, offsets) = (&y[of_channel.clone()], &offsets[of_channel.clone()]);
        let codes = &mut codes[of_channel];
        for cell in 0..cells {
            let position = u32::from(offsets[cell] - starts[cell]);
            let bottom = position >= g.input.cols as u32;
            let right = position - if bottom { g.input.cols as u32 } else { 0 };
            let code = weights + right * copy + if bottom { BOTTOM } else { 0 };
            // Only moved around as a float, never computed with.
            codes[cell] = f32::from_bits(if y[cell] > 0.0 { code } else { INACTIVE });
        }
    }
    let (codes_by_cell, values_by_cell) = by_cell.split_at_mut(all);
    transpose(channels, cells, codes, codes_by_cell);
    transpose(channels, cells, dy, values_by_cell);

    let capacity = list_capacity(g);
    counts.resize(2 * cells, 0);
    found.resize(2 * cells * capacity, 0);
    values.resize(2 * cells * capacity, 0.0);
    for cell in 0..cells {
        let mut count = [0usize; 2];
        for channel in (0..channels).step_by(8) {
            let real = (1u32 << (channels - channel).min(8)) - 1;
            let from = cell * channels + channel;
            // SAFETY: `by_cell` has room for a whole vector behind the last value, and each list
            // for one behind the channels seen so far.
            unsafe {
                let code = _mm256_loadu_ps(by_cell.as_ptr().add(from));
                let value = _mm256_loadu_ps(by_cell.as_ptr().add(all + from));
                let code = _mm256_castps_si256(code);
                let dropped = _mm256_movemask_ps(_mm256_castsi256_ps(code)) as u32;
                // Shifting moves the mark of the bottom row into the sign.
                let bottom = _mm256_castsi256_ps(_mm256_slli_epi32::<1>(code));
                let bottom = _mm256_movemask_ps(bottom) as u32;
                let offset = _mm256_andnot_si256(_mm256_set1_epi32(BOTTOM as i32), code);
                for (list, lanes) in [!bottom, bottom].into_iter().enumerate() {
                    let mask = lanes & !dropped & real;
                    let order = set_lanes(mask as usize);
                    let slot = (2 * cell + list) * capacity + count[list];
                    _mm256_storeu_si256(
                        found.as_mut_ptr().add(slot).cast(),
                        _mm256_permutevar8x32_epi32(offset, order),
                    );
                    _mm256_storeu_ps(
                        values.as_mut_ptr().add(slot),
                        _mm256_permutevar8x32_ps(value, order),
                    );
                    count[list] += mask.count_ones() as usize;
                }
            }
        }
        counts[2 * cell] = count[0] as u32;
        counts[2 * cell + 1] = count[1] as u32;
    }
}

/// Room of one list of [`compact_by_cell`].
fn list_capacity(g: &Geometry) -> usize {
    g.pooled.channels.next_multiple_of(8)
}

/// Input gradient of one sample, channels last: each active cell adds its value times the kernel.
/// `image` must be zeroed and padded; `spread` comes from [`Geometry::pack_spread`].
///
/// # Safety
/// `active` was filled by [`compact_by_cell`] for the same geometry and `starts`.
#[target_feature(enable = "avx2,fma")]
pub(in crate::model) unsafe fn input_gradient<const K: usize>(
    g: &Geometry,
    starts: &[u16],
    spread: &[f32],
    active: &Active,
    image: &mut [f32],
) {
    assert!(g.kernel == K && image.len() >= g.image_len());
    assert!(spread.len() >= 2 * g.pooled.channels * K * g.spread());
    let vectors = g.reach_padded() / 8;
    // Rows outside, cells inside: the weights of two kernel rows stay in the first-level cache.
    for row in 0..=K {
        for first in (0..vectors).step_by(8) {
            let at = (row, first);
            // SAFETY: a cell's reach lies in the image; whole vectors write (zeros) at most 7
            // floats further, which the padding covers. List entries point into `spread`, and
            // kernel rows are padded to whole vectors there.
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
    let capacity = list_capacity(g);
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
                let list = (2 * cell + bottom) * capacity;
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
