//! Points of a square constellation, axis by axis.

use crate::ser::Modulation;

/// One axis: L amplitudes a distance 2d apart, centered at 0, with a mean symbol power of 1 over all
/// axes. Neighbors carry Gray-coded bits, so that the likeliest error costs one bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    levels: u32,
    /// d
    half_distance: f64,
}

impl Axis {
    pub(super) fn of(modulation: Modulation) -> Self {
        let levels = modulation.levels_per_axis();
        // The mean square of ±1, ±3, …, ±(L−1) is (L²−1)/3.
        let squares = (f64::from(levels).powi(2) - 1.0) / 3.0;
        let half_distance = (f64::from(modulation.axes()) * squares).recip().sqrt();
        Self { levels, half_distance }
    }

    /// L
    pub(super) fn levels(self) -> u32 {
        self.levels
    }

    /// Bits that one axis carries in one symbol.
    pub(super) fn bits(self) -> u32 {
        self.levels.ilog2()
    }

    /// Standard deviations of the noise (1/(2γ) of variance per axis) from a point to the boundary
    /// of its decision region.
    pub(super) fn boundary(self, sinr: f64) -> f64 {
        self.half_distance * (2.0 * sinr).sqrt()
    }

    /// The amplitude at a position, from 0 to L − 1.
    pub(super) fn amplitude(self, position: u32) -> f64 {
        (2.0 * f64::from(position) - f64::from(self.levels - 1)) * self.half_distance
    }

    /// The position nearest to an amplitude.
    pub(super) fn nearest(self, amplitude: f64) -> u32 {
        let position = (amplitude / self.half_distance + f64::from(self.levels - 1)) / 2.0;
        // A float below 0 becomes 0.
        (position.round() as u32).min(self.levels - 1)
    }

    /// The bits at a position.
    pub(super) fn gray(self, position: u32) -> u32 {
        position ^ position >> 1
    }

    /// The position of bits: the inverse of [`gray`](Self::gray).
    pub(super) fn position(self, gray: u32) -> u32 {
        (0..self.bits()).fold(0, |position, shift| position ^ gray >> shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ser::q_function;

    fn modulations() -> impl Iterator<Item = Modulation> {
        let qam = [4, 16, 64, 256, 1024, 4096].map(|order| Modulation::qam(order).unwrap());
        [Modulation::Bpsk, Modulation::Qpsk].into_iter().chain(qam)
    }

    #[test]
    fn neighbors_differ_in_one_bit() {
        for axis in modulations().map(Axis::of) {
            for position in 0..axis.levels() {
                assert!(axis.gray(position) < axis.levels());
                assert_eq!(axis.position(axis.gray(position)), position);
                if position > 0 {
                    let changed = axis.gray(position) ^ axis.gray(position - 1);
                    assert_eq!(changed.count_ones(), 1);
                }
            }
        }
    }

    #[test]
    fn the_mean_power_is_one() {
        for modulation in modulations() {
            let axis = Axis::of(modulation);
            let squares: f64 = (0..axis.levels()).map(|i| axis.amplitude(i).powi(2)).sum();
            let power = f64::from(modulation.axes()) * squares / f64::from(axis.levels());
            assert!((power - 1.0).abs() < 1e-12, "{modulation:?}: {power}");
        }
    }

    /// Against a search through all positions; far out it is the last one.
    #[test]
    fn decisions_take_the_nearest() {
        for axis in modulations().map(Axis::of) {
            for i in -300..=300 {
                let amplitude = f64::from(i) / 97.0;
                let distance = |i: u32| (axis.amplitude(i) - amplitude).abs();
                let best = (0..axis.levels()).map(distance).fold(f64::INFINITY, f64::min);
                assert!(distance(axis.nearest(amplitude)) <= best + 1e-12);
            }
            assert_eq!(axis.nearest(f64::INFINITY), axis.levels() - 1);
            assert_eq!(axis.nearest(f64::NEG_INFINITY), 0);
        }
    }

    /// The distance to the boundary is the one that the symbol error rates are computed with.
    #[test]
    fn boundaries_agree_with_the_error_rates() {
        for modulation in modulations() {
            for sinr in [0.0, 0.3, 2.5, 20.0] {
                let ours = q_function(Axis::of(modulation).boundary(sinr));
                let theirs = modulation.axis_error(sinr);
                assert!((ours / theirs - 1.0).abs() < 1e-9, "{modulation:?}: {ours} {theirs}");
            }
        }
    }
}
