//! The normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// Φ(x)
pub fn normal_cdf(x: f64) -> f64 {
    libm::erfc(-x * FRAC_1_SQRT_2) / 2.0
}

/// Φ⁻¹(p); ±∞ at the ends.
pub fn normal_quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    if p > 0.0 {
        // Φ(−39) is not a number above 0 any more.
        super::last_that(-39.0, 0.0, |x| normal_cdf(x) <= p)
    } else {
        f64::NEG_INFINITY
    }
}

/// ln Φ(x), also where Φ(x) is 0 in floating point: there by the continued fraction of the tail
/// (DLMF 7.9.2).
pub(super) fn ln_normal_cdf(x: f64) -> f64 {
    if x > -10.0 {
        return normal_cdf(x).ln();
    }
    let z = -x * FRAC_1_SQRT_2;
    let tail = (1..=60).rev().fold(z, |tail, k| z + f64::from(k) / 2.0 / tail);
    -z * z - LN_2 - (tail * std::f64::consts::PI.sqrt()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `norm.ppf(p)`.
    #[test]
    fn quantiles_match_scipy() {
        for (p, expected) in [
            (1e-12, -7.034_483_825_301_131),
            (1e-5, -4.264_890_793_922_825),
            (0.025, -1.959_963_984_540_054_5),
            (0.3, -0.524_400_512_708_040_9),
            (0.5, 0.0),
            (0.76, 0.706_302_562_840_087_4),
            (0.99999, 4.264_890_793_923_841),
        ] {
            assert!((normal_quantile(p) - expected).abs() < 1e-10, "{p}: {}", normal_quantile(p));
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    /// mpmath: log(ncdf(x)).
    #[test]
    fn logarithms_hold_in_the_far_tail() {
        for (x, expected) in [(-1000.0, -500_007.826_694_812_17), (-8.0, -35.013_437_159_914_55)] {
            assert!((ln_normal_cdf(x) / expected - 1.0).abs() < 1e-12, "{x}");
        }
    }
}
