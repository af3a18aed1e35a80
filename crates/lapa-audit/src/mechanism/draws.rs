//! Many draws of a device's releases, and the bounds that follow.

use rayon::prelude::*;

use super::{Distinguisher, Releases};
use crate::AuditError;
use crate::epsilon_bound::{Errors, ScoreThreshold, epsilon_lower, gdp_epsilon, mu_lower};

/// Draws that are made at a time; in between the listener is heard.
const BLOCK: u64 = 500;

/// Scores of draws on both inputs.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// Without the record.
    pub without: Vec<f64>,
    /// With it.
    pub with: Vec<f64>,
}

/// The scores of `draws` draws on each input; `tick` hears how many are done.
pub fn draw(
    releases: &dyn Releases,
    test: &Distinguisher,
    draws: u64,
    tick: &mut dyn FnMut(u64) -> Result<(), AuditError>,
) -> Result<Scores, AuditError> {
    let mut scores = Scores::default();
    for first in (0..draws).step_by(BLOCK as usize) {
        let block = first..draws.min(first + BLOCK);
        for (with, arm) in [(false, &mut scores.without), (true, &mut scores.with)] {
            let drawn: Result<Vec<f64>, AuditError> = block
                .clone()
                .into_par_iter()
                .map(|draw| Ok(test.score(&releases.vectors(with, draw)?)))
                .collect();
            arm.extend(drawn?);
        }
        tick(block.end)?;
    }
    Ok(scores)
}

/// Bounds on ε from scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Whatever the mechanism is.
    pub epsilon_lower: f64,
    /// If its privacy is that of Gaussian noise.
    pub epsilon_lower_gdp: f64,
    /// μ of the latter, at least.
    pub mu_lower: f64,
    /// The threshold of the former, and its errors.
    pub threshold: f64,
    /// Errors at that threshold.
    pub errors: Errors,
    /// The share of pairs of draws in which the one with the record scored higher: the area under
    /// the ROC.
    pub area: f64,
}

impl Bounds {
    /// Bounds that both hold with a chance of 1 − `alpha` each. A quarter of the draws chooses the
    /// threshold, the others count its errors; pairs are compared in all of them.
    pub fn new(scores: &Scores, delta: f64, alpha: f64) -> Self {
        let Scores { without, with } = scores;
        let all = without.len().min(with.len());
        let first = all / 4;
        let trials = (all - first) as u64;
        let threshold =
            ScoreThreshold::choose(&without[..first], &with[..first], trials, delta, alpha);
        let errors = threshold.errors(&without[first..all], &with[first..all]);
        let wins = without.iter().zip(with).filter(|(without, with)| with > without).count() as u64;
        let mu_lower = mu_lower(wins, all as u64, alpha);
        Self {
            epsilon_lower: epsilon_lower(errors, delta, alpha),
            epsilon_lower_gdp: gdp_epsilon(mu_lower, delta),
            mu_lower,
            threshold: threshold.0,
            errors,
            area: wins as f64 / all.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use lapa::seed::{Purpose, stream};
    use rand::RngExt;
    use rand_distr::StandardNormal;

    use super::*;

    fn gaussian(mu: f64, draws: usize, seed: u64) -> Scores {
        let normals = |arm: u64, mean: f64| {
            let mut rng = stream(seed, Purpose::Audit, arm, 0);
            (0..draws).map(|_| mean + rng.sample::<f64, _>(StandardNormal)).collect()
        };
        Scores { without: normals(0, 0.0), with: normals(1, mu) }
    }

    /// N(0, 1) against N(1, 1): ε = 4.38 at δ = 10⁻⁵. At 95 %, seeds fixed.
    #[test]
    fn bounds_on_a_gaussian_come_near_the_truth() {
        let few = Bounds::new(&gaussian(1.0, 10_000, 0), 1e-5, 0.05);
        assert!(few.epsilon_lower_gdp >= 4.1 && few.epsilon_lower_gdp <= 4.38, "{few:?}");
        let many = Bounds::new(&gaussian(1.0, 100_000, 0), 1e-5, 0.05);
        assert!(many.epsilon_lower_gdp >= 4.25 && many.epsilon_lower_gdp <= 4.38, "{many:?}");
        assert!(
            few.epsilon_lower > 1.0 && many.epsilon_lower > few.epsilon_lower,
            "{few:?} {many:?}"
        );
        assert!(many.epsilon_lower < 4.38);
    }

    /// Of 1000 audits of a mechanism with μ = 1, no more find it less private than it is than
    /// Binomial(1000, 0.05) allows at α = 10⁻⁴: 77.
    #[test]
    fn bounds_are_too_high_no_more_often_than_they_say() {
        let (mut assumption_free, mut gdp) = (0, 0);
        for seed in 0..1000 {
            let bounds = Bounds::new(&gaussian(1.0, 400, seed), 1e-5, 0.05);
            gdp += u32::from(bounds.mu_lower > 1.0);
            assumption_free += u32::from(bounds.epsilon_lower > 4.3775);
        }
        assert!((20..=77).contains(&gdp), "{gdp}");
        assert!(assumption_free <= 77, "{assumption_free}");
    }

    #[test]
    fn no_draws_bound_nothing() {
        let bounds = Bounds::new(&Scores::default(), 1e-5, 0.05);
        assert_eq!((bounds.epsilon_lower, bounds.epsilon_lower_gdp), (0.0, 0.0));
    }
}
