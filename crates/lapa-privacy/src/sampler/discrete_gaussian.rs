//! The discrete Gaussian of Canonne, Kamath and Steinke 2020 ("The Discrete Gaussian for
//! Differential Privacy", arXiv 2004.00010), sampled exactly.
//!
//! Noise on integers leaks nothing through the low bits of floating-point numbers. The running time
//! of a draw depends on what is drawn: release a whole vector at once, and tell nobody how long it
//! took.

use rand::Rng;

use super::bernoulli::Bits;
use crate::range::{OutOfRange, check};

const SMALLEST_SIGMA: f64 = 1.0 / 1024.0;
const LARGEST_SIGMA: f64 = (1u64 << 40) as f64;
/// Shift for the smallest σ.
const LARGEST_SHIFT: u32 = 51;

/// P(y) ∝ e^{−y²/2σ²} on the integers y.
// σ² = a·t with a = scaled/2^shift: the smallest of this form, with 32 bits of a or all bits of its
// whole part, that is not below the square of the σ asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscreteGaussian {
    /// ⌊σ⌋ + 1, the scale of the discrete Laplace candidates.
    t: u64,
    scaled: u64,
    shift: u32,
    sigma: f64,
}

impl DiscreteGaussian {
    /// `sigma` is in steps of the grid, from 2⁻¹⁰ to 2⁴⁰. Its square is rounded up, by a factor of
    /// at most 1 + 2⁻³¹.
    pub fn new(sigma: f64) -> Result<Self, OutOfRange> {
        let fine = (SMALLEST_SIGMA..=LARGEST_SIGMA).contains(&sigma);
        check("sigma", sigma, fine, "a number from 2^-10 to 2^40 grid steps")?;
        let t = sigma as u64 + 1;
        // σ = mantissa·2^exponent, exactly.
        let exponent = (sigma.to_bits() >> 52) as i32 - 1075;
        let mantissa = u128::from(sigma.to_bits() & ((1 << 52) - 1) | 1 << 52);
        // a·2^shift = mantissa²·2^{2·exponent + shift}/t, where the power is always negative.
        let scale = |shift: u32| {
            let power = -2 * exponent - shift as i32;
            (mantissa * mantissa).div_ceil(u128::from(t) << power) as u64
        };
        let shift = (0..LARGEST_SHIFT).find(|&s| scale(s) >= 1 << 31).unwrap_or(LARGEST_SHIFT);
        let scaled = scale(shift);
        let used = (scaled as f64 * t as f64 / (1u64 << shift) as f64).sqrt();
        // Two roundings, of the product and of the root, err by less than 2 units.
        let sigma = used.next_down().next_down().max(sigma);
        Ok(Self { t, scaled, shift, sigma })
    }

    /// The σ that is used: not below the one asked for, and not rounded up.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// One draw.
    ///
    /// Values so large that their probability is below e^{−2³⁸} are drawn again.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> i64 {
        self.draw(&mut Bits::new(rng))
    }

    /// A draw for each of `values`, in place of them.
    pub fn fill<R: Rng + ?Sized>(&self, values: &mut [i64], rng: &mut R) {
        let mut bits = Bits::new(rng);
        values.fill_with(|| self.draw(&mut bits));
    }

    /// Algorithm 3: a candidate y of the discrete Laplace distribution of scale t is accepted with
    /// probability e^{−γ}, where γ = (|y| − σ²/t)²/2σ² = (|y|·2^shift − scaled)²/(2·scaled·t·2^shift).
    fn draw<R: Rng + ?Sized>(&self, bits: &mut Bits<'_, R>) -> i64 {
        let denominator = (u128::from(self.scaled) * u128::from(self.t)) << (self.shift + 1);
        let end = 1u64 << (62 - self.shift);
        loop {
            let y = discrete_laplace(self.t, end, bits);
            let distance = (y.unsigned_abs() << self.shift).abs_diff(self.scaled);
            if bits.exp_minus(u128::from(distance).pow(2), denominator) {
                return y;
            }
        }
    }
}

