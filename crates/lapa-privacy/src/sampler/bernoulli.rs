//! Coins with an exact bias, from fair bits and integers alone.

use rand::Rng;

/// Fair bits, one at a time.
pub(crate) struct Bits<'a, R: ?Sized> {
    rng: &'a mut R,
    word: u64,
    left: u32,
}

impl<'a, R: Rng + ?Sized> Bits<'a, R> {
    pub(crate) fn new(rng: &'a mut R) -> Self {
        Self { rng, word: 0, left: 0 }
    }

    /// A fair coin.
    #[inline]
    pub(crate) fn bit(&mut self) -> bool {
        if self.left == 0 {
            (self.word, self.left) = (self.rng.next_u64(), u64::BITS);
        }
        let bit = self.word >> 63 == 1;
        self.word <<= 1;
        self.left -= 1;
        bit
    }

    /// Uniform on 0..`end`, which is not 0: as many bits as the largest has, drawn again when too
    /// large.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let bits = u64::BITS - (end - 1).leading_zeros();
        loop {
            let value = (0..bits).fold(0, |value, _| value << 1 | u64::from(self.bit()));
            if value < end {
                return value;
            }
        }
    }

    /// Bernoulli(p) with p = `numerator`/`denominator` < 1 and a denominator below 2¹²⁷: whether a
    /// uniform number is below p, both compared bit by bit up to the first that differs.
    #[inline]
    pub(crate) fn ratio(&mut self, numerator: u128, denominator: u128) -> bool {
        let mut rest = numerator;
        while rest != 0 {
            rest <<= 1;
            let digit = rest >= denominator;
            if digit {
                rest -= denominator;
            }
            if self.bit() != digit {
                return digit;
            }
        }
        false
    }

    /// Bernoulli(e⁻¹): Canonne, Kamath and Steinke 2020, Algorithm 1 for γ = 1.
    #[inline]
    pub(crate) fn exp_minus_one(&mut self) -> bool {
        // A₁ ~ Bernoulli(1/1) is always 1.
        let mut k = 2;
        while self.ratio(1, k) {
            k += 1;
        }
        k % 2 == 1
    }

    /// Bernoulli(e^{−γ}) with γ = `numerator`/`denominator` ≥ 0 and a denominator below 2¹²⁷:
    /// Canonne, Kamath and Steinke 2020, Algorithm 1.
    #[inline]
    pub(crate) fn exp_minus(&mut self, numerator: u128, denominator: u128) -> bool {
        let mut rest = numerator;
        while rest >= denominator {
            if !self.exp_minus_one() {
                return false;
            }
            rest -= denominator;
        }
        // Bernoulli(γ/k) as two coins, γ and 1/k: the denominator does not grow with k.
        let mut k = 1;
        while self.ratio(rest, denominator) && (k == 1 || self.ratio(1, k)) {
            k += 1;
        }
        k % 2 == 1
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rand::{SeedableRng, TryRng};
    use rand_chacha::ChaCha12Rng;

    use super::*;
    use crate::sampler::statistics::{assert_coin, assert_distribution};

    const N: u64 = 1_000_000;

    /// One word, then zeros.
    struct Once(u64);

    impl TryRng for Once {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> Result<u32, Infallible> {
            self.try_next_u64().map(|word| word as u32)
        }

        fn try_next_u64(&mut self) -> Result<u64, Infallible> {
            Ok(std::mem::take(&mut self.0))
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
            bytes.fill(0);
            Ok(())
        }
    }

    fn count(seed: u64, mut coin: impl FnMut(&mut Bits<'_, ChaCha12Rng>) -> bool) -> u64 {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut bits = Bits::new(&mut rng);
        (0..N).map(|_| u64::from(coin(&mut bits))).sum()
    }

    /// For the uniform number u/4096, by cross-multiplication.
    #[test]
    fn ratio_compares_exactly() {
        let small = [(0, 1), (1, 2), (1, 3), (2, 3), (5, 4096), (4095, 4096), (998, 999)];
        let scale = 3u128.pow(60);
        let large = small.map(|(n, d)| (n * scale, d * scale));
        for (numerator, denominator) in small.into_iter().chain(large) {
            for u in 0..4096u64 {
                let accepted = Bits::new(&mut Once(u << 52)).ratio(numerator, denominator);
                assert_eq!(accepted, u128::from(u) * denominator < numerator << 12);
            }
        }
    }

    /// The largest denominator allowed does not overflow.
    #[test]
    fn ratio_of_large_numbers() {
        let denominator = (1 << 127) - 1;
        for (seed, share) in [0.001, 0.25, 0.7, 0.999].into_iter().enumerate() {
            let numerator = (share * denominator as f64) as u128;
            assert_coin(count(seed as u64, |bits| bits.ratio(numerator, denominator)), N, share);
        }
    }

    #[test]
    fn below_is_uniform() {
        for (seed, end) in [2, 3, 10, 1000].into_iter().enumerate() {
            let mut counts = vec![0; end as usize];
            count(seed as u64, |bits| {
                counts[bits.below(end) as usize] += 1;
                true
            });
            assert_distribution(&counts, 0, &vec![1.0 / end as f64; end as usize]);
        }
        assert_eq!(Bits::new(&mut Once(u64::MAX)).below(1), 0);
    }

    #[test]
    fn exp_has_the_exact_probability() {
        assert_coin(count(0, |bits| bits.exp_minus_one()), N, (-1f64).exp());
        assert_eq!(count(1, |bits| bits.exp_minus(0, 7)), N);
        let large = 1 << 120;
        for (seed, (numerator, denominator)) in
            [(1, 100_000), (3, 10), (999, 1000), (1, 1), (17, 10), (8, 1), (5 * large / 3, large)]
                .into_iter()
                .enumerate()
        {
            let accepted = count(seed as u64 + 2, |bits| bits.exp_minus(numerator, denominator));
            assert_coin(accepted, N, (-(numerator as f64) / denominator as f64).exp());
        }
    }
}
