//! Zero-concentrated differential privacy: one number for continuous and discrete Gaussian noise.

use super::Accountant;
use super::gdp;
use crate::error::{AccountError, check_delta};
use crate::event::Mechanism;
use crate::rounding::add_up;

/// Adds up ρ.
///
/// ρ = μ²/2 for the Gaussian mechanism (Bun & Steinke 2016, Proposition 1.6) and for the discrete
/// Gaussian (Canonne, Kamath & Steinke 2020, Theorem 4); ρ adds up (Bun & Steinke, Lemma 1.7).
#[derive(Clone, Debug, Default)]
pub struct Zcdp {
    rho: f64,
}

impl Zcdp {
    /// Nothing released yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// ρ of everything released so far.
    pub fn rho(&self) -> f64 {
        self.rho
    }
}

impl Accountant for Zcdp {
    fn name(&self) -> &'static str {
        "zcdp"
    }

    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError> {
        let as_continuous = match *mechanism {
            Mechanism::DiscreteGaussian { noise_multiplier } => {
                Mechanism::Gaussian { noise_multiplier }
            }
            mechanism => mechanism,
        };
        let rho = gdp::mu_squared(&as_continuous, self.name())? / 2.0;
        if count > 0 {
            self.rho = add_up(self.rho, (rho * f64::from(count)).next_up());
        }
        Ok(())
    }

    /// ε = ρ + 2√(ρ·ln(1/δ)) (Bun & Steinke 2016, Proposition 1.3). Tighter conversions go through
    /// Rényi orders, which is what the RDP accountant is for.
    fn epsilon(&self, delta: f64) -> Result<f64, AccountError> {
        let tail = -check_delta(delta)?.ln();
        let epsilon = self.rho + 2.0 * (self.rho * tail).sqrt();
        Ok(epsilon * (1.0 + 8.0 * f64::EPSILON))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ρ = T/(2z²) = 0.0213…, by hand: ρ + 2·√(ρ·ln 1e5) with z = √(2·ln 125000)/0.1.
    #[test]
    fn golden_value() {
        for mechanism in [
            Mechanism::Gaussian { noise_multiplier: 48.448_052_626_053_89 },
            Mechanism::DiscreteGaussian { noise_multiplier: 48.448_052_626_053_89 },
        ] {
            let mut zcdp = Zcdp::new();
            zcdp.compose(&mechanism, 100).unwrap();
            assert!((zcdp.rho() - 0.021_301_851_552_9).abs() < 1e-12, "{}", zcdp.rho());
            let epsilon = zcdp.epsilon(1e-5).unwrap();
            assert!((epsilon - 1.01).abs() < 5e-3, "{epsilon}");
        }
    }
}
