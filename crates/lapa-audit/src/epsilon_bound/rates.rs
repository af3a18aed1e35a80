//! Bounds from error rates, whatever the mechanism.

use super::{MARGIN, upper_limit};

/// Errors of a test that takes a score above a threshold for the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Scores without the record that were taken for it.
    pub false_positives: u64,
    /// Scores without the record.
    pub negatives: u64,
    /// Scores with the record that were not taken for it.
    pub false_negatives: u64,
    /// Scores with the record.
    pub positives: u64,
}

/// ε ≥ max(ln((1 − δ − FPR)/FNR), ln((1 − δ − FNR)/FPR)) (Kairouz, Oh & Viswanath 2015), with both
/// rates at their upper limits, each at `alpha`/2: whatever the mechanism, it is above ε with a
/// chance of at most α. The threshold must not come from these scores. Rounded down, from 0.
pub fn epsilon_lower(errors: Errors, delta: f64, alpha: f64) -> f64 {
    let fpr = upper_limit(errors.false_positives, errors.negatives, alpha / 2.0);
    let fnr = upper_limit(errors.false_negatives, errors.positives, alpha / 2.0);
    let bound = |a: f64, b: f64| ((1.0 - delta - a) / b).max(1.0).ln();
    (bound(fpr, fnr).max(bound(fnr, fpr)) * (1.0 - MARGIN)).max(0.0)
}

/// A threshold, chosen on scores that no bound is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreThreshold(pub f64);

/// Scores of either kind that are tried as thresholds, evenly from the lowest to the highest.
const CANDIDATES: usize = 64;

impl ScoreThreshold {
    /// The threshold that promises the best bound on `trials` further scores of either kind, by
    /// scores `without` and `with` the record.
    pub fn choose(without: &[f64], with: &[f64], trials: u64, delta: f64, alpha: f64) -> Self {
        let sorted = |scores: &[f64]| {
            let mut scores = scores.to_vec();
            scores.sort_by(f64::total_cmp);
            scores
        };
        let (without, with) = (sorted(without), sorted(with));
        let mut candidates: Vec<f64> = [&without, &with]
            .into_iter()
            .flat_map(|scores| {
                let last = scores.len().saturating_sub(1);
                let steps = CANDIDATES.min(scores.len());
                (0..steps).map(move |i| scores[i * last / (steps - 1).max(1)])
            })
            .collect();
        candidates.sort_by(f64::total_cmp);
        candidates.dedup();
        let promise = |threshold: f64| {
            let expected = |share: f64| (share * trials as f64).round() as u64;
            let below = |scores: &[f64]| {
                let count = scores.partition_point(|&score| score <= threshold);
                count as f64 / scores.len().max(1) as f64
            };
            let errors = Errors {
                false_positives: expected(1.0 - below(&without)),
                negatives: trials,
                false_negatives: expected(below(&with)),
                positives: trials,
            };
            epsilon_lower(errors, delta, alpha)
        };
        let mut best = (f64::NEG_INFINITY, 0.0);
        for threshold in candidates {
            let promised = promise(threshold);
            if promised > best.0 {
                best = (promised, threshold);
            }
        }
        Self(best.1)
    }

    /// The errors of the test on scores `without` and `with` the record.
    pub fn errors(self, without: &[f64], with: &[f64]) -> Errors {
        let above = |scores: &[f64]| scores.iter().filter(|&&score| score > self.0).count() as u64;
        Errors {
            false_positives: above(without),
            negatives: without.len() as u64,
            false_negatives: with.len() as u64 - above(with),
            positives: with.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(false_positives: u64, false_negatives: u64, trials: u64) -> Errors {
        Errors { false_positives, negatives: trials, false_negatives, positives: trials }
    }

    /// With no error in n draws, FPR and FNR are at most 1 − (α/2)^(1/n) each.
    #[test]
    fn a_perfect_test_is_worth_the_logarithm_of_its_draws() {
        for trials in [100, 10_000] {
            let limit = 1.0 - 0.025f64.powf(1.0 / trials as f64);
            let expected = ((1.0 - 1e-5 - limit) / limit).ln();
            let bound = epsilon_lower(errors(0, 0, trials), 1e-5, 0.05);
            assert!(bound <= expected && expected - bound < 1e-6, "{trials}: {bound} {expected}");
        }
    }

    #[test]
    fn useless_tests_are_worth_nothing() {
        assert_eq!(epsilon_lower(errors(50, 50, 100), 1e-5, 0.05), 0.0);
        assert_eq!(epsilon_lower(errors(0, 100, 100), 1e-5, 0.05), 0.0);
        assert_eq!(epsilon_lower(errors(0, 0, 0), 1e-5, 0.05), 0.0);
    }

    /// Randomized response with ε = ln 3: one side is enough.
    #[test]
    fn randomized_response_is_not_overestimated() {
        let bound = epsilon_lower(errors(25_000, 25_000, 100_000), 0.0, 0.05);
        assert!(bound < 3f64.ln() && bound > 3f64.ln() - 0.03, "{bound}");
    }

    #[test]
    fn a_threshold_separates_what_can_be_separated() {
        let (without, with) = ([0.0, 1.0, 2.0, 3.0], [3.5, 4.0, 5.0, 6.0]);
        let threshold = ScoreThreshold::choose(&without, &with, 1000, 1e-5, 0.05);
        assert_eq!(threshold.errors(&without, &with), errors(0, 0, 4));
        assert_eq!(ScoreThreshold::choose(&[], &[], 10, 1e-5, 0.05), ScoreThreshold(0.0));
    }
}
