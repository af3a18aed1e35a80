//! Sums of samples and their noise in whole steps of a grid.
//!
//! Each clipped sample is rounded toward zero, coordinate by coordinate, which keeps its norm ≤ C
//! and so the sensitivity Δ of the sum. Samples are summed and noised as integers; the division
//! comes after and costs nothing.
//!
//! A release costs ρ = Δ²/2σ² in zCDP, and αρ in Rényi divergence of order α, as with the Gaussian
//! (Canonne, Kamath and Steinke 2020, arXiv 2004.00010). The exact (ε, δ) curve of the Gaussian does
//! not hold for it, and no amplification by sampling is proved for it here.

use rand::Rng;

use super::DiscreteGaussian;
use crate::range::{OutOfRange, check, positive};

/// Sums stay below this; noise does so too, and i64 holds both together.
const SUM_END: f64 = (1u64 << 62) as f64;

/// Error of a grid or of a release on it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GridError {
    /// A number is out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// i64 could not hold the sum.
    #[error(
        "{samples} samples of norm {clip_norm} in steps of {step:e} reach 2^62: use a larger step"
    )]
    TooFine {
        /// Step γ of the grid.
        step: f64,
        /// Clipping norm C.
        clip_norm: f64,
        /// Number of samples in the sum.
        samples: u64,
    },
}

/// A grid of step γ for the sum of clipped samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    step: f64,
    /// The largest coordinate of a clipped sample, in steps.
    reach: f64,
}

impl Grid {
    /// A grid for sums of up to `samples` vectors of norm up to `clip_norm`. Its step is `step`
    /// rounded down to a power of two, so that a coordinate is brought to the grid exactly.
    pub fn new(step: f64, clip_norm: f64, samples: u64) -> Result<Self, GridError> {
        check("step", step, (1e-30..=1e30).contains(&step), "a number from 1e-30 to 1e30")?;
        positive("clip_norm", clip_norm)?;
        // Without its mantissa a number is a power of two.
        let step = f64::from_bits(step.to_bits() >> 52 << 52);
        let reach = (clip_norm / step).ceil();
        if reach * samples as f64 >= SUM_END {
            return Err(GridError::TooFine { step, clip_norm, samples });
        }
        Ok(Self { step, reach })
    }

    /// γ
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Noise of standard deviation `sigma` for the sum, in the unit of the samples: the noise after
    /// division is `sigma`/denominator. The σ really used is `noise.sigma()·grid.step()`.
    pub fn noise(&self, sigma: f64) -> Result<DiscreteGaussian, OutOfRange> {
        DiscreteGaussian::new(sigma / self.step)
    }

    /// Whole steps of `value`, without what is left over. NaN is 0, and no value is larger than a
    /// clipped sample's: a refusal would tell something about the sample.
    pub fn round_toward_zero(&self, value: f64) -> i64 {
        // A power of two only moves the exponent.
        (value / self.step).clamp(-self.reach, self.reach) as i64
    }

    /// Adds a clipped sample to the sum.
    pub fn add<T: Copy + Into<f64>>(&self, sum: &mut [i64], sample: &[T]) {
        for (sum, &value) in sum.iter_mut().zip(sample) {
            // Saturation moves the sum by no more than the sample does: it costs no privacy even
            // where more samples are added than declared.
            *sum = sum.saturating_add(self.round_toward_zero(value.into()));
        }
    }

