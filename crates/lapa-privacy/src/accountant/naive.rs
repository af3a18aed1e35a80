//! Composition as in the paper: the classic Gaussian formula per release, then basic or advanced
//! composition.
//!
//! Both accountants read ε_t = √(2 ln(1.25/δ))/z_t for each release (Dwork & Roth 2014, Theorem
//! A.1; the paper's condition on σ, below its eq. (19)). That theorem covers ε_t in (0, 1) only: see
//! `in_range`. Above it the formula is evaluated regardless, as the paper does, and proves nothing
//! (at δ = 10⁻⁵ it is below the exact value from ε_t = 8.42 on).
//!
//! The δ given to [`Accountant::epsilon`] is that of *each release*, not of the whole: that one is
//! `total_delta`.

use super::Accountant;
use crate::error::{AccountError, check_delta, check_mechanism};
use crate::event::{Mechanism, classic_factor};
use crate::rounding::add_up;

/// Above the rounding of what follows a sum.
const UP: f64 = 1.0 + 16.0 * f64::EPSILON;

/// Basic composition: the sum of the releases' ε, as in the paper (Dwork & Roth 2014, Theorem
/// 3.16).
pub type Naive = Classic<false>;

/// Advanced composition: √(2 ln(1/δ)·Σε_t²) + Σε_t(e^{ε_t} − 1) with slack δ' = δ (Dwork & Roth
/// 2014, Theorem 3.20, and for unequal ε_t the looser first step of Kairouz, Oh & Viswanath 2015,
/// Theorem 3.5).
pub type Advanced = Classic<true>;

/// Composition of the classic formula, basic or advanced.
#[derive(Clone, Debug, Default)]
pub struct Classic<const ADVANCED: bool> {
    /// Noise multipliers with how often each was used; 0 stands for no noise.
    releases: Vec<(f64, u32)>,
}

impl<const ADVANCED: bool> Classic<ADVANCED> {
    /// Nothing released yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// δ of the whole for `delta` per release: T·δ, and (T + 1)·δ with that of the slack. From 1 on
    /// nothing is proved.
    pub fn total_delta(&self, delta: f64) -> f64 {
        let count: f64 = self.releases.iter().map(|&(_, count)| f64::from(count)).sum();
        if ADVANCED { (count + 1.0) * delta } else { count * delta }
    }

    /// True if every release is in the range of the classic formula's theorem, ε_t < 1.
    pub fn in_range(&self, delta: f64) -> bool {
        self.releases.iter().all(|&(z, _)| classic(z, delta) < 1.0)
    }

    /// Σ f(ε_t), ε_t not below.
    fn sum(&self, delta: f64, f: impl Fn(f64) -> f64) -> f64 {
        let term = |&(z, count): &(f64, u32)| f64::from(count) * f(classic(z, delta) * UP);
        self.releases.iter().map(term).fold(0.0, add_up)
    }
}

impl<const ADVANCED: bool> Accountant for Classic<ADVANCED> {
    fn name(&self) -> &'static str {
        if ADVANCED { "advanced" } else { "naive" }
    }

    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError> {
        check_mechanism(mechanism)?;
        let noise_multiplier = match *mechanism {
            Mechanism::Gaussian { noise_multiplier } => noise_multiplier,
            Mechanism::NonPrivate => 0.0,
            mechanism => {
                return Err(AccountError::Unsupported { accountant: self.name(), mechanism });
            }
        };
        if count > 0 {
            self.releases.push((noise_multiplier, count));
        }
        Ok(())
    }

    /// `delta` is that of each release, and the slack.
    fn epsilon(&self, delta: f64) -> Result<f64, AccountError> {
        let slack = -2.0 * check_delta(delta)?.ln();
        if !ADVANCED {
            return Ok(self.sum(delta, |epsilon| epsilon) * UP);
        }
        let squares = self.sum(delta, |epsilon| epsilon * epsilon);
        let drift = self.sum(delta, |epsilon| epsilon * epsilon.exp_m1());
        Ok(((slack * squares).sqrt() + drift) * UP)
    }
}

/// ε_t = √(2 ln(1.25/δ))/z_t (Dwork & Roth 2014, Theorem A.1).
fn classic(noise_multiplier: f64, delta: f64) -> f64 {
    classic_factor(delta) / noise_multiplier
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{a} ≠ {b}");
    }

    /// z at which the classic formula gives ε₀ = 0.1 at δ = 1e-5: √(2·ln 125000)/0.1.
    const Z: f64 = 48.448_052_626_053_89;

    #[test]
    fn golden_values() {
        let gaussian = Mechanism::Gaussian { noise_multiplier: Z };
        let (mut naive, mut advanced) = (Naive::new(), Advanced::new());
        naive.compose(&gaussian, 100).unwrap();
        advanced.compose(&gaussian, 100).unwrap();
        close(naive.epsilon(1e-5).unwrap(), 10.0, 1e-14);
        // 0.1·√(200·ln 1e5) + 10·(e^0.1 − 1) = 4.798526 + 1.051709
        close(advanced.epsilon(1e-5).unwrap(), 5.850_235, 1e-6);
        close(naive.total_delta(1e-5), 1e-3, 1e-12);
        close(advanced.total_delta(1e-5), 1.01e-3, 1e-12);
        assert!(naive.in_range(1e-5) && advanced.in_range(1e-5));
    }

    /// Published: σ/Δ of the classic formula for ε = 0.1, 1 and 8 at δ = 1e-5.
    #[test]
    fn classic_noise() {
        for (epsilon, z, in_range) in [(0.1, 48.4, true), (1.01, 4.80, false), (8.0, 0.606, false)]
        {
            let mut naive = Naive::new();
            naive.compose(&Mechanism::Gaussian { noise_multiplier: z }, 1).unwrap();
            close(naive.epsilon(1e-5).unwrap(), epsilon, 2e-3);
            assert_eq!(naive.in_range(1e-5), in_range);
        }
    }

    /// Two unequal groups by hand: ε = 0.5 (3 times) and 0.25 (5 times).
    #[test]
    fn unequal_releases() {
        let classic = (2.0 * 125_000f64.ln()).sqrt();
        let (mut naive, mut advanced) = (Naive::new(), Advanced::new());
        for (epsilon, count) in [(0.5, 3), (0.25, 5)] {
            let gaussian = Mechanism::Gaussian { noise_multiplier: classic / epsilon };
            naive.compose(&gaussian, count).unwrap();
            advanced.compose(&gaussian, count).unwrap();
        }
        close(naive.epsilon(1e-5).unwrap(), 2.75, 1e-14);
        let squares: f64 = 3.0 * 0.25 + 5.0 * 0.0625;
        let drift = 1.5 * (0.5f64.exp() - 1.0) + 1.25 * (0.25f64.exp() - 1.0);
        let expected = (2.0 * 1e5f64.ln() * squares).sqrt() + drift;
        close(advanced.epsilon(1e-5).unwrap(), expected, 1e-14);
    }
}
