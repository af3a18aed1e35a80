//! Binomial tails, and the limits on a probability that follow from counts.

use super::{MARGIN, last_that};

/// P(X ≥ `least`) for X ~ Binomial(`trials`, `p`), by the incomplete beta function
/// I_p(k, n − k + 1) (DLMF 8.17.5).
pub fn binomial_tail(least: u64, trials: u64, p: f64) -> f64 {
    match (least, least <= trials) {
        (0, _) => 1.0,
        (_, false) => 0.0,
        _ => incomplete_beta(least as f64, (trials - least) as f64 + 1.0, p.clamp(0.0, 1.0)),
    }
}

/// The one-sided upper limit of Clopper & Pearson (1934) on a probability, at level `alpha`, after
/// `hits` of `trials`: whatever the probability, the limit is below it with a chance of at most α.
pub fn upper_limit(hits: u64, trials: u64, alpha: f64) -> f64 {
    if hits >= trials {
        return 1.0;
    }
    // The smallest p at which so few hits have a chance of α: 1 − P(X ≥ hits + 1) ≤ α.
    let likely = |p: f64| binomial_tail(trials - hits, trials, 1.0 - p) > alpha;
    let limit = last_that(0.0, 1.0, likely);
    (limit + limit.min(1.0 - limit) * MARGIN + f64::EPSILON).min(1.0)
}

/// The lower limit that belongs to [`upper_limit`].
pub fn lower_limit(hits: u64, trials: u64, alpha: f64) -> f64 {
    if hits == 0 {
        return 0.0;
    }
    let limit = last_that(0.0, 1.0, |p| binomial_tail(hits, trials, p) <= alpha);
    (limit - limit.min(1.0 - limit) * MARGIN).max(0.0)
}

/// I_x(a, b), by its continued fraction (DLMF 8.17.22) in the form of Lentz.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast below the mean; above it there is I_x(a, b) = 1 − I_{1−x}(b, a).
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - continued_fraction(b, a, 1.0 - x, x);
    }
    continued_fraction(a, b, x, 1.0 - x)
}

fn continued_fraction(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = (a * x.ln() + b * complement.ln() - ln_beta).exp() / a;
    let nonzero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for step in 1..1_000_000u32 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / nonzero(1.0 + term * d);
            c = nonzero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction - before).abs() <= f64::EPSILON * fraction.abs() {
            break;
        }
    }
    front * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: `binom.sf(k - 1, n, p)`.
    #[test]
    fn tails_match_scipy() {
        for (least, trials, p, expected) in [
            (60, 100, 0.5, 0.028_443_966_820_490_444),
            (7700, 10_000, 0.76, 0.009_668_917_292_408_354),
            (1, 10, 1e-9, 9.999_999_955_000_002e-9),
            (38_500, 100_000, 0.3829, 0.086_491_340_617_830_18),
        ] {
            let tail = binomial_tail(least, trials, p);
            assert!((tail / expected - 1.0).abs() < 1e-9, "{least} of {trials}: {tail}");
        }
        assert_eq!(binomial_tail(0, 5, 0.2), 1.0);
        assert_eq!(binomial_tail(6, 5, 0.2), 0.0);
        assert_eq!((binomial_tail(5, 5, 0.0), binomial_tail(5, 5, 1.0)), (0.0, 1.0));
    }

    /// scipy 1.17.1: `beta.ppf(alpha, k, n - k + 1)` and `beta.ppf(1 - alpha, k + 1, n - k)`.
    #[test]
    fn limits_match_scipy_from_outside() {
        for (hits, trials, alpha, low, high) in [
            (0, 100, 0.025, 0.0, 0.036_216_692_645_176_41),
            (3, 100, 0.025, 0.006_229_971_538_306_395, 0.085_176_052_974_280_02),
            (50, 100, 0.05, 0.413_621_714_630_911_74, 0.586_378_285_369_088_2),
            (3085, 10_000, 0.025, 0.299_454_264_718_541_4, 0.317_657_381_343_271_54),
            (99_999, 100_000, 0.05, 0.999_952_562_242_826_1, 0.999_999_487_067_187_7),
            (100, 100, 0.05, 0.970_486_950_392_960_1, 1.0),
            (7602, 10_000, 0.05, 0.753_071_536_896_883_7, 0.767_216_264_237_576_2),
        ] {
            let (lower, upper) =
                (lower_limit(hits, trials, alpha), upper_limit(hits, trials, alpha));
            assert!(lower <= low && low - lower < 1e-8, "{hits} of {trials}: {lower}");
            assert!(upper >= high && upper - high < 1e-8, "{hits} of {trials}: {upper}");
        }
    }
}
