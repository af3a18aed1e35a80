//! CMA-ES: the covariance matrix adaptation evolution strategy.
//!
//! The best powers that CMA-ES finds, from equal powers first, then from random ones.
//!
//! It searches x_k = ln p_k, up to a constant, so that powers of all sizes are as far apart as
//! their ratios. Each x is judged at the nearest amplitudes that are allowed, times
//! 1 + ‖x − x'‖²/K, where x' are their logarithms: the least value is that of the problem.

mod covariance;
mod eigen;
mod minimize;

pub use minimize::{Minimum, Start, minimize};

use std::ops::ControlFlow;

use lapa_privacy::OutOfRange;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::Search;
use super::{BuildOptimizer, Given, Objective, OptimizeError, Optimizer, Optimum, Progress};
use crate::seed::{Purpose, Stream, stream};

/// Number of this optimizer in [`Purpose::Power`].
const STREAM: u64 = 2;

/// First standard deviation of the logarithms of amplitudes.
const STEP: f64 = 0.5;

/// The same of later runs, and how far from equal amplitudes they start: 30 dB. A device that
/// switches early and one that never does are that far apart, with worse powers between them.
const RESTART_STEP: f64 = 2.0;
const RANGE: f64 = 1.5 * std::f64::consts::LN_10;

/// Parameters of CMA-ES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CmaEs {
    /// Evaluations.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub evaluations: u32,
}

impl Default for CmaEs {
    /// As many as DDPG takes steps.
    fn default() -> Self {
        Self { evaluations: 40_000 }
    }
}

impl BuildOptimizer for CmaEs {
    fn build(&self, _given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange> {
        Ok(Box::new(*self))
    }
}

impl Optimizer for CmaEs {
    fn name(&self) -> &'static str {
        "cma-es"
    }

    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError> {
        let mut rng = stream(seed, Purpose::Power, STREAM, 0);
        let mut search = Search::new(objective, on_progress, self.evaluations.into());
        let limits = search.limits().clone();
        let equal: Vec<f64> = limits.equal().iter().map(|p| p.ln()).collect();
        let mut amplitudes = equal.clone();
        let mut value = |x: &[f64]| {
            for (p, x) in amplitudes.iter_mut().zip(x) {
                *p = x.exp();
            }
            search.limits().project(&mut amplitudes);
            let moved = x.iter().zip(&amplitudes).map(|(x, p)| (x - p.ln()).powi(2));
            let moved = moved.sum::<f64>() / x.len() as f64;
            Ok::<_, OptimizeError>(search.evaluate(&amplitudes)? * (1.0 + moved))
        };
        let start = Start { at: equal.clone(), step: STEP };
        let mut elsewhere = |rng: &mut Stream| {
            let mut at: Vec<f64> =
                equal.iter().map(|x| (x + rng.random_range(-RANGE..RANGE)).exp()).collect();
            limits.project(&mut at);
            at.iter_mut().for_each(|x| *x = x.ln());
            Start { at, step: RESTART_STEP }
        };
        minimize(&mut value, &start, &mut elsewhere, self.evaluations.into(), &mut rng)?;
        search.finish(self.name())
    }
}
