//! Student's t distribution, with a whole number of degrees of freedom, at least 1.

use std::f64::consts::FRAC_2_PI;

/// P(|T| < t): Abramowitz and Stegun 26.7.3 and 26.7.4.
fn within(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = !freedom.is_multiple_of(2);
    // cos θ + 2/3 cos³θ + …, or 1 + 1/2 cos²θ + …
    let (mut term, mut k) = if odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = 0.0;
    while k <= freedom {
        sum += term;
        term *= f64::from(k - 1) / f64::from(k) * cosine * cosine;
        k += 2;
    }
    if odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// P(T > t).
pub fn upper_tail(t: f64, freedom: u32) -> f64 {
    let beyond = 0.5 * (1.0 - within(t.abs(), freedom)).max(0.0);
    if t >= 0.0 { beyond } else { 1.0 - beyond }
}

/// The t with P(|T| < t) = `confidence`.
pub fn quantile(confidence: f64, freedom: u32) -> f64 {
    let (mut low, mut high) = (0.0, 13.0);
    while within(high, freedom) < confidence && high < 1e9 {
        high *= 2.0;
    }
    // P(|T| < t) rises with t; 80 halvings leave less than a unit of the last place.
    for _ in 0..80 {
        let t = 0.5 * (low + high);
        if within(t, freedom) < confidence { low = t } else { high = t }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `scipy.stats.t.ppf(0.975, df)`.
    #[test]
    fn quantiles_match_scipy() {
        for (freedom, expected) in [
            (1, 12.706_204_736_174_694),
            (2, 4.302_652_729_749_462),
            (3, 3.182_446_305_283_707_8),
            (4, 2.776_445_105_197_793_4),
            (9, 2.262_157_162_798_205),
            (30, 2.042_272_456_301_237_8),
        ] {
            let quantile = quantile(0.95, freedom);
            assert!((quantile / expected - 1.0).abs() < 1e-13, "{freedom}: {quantile}");
        }
    }

    /// scipy 1.17.1: `stats.t.sf(t, df)`.
    #[test]
    fn tails_match_scipy() {
        for (t, freedom, expected) in [
            (2.5, 5, 0.027_245_049_671_188_13),
            (-1.2, 9, 0.869_613_401_304_769_3),
            (0.3, 1, 0.407_226_420_922_257_7),
        ] {
            assert!((upper_tail(t, freedom) - expected).abs() < 1e-13, "{t} {freedom}");
        }
    }
}
