//! Sizes of the devices.

use super::PartitionError;
use crate::seed::Stream;
use rand::RngExt;

/// A device's number of samples: as drawn, and the least it may shrink to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub min: u32,
    pub drawn: u32,
}

impl Size {
    /// The size when only the share `keep` of what was drawn above the minimum is kept.
    pub fn shrunk(self, keep: f64) -> Self {
        Self { drawn: self.min + (f64::from(self.drawn - self.min) * keep) as u32, ..self }
    }
}

/// Draws a size for each device uniformly from its range of fewest and most samples.
///
/// Refuses if even the fewest samples are more than the training set has.
pub(super) fn draw(
    ranges: &[[u32; 2]],
    supply: u64,
    rng: &mut Stream,
) -> Result<Vec<Size>, PartitionError> {
    let needed = ranges.iter().map(|range| u64::from(range[0])).sum();
    if needed > supply {
        let devices = ranges.len();
        return Err(PartitionError::NotEnoughSamples { devices, needed, samples: supply });
    }
    let size = |&[min, max]: &[u32; 2]| Size { min, drawn: rng.random_range(min..=max) };
    Ok(ranges.iter().map(size).collect())
}

/// The common share of what was drawn above the minimum that fits into `budget` samples, at most 1.
pub(super) fn fitting_share(sizes: &[Size], budget: u64) -> f64 {
    let min: u64 = sizes.iter().map(|size| u64::from(size.min)).sum();
    let drawn: u64 = sizes.iter().map(|size| u64::from(size.drawn)).sum();
    if drawn <= budget || drawn == min {
        return 1.0;
    }
    budget.saturating_sub(min) as f64 / (drawn - min) as f64
}

/// The range, if it is one and does not begin at 0.
pub(super) fn valid(key: &'static str, range: [u32; 2]) -> Result<[u32; 2], PartitionError> {
    match range {
        [min, max] if 1 <= min && min <= max => Ok(range),
        [min, max] => Err(PartitionError::Range { key, min, max }),
    }
}

/// The samples of all labels together.
pub(super) fn total(supply: &[u32]) -> u64 {
    supply.iter().copied().map(u64::from).sum()
}

/// The middle of a range.
pub(super) fn middle([min, max]: [u32; 2]) -> f64 {
    (f64::from(min) + f64::from(max)) / 2.0
}

/// The label of every sample, sorted.
pub(super) fn labels(supply: &[u32]) -> Vec<usize> {
    let run = |(label, &n): (usize, &u32)| std::iter::repeat_n(label, n as usize);
    supply.iter().enumerate().flat_map(run).collect()
}

pub(super) fn count<'a>(labels: impl IntoIterator<Item = &'a usize>, classes: usize) -> Vec<u32> {
    let mut counts = vec![0; classes];
    labels.into_iter().for_each(|&label| counts[label] += 1);
    counts
}
