//! Bounds through μ, for claims that rest on Gaussian noise.

use std::f64::consts::SQRT_2;

use super::normal::ln_normal_cdf;
use super::{MARGIN, last_that, lower_limit, normal_quantile};

/// δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) of a μ-GDP mechanism (Balle & Wang 2018, Theorem 8).
pub fn gdp_delta(mu: f64, epsilon: f64) -> f64 {
    if mu <= 0.0 {
        return 0.0;
    }
    let (near, far) = (mu / 2.0 - epsilon / mu, -mu / 2.0 - epsilon / mu);
    (ln_normal_cdf(near).exp() - (epsilon + ln_normal_cdf(far)).exp()).max(0.0)
}

/// The ε at which a μ-GDP mechanism has δ(ε) = `delta`: it satisfies no smaller one. Rounded down.
pub fn gdp_epsilon(mu: f64, delta: f64) -> f64 {
    if mu == f64::INFINITY {
        return f64::INFINITY;
    }
    let above = |epsilon: f64| gdp_delta(mu, epsilon) > delta;
    if mu.is_nan() || mu <= 0.0 || !above(0.0) {
        return 0.0;
    }
    // δ(ε) ≤ Φ(−a) with ε = aμ + μ²/2, and Φ(−39) is below any δ.
    let most = mu * 39.0 + mu * mu / 2.0;
    (last_that(0.0, most, above) * (1.0 - MARGIN)).max(0.0)
}

/// A lower limit on μ with confidence 1 − `alpha`: in `wins` of `pairs` independent pairs, one draw
/// of either input each, the score was higher on the input with the record.
///
/// The area under the ROC of any test is the chance to win, ties counted half. If a mechanism is
/// μ-GDP, no ROC is above that of N(0, 1) against N(μ, 1) (Dong, Roth & Su 2022, Definition 2.6),
/// whose area is Φ(μ/√2). So P(win) ≤ Φ(μ/√2), and the lower limit of Clopper & Pearson on a
/// probability gives one on μ. It needs neither a threshold nor large numbers. Ties count as lost.
pub fn mu_lower(wins: u64, pairs: u64, alpha: f64) -> f64 {
    let area = lower_limit(wins, pairs, alpha);
    (SQRT_2 * normal_quantile(area) * (1.0 - MARGIN)).max(0.0)
}

#[cfg(test)]
mod tests {
    use lapa_privacy::accountant::gdp;

    use super::*;
    use crate::epsilon_bound::normal_cdf;

    /// Against the accountants, which are never below.
    #[test]
    fn epsilon_of_mu_is_the_accountant_s_from_below() {
        for mu in [1e-3, 0.05, 0.268, 1.0, 3.0, 20.0, 300.0] {
            for delta in [1e-10, 1e-5, 1e-2] {
                let (ours, theirs) = (gdp_epsilon(mu, delta), gdp::epsilon(mu, delta).unwrap());
                assert!(
                    ours <= theirs && theirs - ours <= 1e-6 * (1.0 + theirs),
                    "{mu} {delta}: {ours} {theirs}"
                );
            }
        }
        assert_eq!(gdp_epsilon(0.0, 1e-5), 0.0);
        assert_eq!(gdp_epsilon(f64::INFINITY, 1e-5), f64::INFINITY);
    }

    /// ε = 4.38 at μ = 1.
    #[test]
    fn one_sigma_is_worth_4_38() {
        assert!((gdp_epsilon(1.0, 1e-5) - 4.3775).abs() < 1e-3, "{}", gdp_epsilon(1.0, 1e-5));
    }

    #[test]
    fn a_limit_on_mu_nears_mu_from_below() {
        let chance = normal_cdf(1.0 / SQRT_2);
        for pairs in [100u64, 10_000, 1_000_000] {
            let mu = mu_lower((chance * pairs as f64) as u64, pairs, 0.05);
            let gap = 1.0 - mu;
            // sd of the share of wins, over the slope φ(μ/√2)/√2.
            let expected = 1.645 * (chance * (1.0 - chance) / pairs as f64).sqrt() / 0.2197;
            assert!(gap > 0.9 * expected && gap < 1.3 * expected, "{pairs}: {gap} {expected}");
        }
        assert_eq!(mu_lower(40, 100, 0.05), 0.0);
    }
}
