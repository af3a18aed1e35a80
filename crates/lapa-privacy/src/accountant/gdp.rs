//! Gaussian differential privacy: exact for Gaussian noise without sampling.
//!
//! μ = 1/z = Δ/σ for one release, and μ² adds up (Dong, Roth & Su 2022, Corollary 3.3), also when
//! mechanisms are chosen adaptively.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2};

use super::Accountant;
use crate::error::{AccountError, check_delta, check_mechanism};
use crate::event::Mechanism;
use crate::math::erfcx;
use crate::range::{OutOfRange, check, not_negative, positive};
use crate::rounding::{add_up, border, sqrt_up};

/// Adds up μ².
#[derive(Clone, Debug, Default)]
pub struct Gdp {
    mu_squared: f64,
}

impl Gdp {
    /// Nothing released yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// μ of everything released so far.
    pub fn mu(&self) -> f64 {
        sqrt_up(self.mu_squared)
    }
}

impl Accountant for Gdp {
    fn name(&self) -> &'static str {
        "gdp"
    }

    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError> {
        let cost = mu_squared(mechanism, self.name())?;
        if count > 0 {
            self.mu_squared = add_up(self.mu_squared, (cost * f64::from(count)).next_up());
        }
        Ok(())
    }

    fn epsilon(&self, delta: f64) -> Result<f64, AccountError> {
        epsilon(self.mu(), delta)
    }
}

/// μ² = 1/z² of one release, not below; ∞ without noise.
pub(crate) fn mu_squared(
    mechanism: &Mechanism,
    accountant: &'static str,
) -> Result<f64, AccountError> {
    check_mechanism(mechanism)?;
    match *mechanism {
        Mechanism::Gaussian { noise_multiplier } => {
            Ok(((1.0 / noise_multiplier).next_up() / noise_multiplier).next_up())
        }
        Mechanism::NonPrivate => Ok(f64::INFINITY),
        mechanism => Err(AccountError::Unsupported { accountant, mechanism }),
    }
}

/// δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) of a μ-GDP mechanism (Balle & Wang 2018, Theorem 8;
/// Dong, Roth & Su 2022, Corollary 2.13), not below. μ may be ∞.
pub fn delta(mu: f64, epsilon: f64) -> Result<f64, AccountError> {
    let ln_delta = ln_delta(mu, epsilon)?;
    if ln_delta == f64::NEG_INFINITY {
        return Ok(0.0);
    }
    Ok(ln_delta.exp().next_up().min(1.0))
}

/// ln of [`delta`], not below, without underflow.
pub fn ln_delta(mu: f64, epsilon: f64) -> Result<f64, AccountError> {
    check_mu(mu)?;
    Ok(ln_delta_of(mu, not_negative("epsilon", epsilon)?))
}

/// The smallest ε ≥ 0 with δ(ε) ≤ `delta` for a μ-GDP mechanism, not below; ∞ for μ = ∞.
pub fn epsilon(mu: f64, delta: f64) -> Result<f64, AccountError> {
    check_mu(mu)?;
    let ln_target = check_delta(delta)?.ln();
    let enough = |epsilon: f64| ln_delta_of(mu, epsilon) <= ln_target;
    if enough(0.0) {
        return Ok(0.0);
    }
    // δ(ε) ≤ Φ(−a) ≤ e^{−a²/2}/2 with ε = aμ + μ²/2; the rest is for rounding.
    let most = (mu * tail(ln_target) + mu * mu / 2.0) * (1.0 + 1e-9);
    if !most.is_finite() || !enough(most) {
        return Ok(f64::INFINITY);
    }
    Ok(border(most, 0.0, enough))
}

/// The largest μ with δ(ε) ≤ `delta` at `epsilon`, not above.
pub fn mu(epsilon: f64, delta: f64) -> Result<f64, AccountError> {
    positive("epsilon", epsilon)?;
    let ln_target = check_delta(delta)?.ln();
    let enough = |mu: f64| ln_delta_of(mu, epsilon) <= ln_target;
    // The same bound as in `epsilon`, solved for μ.
    let half = tail(ln_target) / 2.0;
    let least = epsilon / (half + (half * half + epsilon / 2.0).sqrt()) * (1.0 - 1e-9);
    let least = least.max(f64::MIN_POSITIVE);
    if !enough(least) {
        return Ok(0.0);
    }
    let mut too_much = 2.0 * least;
    while enough(too_much) {
        too_much *= 2.0;
    }
    Ok(border(least, too_much, enough))
}

