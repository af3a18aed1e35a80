//! The coefficient of each antenna.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channel::Complex64;

/// Fading of a device at the antennas of the base station. The mean of ‖h‖² is the path gain times N_a
/// in every case.
///
/// The steering vector is that of a uniform linear array along the y axis, half a wavelength
/// apart: a_n = e^{jπn·sin φ} for azimuth φ; elevation is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fading {
    /// One coefficient CN(0, 1) per device times the steering vector: the whole array fades at
    /// once.
    Rayleigh,
    /// A coefficient CN(0, 1) per antenna: deep fades average out over the array.
    Independent,
    /// The steering vector alone.
    None,
}

impl Fading {
    /// Writes the channel vector of a device with a path gain, seen at an azimuth (radians).
    pub fn draw<R: Rng + ?Sized>(self, gain: f64, azimuth: f64, h: &mut [Complex64], rng: &mut R) {
        let amplitude = gain.sqrt();
        let device = match self {
            Self::Rayleigh => amplitude * complex_normal(rng),
            Self::Independent => {
                h.fill_with(|| amplitude * complex_normal(rng));
                return;
            }
            Self::None => Complex64::from(amplitude),
        };
        let step = PI * azimuth.sin();
        for (n, h) in h.iter_mut().enumerate() {
            *h = device * Complex64::cis(n as f64 * step);
        }
    }
}

/// CN(0, 1): half of the variance in each part.
fn complex_normal<R: Rng + ?Sized>(rng: &mut R) -> Complex64 {
    FRAC_1_SQRT_2 * Complex64::new(rng.sample(StandardNormal), rng.sample(StandardNormal))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;

    const ANTENNAS: usize = 15;
    const GAIN: f64 = 0.37;
    const N: usize = 200_000;

    /// z of α = 1e-6, two-sided, for each comparison.
    const NORMAL_LIMIT: f64 = 4.891_638_475_698_59;

    fn power(h: &[Complex64]) -> f64 {
        h.iter().map(|h| h.norm_sqr()).sum()
    }

    fn draws(fading: Fading, seed: u64) -> Vec<Vec<Complex64>> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        (0..N)
            .map(|_| {
                let mut h = vec![Complex64::ZERO; ANTENNAS];
                fading.draw(GAIN, 0.4, &mut h, &mut rng);
                h
            })
            .collect()
    }

    /// The mean of n values is normal about the expected one.
    fn assert_mean(values: impl Iterator<Item = f64>, expected: f64) {
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for value in values {
            n += 1.0;
            sum += value - expected;
            squares += (value - expected) * (value - expected);
        }
        let limit = NORMAL_LIMIT * squares.sqrt() / n;
        assert!((sum / n).abs() <= limit, "{} off from {expected}, limit {limit}", sum / n);
    }

    /// ‖h‖² over the gain is N_a·Exp(1), of variance N_a², with one coefficient, and Gamma(N_a),
    /// of variance N_a, with one per antenna.
    #[test]
    fn the_power_has_its_mean_and_variance() {
        let mean = ANTENNAS as f64;
        for (seed, fading, variance) in
            [(1, Fading::Rayleigh, mean * mean), (2, Fading::Independent, mean)]
        {
            let powers: Vec<f64> = draws(fading, seed).iter().map(|h| power(h) / GAIN).collect();
            assert_mean(powers.iter().copied(), mean);
            assert_mean(powers.iter().map(|p| (p - mean) * (p - mean)), variance);
        }
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let mut h = [Complex64::ZERO; ANTENNAS];
        Fading::None.draw(GAIN, 0.4, &mut h, &mut rng);
        assert!((power(&h) / (GAIN * mean) - 1.0).abs() < 1e-14);
    }

    /// |h_n|² is exponential: above its mean times t with chance e^{−t}.
    #[test]
    fn one_antenna_is_rayleigh_and_circular() {
        for (seed, fading) in [(4, Fading::Rayleigh), (5, Fading::Independent)] {
            let draws = draws(fading, seed);
            for antenna in [0, ANTENNAS - 1] {
                let h = || draws.iter().map(|h| h[antenna]);
                for t in [0.1f64, 1.0, 3.0] {
                    let above = |h: Complex64| f64::from(h.norm_sqr() > GAIN * t);
                    assert_mean(h().map(above), (-t).exp());
                }
                assert_mean(h().map(|h| h.re), 0.0);
                assert_mean(h().map(|h| h.im), 0.0);
                assert_mean(h().map(|h| h.re * h.im), 0.0);
                assert_mean(h().map(|h| h.re * h.re - h.im * h.im), 0.0);
            }
        }
    }

    #[test]
    fn independent_antennas_are_uncorrelated() {
        let draws = draws(Fading::Independent, 6);
        for other in [1, 2, ANTENNAS - 1] {
            let products = || draws.iter().map(|h| h[0] * h[other].conj());
            assert_mean(products().map(|p| p.re), 0.0);
            assert_mean(products().map(|p| p.im), 0.0);
            let powers = draws.iter().map(|h| h[0].norm_sqr() * h[other].norm_sqr());
            assert_mean(powers, GAIN * GAIN);
        }
    }

    /// A wave from azimuth φ reaches the next antenna, half a wavelength along y, half a
    /// wavelength times sin φ earlier.
    #[test]
    fn neighboring_antennas_differ_by_the_steering_phase() {
        let mut rng = ChaCha12Rng::seed_from_u64(7);
        let mut h = [Complex64::ZERO; ANTENNAS];
        for fading in [Fading::Rayleigh, Fading::None] {
            for (azimuth, phase) in
                [(0.0, 0.0), (PI / 6.0, PI / 2.0), (-PI / 6.0, -PI / 2.0), (0.1, PI * 0.1f64.sin())]
            {
                fading.draw(GAIN, azimuth, &mut h, &mut rng);
                for pair in h.windows(2) {
                    let ratio = pair[1] / pair[0];
                    assert!((ratio.norm() - 1.0).abs() < 1e-13);
                    assert!((ratio.arg() - phase).abs() < 1e-13, "{azimuth}: {}", ratio.arg());
                }
            }
        }
        assert_eq!(h[0], Complex64::from(GAIN.sqrt()));
    }

    #[test]
    fn no_gain_is_a_channel_of_0() {
        let mut rng = ChaCha12Rng::seed_from_u64(8);
        for fading in [Fading::Rayleigh, Fading::Independent, Fading::None] {
            let mut h = [Complex64::ONE; 3];
            fading.draw(0.0, 0.4, &mut h, &mut rng);
            assert_eq!(power(&h), 0.0);
        }
    }
}