    /// (sum + noise)·γ/denominator, where the denominator is public.
    ///
    /// The time that the noise took tells something about it: send the whole vector at once.
    pub fn release<R: Rng + ?Sized>(
        &self,
        sum: &[i64],
        noise: &DiscreteGaussian,
        rng: &mut R,
        denominator: f64,
    ) -> Result<Vec<f32>, GridError> {
        positive("denominator", denominator)?;
        let mut noised = vec![0; sum.len()];
        noise.fill(&mut noised, rng);
        let value = |steps: i64| (steps as f64 * self.step / denominator) as f32;
        Ok(noised.iter().zip(sum).map(|(noise, &sum)| value(noise.saturating_add(sum))).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;
    use crate::sampler::clip;
    use crate::sampler::statistics::{NORMAL_LIMIT, chi_square_interval};

    #[test]
    fn the_step_is_a_power_of_two() {
        for (asked, used) in [(1.0, 1.0), (0.999, 0.5), (3e-5, 0.5f64.powi(16)), (5.0, 4.0)] {
            assert_eq!(Grid::new(asked, 1.0, 10).unwrap().step(), used);
        }
    }

    #[test]
    fn values_lose_their_fraction() {
        let grid = Grid::new(0.25, 100.0, 10).unwrap();
        for (value, steps) in
            [(0.0, 0), (0.2499, 0), (-0.2499, 0), (0.25, 1), (-0.7, -2), (99.9, 399)]
        {
            assert_eq!(grid.round_toward_zero(value), steps, "{value}");
        }
        for (value, steps) in [(f64::NAN, 0), (f64::INFINITY, 400), (f64::MIN, -400)] {
            assert_eq!(grid.round_toward_zero(value), steps, "{value}");
        }
    }

    proptest! {
        /// In integers: the squares of a rounded sample sum up to at most C².
        #[test]
        fn a_rounded_sample_is_no_longer_than_the_norm(
            mut sample in prop::collection::vec(-3.0..3.0f32, 1..100),
            exponent in -20..-1i32,
        ) {
            clip(&mut sample, 1.0).unwrap();
            let grid = Grid::new(2f64.powi(exponent), 1.0, 1).unwrap();
            let mut sum = vec![0; sample.len()];
            grid.add(&mut sum, &sample);
            let squares: i64 = sum.iter().map(|s| s * s).sum();
            prop_assert!(squares <= 1 << (-2 * exponent));
            for (steps, value) in sum.iter().zip(sample) {
                prop_assert!((*steps as f64 * grid.step() - f64::from(value)).abs() < grid.step());
            }
        }
    }

    /// Every released value is a whole number of steps, and noise has the declared σ.
    #[test]
    fn a_release_is_the_sum_and_noise_on_the_grid() {
        const N: usize = 200_000;
        let grid = Grid::new(1.0 / 64.0, 10.0, 100).unwrap();
        let noise = grid.noise(1.5).unwrap();
        assert!((96.0..96.0 + 1e-7).contains(&noise.sigma()));
        let mut sum = vec![0; N];
        grid.add(&mut sum, &vec![1.0; N]);
        grid.add(&mut sum, &vec![-3.51; N]);
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let released = grid.release(&sum, &noise, &mut rng, 8.0).unwrap();
        // -3.51 is -224.64 steps.
        let center = (64.0 - 224.0) / 512.0;
        let (mut total, mut squares) = (0.0, 0.0);
        for value in released {
            assert_eq!((value * 512.0).fract(), 0.0);
            let z = (f64::from(value) - center) / (1.5 / 8.0);
            total += z;
            squares += z * z;
        }
        assert!((total / (N as f64).sqrt()).abs() <= NORMAL_LIMIT, "{total}");
        let (least, most) = chi_square_interval(N as f64);
        assert!((least..=most).contains(&squares), "{squares}");
    }

    #[test]
    fn what_could_overflow_is_refused() {
        let step = 0.5f64.powi(40);
        assert!(Grid::new(step, 1.0, (1 << 22) - 1).is_ok());
        let error = Grid::new(step, 1.0, 1 << 22).unwrap_err();
        assert!(matches!(error, GridError::TooFine { samples: 4_194_304, .. }), "{error}");
        assert!(Grid::new(1e-30, 1e30, 1).is_err());
        let grid = Grid::new(step, 1.0, 1 << 20).unwrap();
        let mut sum = [i64::MAX, i64::MIN];
        grid.add(&mut sum, &[1.0, -1.0]);
        assert_eq!(sum, [i64::MAX, i64::MIN]);
        let noise = grid.noise(1.0).unwrap();
        let mut rng = ChaCha12Rng::seed_from_u64(2);
        let released = grid.release(&sum, &noise, &mut rng, 1.0).unwrap();
        assert!(released.iter().all(|v| v.is_finite()));
    }

    #[test]
    fn bad_numbers_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                Grid::new(bad, 1.0, 1),
                Err(GridError::Parameter(OutOfRange { name: "step", .. }))
            ));
            assert!(matches!(
                Grid::new(1.0, bad, 1),
                Err(GridError::Parameter(OutOfRange { name: "clip_norm", .. }))
            ));
            let grid = Grid::new(1.0, 1.0, 1).unwrap();
            assert!(grid.noise(bad).is_err());
            let noise = grid.noise(1.0).unwrap();
            let mut rng = ChaCha12Rng::seed_from_u64(3);
            assert!(matches!(
                grid.release(&[0], &noise, &mut rng, bad),
                Err(GridError::Parameter(OutOfRange { name: "denominator", .. }))
            ));
        }
    }
}