/// The smallest a ≥ 0 with e^{−a²/2}/2 ≤ δ.
fn tail(ln_delta: f64) -> f64 {
    (-2.0 * (ln_delta + LN_2)).max(0.0).sqrt()
}

fn check_mu(mu: f64) -> Result<f64, OutOfRange> {
    check("mu", mu, mu >= 0.0, "a number from 0")
}

/// ln δ(ε), raised by a bound on its own rounding error.
///
/// With a = ε/μ − μ/2 and b = ε/μ + μ/2, e^ε = e^{(b² − a²)/2}, so that
/// δ = ½e^{−a²/2}·(erfcx(a/√2) − erfcx(b/√2)): no factor overflows for a ≥ 0.
fn ln_delta_of(mu: f64, epsilon: f64) -> f64 {
    if mu == 0.0 {
        return f64::NEG_INFINITY;
    }
    if mu == f64::INFINITY {
        return 0.0;
    }
    let (a, b) = (epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0);
    if a > 1e100 && mu <= a {
        // The products below would overflow; the factor erfcx − erfcx ≤ 1 is lost in rounding.
        return (-a * a / 2.0 * (1.0 - 16.0 * f64::EPSILON)).max(f64::MIN);
    }
    let (x, width) = (a * FRAC_1_SQRT_2, mu * FRAC_1_SQRT_2);
    let ln_delta = if width < 0.1 * x.max(1.0) {
        erfcx_drop(x, width).ln() - LN_2 - a * a / 2.0
    } else if a >= 0.0 {
        (erfcx(x) - erfcx(b * FRAC_1_SQRT_2)).ln() - LN_2 - a * a / 2.0
    } else {
        // The same, with erfcx(x) = 2e^{x²} − erfcx(−x).
        let rest = (erfcx(-x) + erfcx(b * FRAC_1_SQRT_2)) / 2.0 * (-a * a / 2.0).exp();
        (-rest).ln_1p()
    };
    // a and b carry an error of b·EPSILON, so a²/2 one of |a|·b·EPSILON; the functions carry up to
    // two hundred units of the last place.
    let raised = ln_delta + f64::EPSILON * (512.0 + 4.0 * a.abs() * b);
    // δ ≤ 1 is also what is left to say where the error bound overflows.
    if raised < 0.0 { raised } else { 0.0 }
}

/// erfcx(x) − erfcx(x + width) without cancellation where width is small against max(x, 1): the
/// integral of −erfcx' by five-point Gauss–Legendre quadrature, whose relative error is below
/// 10⁻¹⁷ there.
fn erfcx_drop(x: f64, width: f64) -> f64 {
    const NODES: [(f64, f64); 5] = [
        (0.046_910_077_030_668_004, 0.118_463_442_528_094_54),
        (0.230_765_344_947_158_45, 0.239_314_335_249_683_23),
        (0.5, 0.284_444_444_444_444_44),
        (0.769_234_655_052_841_6, 0.239_314_335_249_683_23),
        (0.953_089_922_969_332, 0.118_463_442_528_094_54),
    ];
    width * NODES.iter().map(|(node, weight)| weight * erfcx_fall(x + width * node)).sum::<f64>()
}

/// −erfcx'(t) = 2/√π − 2t·erfcx(t), for t > −1. From 2 on by the continued fraction
/// erfcx(t) = (1/√π)/(t + K) (DLMF 7.9.2), which leaves (2/√π)·K/(t + K).
fn erfcx_fall(t: f64) -> f64 {
    if t < 2.0 {
        return FRAC_2_SQRT_PI - 2.0 * t * (t * t).exp() * libm::erfc(t);
    }
    let k = 0.5 / (2..=60).rev().fold(t, |tail, k| t + f64::from(k) / 2.0 / tail);
    FRAC_2_SQRT_PI * k / (t + k)
}

#[cfg(test)]
mod tests;
