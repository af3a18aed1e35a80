//! Gaussian noise in floating point.

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use crate::range::{OutOfRange, check};

/// With more, f32 could not hold the sum.
const LARGEST_SIGMA: f64 = 1e36;

/// g + N(0, σ²) per coordinate, summed in f64 and rounded to f32 once. σ = 0 leaves the vector.
///
/// Its low bits leak what was added to (Mironov 2012, "On Significance of the Least Significant
/// Bits for Differential Privacy"): for real releases there is the discrete Gaussian.
pub fn add_gaussian<R: Rng + ?Sized>(
    vector: &mut [f32],
    sigma: f64,
    rng: &mut R,
) -> Result<(), OutOfRange> {
    let mut noised = noised(sigma, rng)?;
    vector.iter_mut().for_each(|value| *value = noised((*value).into()));
    Ok(())
}

/// As [`add_gaussian`], for a vector in f64: what is not rounded before the noise.
pub fn release_gaussian<R: Rng + ?Sized>(
    vector: &[f64],
    sigma: f64,
    rng: &mut R,
    released: &mut Vec<f32>,
) -> Result<(), OutOfRange> {
    released.clear();
    released.extend(vector.iter().copied().map(noised(sigma, rng)?));
    Ok(())
}

/// Noise on one coordinate after the other.
fn noised<R: Rng + ?Sized>(sigma: f64, rng: &mut R) -> Result<impl FnMut(f64) -> f32, OutOfRange> {
    let fine = (0.0..=LARGEST_SIGMA).contains(&sigma);
    check("sigma", sigma, fine, "a number from 0 to 1e36")?;
    Ok(move |value| {
        if sigma > 0.0 {
            (value + sigma * rng.sample::<f64, _>(StandardNormal)) as f32
        } else {
            value as f32
        }
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;
    use crate::math::normal_cdf;
    use crate::sampler::statistics::{NORMAL_LIMIT, assert_cdf, chi_square_interval};

    const N: usize = 1_000_000;

    /// Noise of the declared σ, divided by it. The vector is not 0, which rounding to f32 could
    /// favor.
    fn noise(sigma: f64, seed: u64) -> Vec<f64> {
        let mut vector: Vec<f32> = (0..N).map(|i| (i % 7) as f32 - 3.0).collect();
        let before = vector.clone();
        add_gaussian(&mut vector, sigma, &mut ChaCha12Rng::seed_from_u64(seed)).unwrap();
        vector.iter().zip(before).map(|(v, b)| (f64::from(*v) - f64::from(b)) / sigma).collect()
    }

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        values.sum::<f64>() / N as f64
    }

    #[test]
    fn noise_has_the_declared_variance() {
        for (seed, sigma) in [0.37, 1.0, 250.0].into_iter().enumerate() {
            let noise = noise(sigma, seed as u64);
            let squares: f64 = noise.iter().map(|z| z * z).sum();
            let (least, most) = chi_square_interval(N as f64);
            assert!((least..=most).contains(&squares), "σ = {sigma}: {squares}");
        }
    }

    /// Mean, third and fourth moment have variances 1/n, 15/n and 96/n.
    #[test]
    fn noise_is_normal() {
        let noise = noise(0.37, 3);
        for (power, expected, variance) in [(1, 0.0, 1.0), (3, 0.0, 15.0), (4, 3.0, 96.0f64)] {
            let moment = mean(noise.iter().map(|z| z.powi(power)));
            let error = (moment - expected) / (variance / N as f64).sqrt();
            assert!(error.abs() <= NORMAL_LIMIT, "moment {power} is {moment}");
        }
        assert_cdf(noise, normal_cdf);
    }

    /// Coordinates, and their squares (of variance 2), do not depend on coordinates before them.
    #[test]
    fn noise_is_uncorrelated() {
        let noise = noise(0.37, 4);
        for lag in [1, 2, 3, 4, 7, 8, 16, 31, 64, 256, 1024] {
            let pairs = || noise.iter().zip(&noise[lag..]);
            let plain = mean(pairs().map(|(a, b)| a * b));
            let squares = mean(pairs().map(|(a, b)| (a * a - 1.0) * (b * b - 1.0) / 2.0));
            for correlation in [plain, squares] {
                let error = correlation * (N as f64).sqrt();
                assert!(error.abs() <= NORMAL_LIMIT, "lag {lag}: {correlation}");
            }
        }
    }

    /// The sum is rounded once: a twin adds in f64 and rounds.
    #[test]
    fn the_sum_is_rounded_once() {
        let mut vector = vec![16_777_216.0f32; 1000];
        add_gaussian(&mut vector, 1.3, &mut ChaCha12Rng::seed_from_u64(5)).unwrap();
        let mut twin = ChaCha12Rng::seed_from_u64(5);
        for value in vector {
            let normal: f64 = twin.sample(StandardNormal);
            assert_eq!(value, (16_777_216.0 + 1.3 * normal) as f32);
        }
        // A third of that is no f32: rounded first, it would be another sum.
        let third = 16_777_216.0 / 3.0;
        let (mut sums, mut rng) = (Vec::new(), ChaCha12Rng::seed_from_u64(5));
        release_gaussian(&[third; 1000], 0.3, &mut rng, &mut sums).unwrap();
        let mut twin = ChaCha12Rng::seed_from_u64(5);
        let mut differ = 0;
        for value in sums {
            let normal: f64 = twin.sample(StandardNormal);
            assert_eq!(value, (third + 0.3 * normal) as f32);
            differ += usize::from(value != (f64::from(third as f32) + 0.3 * normal) as f32);
        }
        assert!(differ > 0);
    }

    #[test]
    fn no_noise_and_bad_sigma_leave_the_vector() {
        let mut rng = ChaCha12Rng::seed_from_u64(6);
        let mut vector = [1.0, -0.0, f32::MAX];
        assert_eq!(add_gaussian(&mut vector, 0.0, &mut rng), Ok(()));
        for bad in [-1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e37] {
            let error = add_gaussian(&mut vector, bad, &mut rng).unwrap_err();
            assert!(error.to_string().starts_with("sigma = "), "{error}");
        }
        assert_eq!(vector.map(f32::to_bits), [1.0, -0.0, f32::MAX].map(f32::to_bits));
    }
}