/// P(y) ∝ e^{−|y|/t} on the integers |y| < `end`: Algorithm 2 with s = 1.
fn discrete_laplace<R: Rng + ?Sized>(t: u64, end: u64, bits: &mut Bits<'_, R>) -> i64 {
    loop {
        let low = bits.below(t);
        if !bits.exp_minus(low.into(), t.into()) {
            continue;
        }
        let mut high = 0u64;
        while bits.exp_minus_one() {
            high += 1;
        }
        let size = high.saturating_mul(t).saturating_add(low);
        let negative = bits.bit();
        if size >= end || negative && size == 0 {
            continue;
        }
        return if negative { -(size as i64) } else { size as i64 };
    }
}

#[cfg(test)]
mod tests {
    use opendp::traits::samplers::sample_discrete_gaussian;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;
    use crate::math::normal_cdf;
    use crate::sampler::statistics::{
        NORMAL_LIMIT, assert_cdf, assert_coin, assert_distribution, assert_same_distribution,
    };

    const N: usize = 1_000_000;

    fn draws(sigma: f64, seed: u64) -> Vec<i64> {
        let mut values = vec![0; N];
        let gaussian = DiscreteGaussian::new(sigma).unwrap();
        gaussian.fill(&mut values, &mut ChaCha12Rng::seed_from_u64(seed));
        values
    }

    /// Counts of each of −reach..=reach, and of everything else.
    fn histogram(values: &[i64], reach: i64) -> (Vec<u64>, u64) {
        let mut counts = vec![0; 2 * reach as usize + 1];
        let mut outside = 0;
        for value in values {
            match usize::try_from(value + reach) {
                Ok(cell) if cell < counts.len() => counts[cell] += 1,
                _ => outside += 1,
            }
        }
        (counts, outside)
    }

    /// e^{−y²/2σ²}/Z on −reach..=reach. Beyond 10σ nothing is left for f64.
    fn probabilities(sigma: f64) -> (i64, Vec<f64>) {
        let reach = (10.0 * sigma).ceil() as i64;
        let weights: Vec<f64> =
            (-reach..=reach).map(|y| (-(y as f64 / sigma).powi(2) / 2.0).exp()).collect();
        let total: f64 = weights.iter().sum();
        (reach, weights.iter().map(|w| w / total).collect())
    }

    #[test]
    fn gaussian_has_the_exact_probabilities() {
        for (seed, sigma) in [0.3, 0.7, 1.0, 3.0, 10.5, 1000.0].into_iter().enumerate() {
            let values = draws(sigma, seed as u64);
            let (reach, probabilities) = probabilities(sigma);
            let (counts, outside) = histogram(&values, reach);
            assert_distribution(&counts, outside, &probabilities);
        }
    }

    #[test]
    fn laplace_has_the_exact_probabilities() {
        for (seed, t) in [1, 2, 7, 400].into_iter().enumerate() {
            let mut rng = ChaCha12Rng::seed_from_u64(seed as u64);
            let mut bits = Bits::new(&mut rng);
            let values: Vec<_> =
                (0..N).map(|_| discrete_laplace(t, i64::MAX as u64, &mut bits)).collect();
            let reach = 20 * t as i64;
            let (counts, outside) = histogram(&values, reach);
            let ratio = (-1.0 / t as f64).exp();
            let probabilities: Vec<_> = (-reach..=reach)
                .map(|y| (1.0 - ratio) / (1.0 + ratio) * ratio.powi(y.abs() as i32))
                .collect();
            assert_distribution(&counts, outside, &probabilities);
        }
    }

    /// Values that are cut off leave the ratios of the others.
    #[test]
    fn a_cut_off_laplace_keeps_its_ratios() {
        let mut rng = ChaCha12Rng::seed_from_u64(9);
        let mut bits = Bits::new(&mut rng);
        let values: Vec<_> = (0..N).map(|_| discrete_laplace(2, 3, &mut bits)).collect();
        let (counts, outside) = histogram(&values, 2);
        let weights = [2i32, 1, 0, 1, 2].map(|y| (-f64::from(y) / 2.0).exp());
        let total: f64 = weights.iter().sum();
        assert_distribution(&counts, outside, &weights.map(|w| w / total));
    }

