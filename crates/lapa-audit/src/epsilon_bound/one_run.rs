//! Bounds from many canaries in one run (Steinke, Nasr & Jagielski 2023, "Privacy Auditing with
//! One (1) Training Run").

use super::{MARGIN, binomial_tail, last_that};

/// No search goes beyond: e^−ε is then nothing beside 1.
const LARGEST: f64 = 700.0;

/// The chance that an (ε, δ)-differentially private run lets someone guess `correct` or more of
/// `guesses`, at most (Theorem 5.2): of `canaries`, each in or out by a fair coin, all but `guesses`
/// were abstained from.
///
/// With X ~ Binomial(r, e^ε/(e^ε + 1)): P(X ≥ v) + 2mδ·max_i P(v > X ≥ v − i)/i, and 1 at most.
pub fn one_run_p_value(canaries: u64, guesses: u64, correct: u64, epsilon: f64, delta: f64) -> f64 {
    let q = 1.0 / (1.0 + (-epsilon).exp());
    let beta = binomial_tail(correct, guesses, q);
    let (mut alpha, mut sum) = (0.0f64, 0.0f64);
    if delta > 0.0 {
        for i in 1..=correct {
            sum += mass(correct - i, guesses, q, epsilon);
            alpha = alpha.max(sum / i as f64);
        }
    }
    (beta + 2.0 * canaries as f64 * delta * alpha).min(1.0)
}

/// P(X = k) for X ~ Binomial(n, q), with ln(1 − q) = ln q − ε.
fn mass(k: u64, n: u64, q: f64, epsilon: f64) -> f64 {
    let (hits, misses) = (k as f64, (n - k) as f64);
    let choose =
        libm::lgamma(n as f64 + 1.0) - libm::lgamma(hits + 1.0) - libm::lgamma(misses + 1.0);
    (choose + n as f64 * q.ln() - misses * epsilon).exp()
}

/// The ε below which a run would have let `correct` of `guesses` be guessed with a chance of `alpha`
/// at most: a lower bound with confidence 1 − α. Rounded down.
pub fn one_run_epsilon(canaries: u64, guesses: u64, correct: u64, delta: f64, alpha: f64) -> f64 {
    let refuted =
        |epsilon: f64| one_run_p_value(canaries, guesses, correct, epsilon, delta) < alpha;
    if guesses > 0 && refuted(0.0) {
        last_that(0.0, LARGEST, refuted) * (1.0 - MARGIN)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the authors' published function, written again in Python with scipy 1.17.1:
    /// `get_eps_audit(m, r, v, delta, p)`.
    #[test]
    fn bounds_match_the_authors_from_below() {
        for (m, r, v, delta, alpha, expected) in [
            (1000, 1000, 600, 1e-5, 0.05, 0.297_226_953_718_775_17),
            (1000, 100, 95, 1e-5, 0.05, 2.165_175_799_714_052),
            (1000, 1000, 1000, 1e-5, 0.05, 5.782_283_135_394_014),
            (500, 62, 62, 0.0, 0.0125, 2.614_076_009_950_046),
            (2000, 500, 480, 1e-6, 0.05, 2.794_522_640_712_760_4),
            (100, 100, 50, 1e-5, 0.05, 0.0),
            (10_000, 1500, 1429, 1e-5, 0.05, 2.791_400_134_519_598_5),
        ] {
            let bound = one_run_epsilon(m, r, v, delta, alpha);
            assert!(bound <= expected && expected - bound < 1e-7, "{m} {r} {v}: {bound}");
        }
    }

    #[test]
    fn p_values_match_the_authors() {
        for (m, r, v, epsilon, delta, expected) in [
            (1000, 1000, 600, 0.2, 1e-5, 0.001_023_241_215_225_459_9),
            (1000, 100, 95, 2.0, 1e-5, 0.017_824_634_643_071_35),
            (10_000, 1500, 1429, 2.5, 1e-5, 0.003_247_734_990_408_627),
        ] {
            let p = one_run_p_value(m, r, v, epsilon, delta);
            assert!((p / expected - 1.0).abs() < 1e-8, "{m} {r} {v}: {p}");
        }
    }

    /// A slow twin for small numbers: the sums of Theorem 5.2 with exact binomials.
    #[test]
    fn p_values_match_sums_by_hand() {
        let choose = |n: u64, k: u64| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
        for (m, r, v, epsilon, delta) in [(20u64, 12u64, 9u64, 0.7f64, 0.01), (8, 8, 8, 1.5, 0.0)] {
            let q = epsilon.exp() / (epsilon.exp() + 1.0);
            let mass = |k: u64| choose(r, k) * q.powi(k as i32) * (1.0 - q).powi((r - k) as i32);
            let tail: f64 = (v..=r).map(mass).sum();
            let best =
                (1..=v).map(|i| (v - i..v).map(mass).sum::<f64>() / i as f64).fold(0.0, f64::max);
            let expected = (tail + 2.0 * m as f64 * delta * best).min(1.0);
            let p = one_run_p_value(m, r, v, epsilon, delta);
            assert!((p - expected).abs() < 1e-12, "{m} {r} {v}: {p} {expected}");
        }
    }
}
