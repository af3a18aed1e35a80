//! Label distributions from label counts, exact or noisy.
//!
//! Counts leave a device only as a release of their own, or where labels are public; what is done
//! with them here costs nothing more.

/// The label distribution of one device: counts below 0, which noise makes, are clipped to 0, and
/// the rest is divided by its sum.
///
/// A count that is not finite counts as 0. If nothing is left, or the sum is not finite, the
/// counts say nothing and the distribution is uniform.
pub fn shares(counts: &[f64]) -> Vec<f64> {
    normalized(counts.iter().copied().map(clipped).collect())
}

/// The label distribution of all devices together, from the clipped counts of each.
///
/// Only counts that were sent are added: with noisy counts the exact sum would be a release that
/// nobody has charged.
pub fn global(devices: &[Vec<f64>]) -> Vec<f64> {
    let mut sums = vec![0.0; devices.first().map_or(0, Vec::len)];
    for counts in devices {
        debug_assert_eq!(counts.len(), sums.len());
        for (sum, &count) in sums.iter_mut().zip(counts) {
            *sum += clipped(count);
        }
    }
    normalized(sums)
}

fn clipped(count: f64) -> f64 {
    if count.is_finite() { count.max(0.0) } else { 0.0 }
}

fn normalized(mut counts: Vec<f64>) -> Vec<f64> {
    let total: f64 = counts.iter().sum();
    if total > 0.0 && total.is_finite() {
        counts.iter_mut().for_each(|count| *count /= total);
    } else {
        let uniform = 1.0 / counts.len() as f64;
        counts.fill(uniform);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_below_zero_are_clipped() {
        assert_eq!(shares(&[3.0, -2.0, 1.0, 0.0]), [0.75, 0.0, 0.25, 0.0]);
        assert_eq!(shares(&[0.0, 7.0, 0.0]), [0.0, 1.0, 0.0]);
        let devices = [vec![3.0, -2.0, 1.0], vec![-5.0, 4.0, 0.0]];
        assert_eq!(global(&devices), [0.375, 0.5, 0.125]);
    }

    #[test]
    fn counts_that_say_nothing_are_uniform() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        for counts in [[0.0; 4], [-1.0, 0.0, -0.0, -3.0], [nan, infinity, -infinity, 0.0]] {
            assert_eq!(shares(&counts), [0.25; 4]);
            assert_eq!(global(&[counts.to_vec(), counts.to_vec()]), [0.25; 4]);
        }
        assert_eq!(shares(&[f64::MAX; 4]), [0.25; 4]);
        assert_eq!(shares(&[nan, 1.0, infinity, 3.0]), [0.0, 0.25, 0.0, 0.75]);
        // One device without a word does not drown the others.
        assert_eq!(global(&[vec![nan, nan], vec![1.0, 3.0]]), [0.25, 0.75]);
        assert_eq!((shares(&[]), global(&[])), (vec![], vec![]));
    }
}