    /// Signs are fair, mean, variance and fourth moment are those of the series.
    #[test]
    fn moments_and_symmetry() {
        for (seed, sigma) in [0.7, 3.0, 1000.0].into_iter().enumerate() {
            let values = draws(sigma, 10 + seed as u64);
            let positive = values.iter().filter(|y| **y > 0).count() as u64;
            let negative = values.iter().filter(|y| **y < 0).count() as u64;
            assert_coin(positive, positive + negative, 0.5);
            let (reach, probabilities) = probabilities(sigma);
            let exact = |power| -> f64 {
                let terms = (-reach..=reach).zip(&probabilities);
                terms.map(|(y, p)| p * (y as f64 / sigma).powi(power)).sum()
            };
            for power in [1, 2, 4] {
                let moment =
                    values.iter().map(|&y| (y as f64 / sigma).powi(power)).sum::<f64>() / N as f64;
                let variance = exact(2 * power) - exact(power).powi(2);
                let error = (moment - exact(power)) / (variance / N as f64).sqrt();
                assert!(error.abs() <= NORMAL_LIMIT, "σ = {sigma}: moment {power} is {moment}");
            }
        }
    }

    /// Draws share a word of random bits, but no bit.
    #[test]
    fn draws_are_uncorrelated() {
        let values: Vec<_> = draws(3.0, 20).iter().map(|&y| y as f64 / 3.0).collect();
        for lag in 1..=4 {
            let sum: f64 = values.iter().zip(&values[lag..]).map(|(a, b)| a * b).sum();
            assert!((sum / (N as f64).sqrt()).abs() <= NORMAL_LIMIT, "lag {lag}: {sum}");
        }
    }

    #[test]
    fn the_ends_of_the_range() {
        assert!(draws(SMALLEST_SIGMA, 30).iter().all(|&y| y == 0));
        let large = draws(LARGEST_SIGMA, 31);
        assert_cdf(large.iter().map(|&y| y as f64 / LARGEST_SIGMA).collect(), normal_cdf);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 9e-4, 1.1e12] {
            let error = DiscreteGaussian::new(bad).unwrap_err();
            assert!(error.to_string().contains("2^-10 to 2^40"), "{error}");
        }
    }

    #[test]
    fn one_draw_is_the_first_of_many() {
        let gaussian = DiscreteGaussian::new(1e5).unwrap();
        let one = gaussian.sample(&mut ChaCha12Rng::seed_from_u64(40));
        assert_eq!(one, draws(1e5, 40)[0]);
    }

    /// OpenDP's sampler cannot be seeded: this test fails by chance with probability 4α.
    #[test]
    fn opendp_draws_from_the_same_distribution() {
        const DRAWS: usize = 20_000;
        for (seed, (sigma, scale)) in
            [(0.7f64, "7/10"), (3.0, "3"), (10.5, "21/2"), (200.0, "200")].into_iter().enumerate()
        {
            let reach = (12.0 * sigma).ceil() as i64;
            let theirs: Vec<i64> = (0..DRAWS)
                .map(|_| sample_discrete_gaussian(scale.parse().unwrap()).unwrap())
                .map(|y| y.try_into().unwrap())
                .collect();
            let ours = draws(sigma, 50 + seed as u64);
            let (ours, outside) = histogram(&ours[..DRAWS], reach);
            let (theirs, outside_theirs) = histogram(&theirs, reach);
            assert_eq!((outside, outside_theirs), (0, 0));
            assert_same_distribution(&ours, &theirs);
        }
    }

    proptest! {
        /// For σ = n/2¹⁰, in integers: σ² ≤ scaled·t/2^shift ≤ σ²·(1 + 2⁻³¹).
        #[test]
        fn sigma_is_rounded_up(bits in 1..=50u32, low in any::<u64>()) {
            let n = (1u64 << (bits - 1)) | low & ((1 << (bits - 1)) - 1);
            let sigma = n as f64 / 1024.0;
            let gaussian = DiscreteGaussian::new(sigma).unwrap();
            let used = (u128::from(gaussian.scaled) * u128::from(gaussian.t)) << 20;
            let asked = u128::from(n).pow(2) << gaussian.shift;
            prop_assert!(used >= asked);
            prop_assert!(used - asked <= asked >> 31);
            prop_assert!((sigma..=sigma * (1.0 + 1e-9)).contains(&gaussian.sigma()));
            // A γ that fits: denominators below 2¹²⁷, squares below 2¹²⁸.
            prop_assert!(gaussian.shift <= 51 && gaussian.scaled < 1 << 62);
            prop_assert!(used >> 20 < 1 << (126 - gaussian.shift));
        }
    }
}
