//! Random search.

use std::ops::ControlFlow;

use lapa_privacy::OutOfRange;
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::search::Search;
use super::{
    BuildOptimizer, Given, Limits, Objective, OptimizeError, Optimizer, Optimum, Progress,
};
use crate::seed::{Purpose, stream};

/// Number of this optimizer in [`Purpose::Power`].
const STREAM: u64 = 1;

/// Parameters of random search: those of DDPG, whose yardstick it is.
#[derive(Clone, Copy, Debug)]
pub struct RandomSearchConfig;

impl BuildOptimizer for RandomSearchConfig {
    fn build(&self, given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange> {
        let ddpg = given.optimizers.ddpg;
        Ok(Box::new(RandomSearch { evaluations: ddpg.episodes.saturating_mul(ddpg.steps) }))
    }
}

/// Random search: the best of a number of random allocations.
#[derive(Clone, Copy, Debug)]
pub struct RandomSearch {
    /// Allocations to try.
    pub evaluations: u32,
}

impl Optimizer for RandomSearch {
    fn name(&self) -> &'static str {
        "random-search"
    }

    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError> {
        let mut rng = stream(seed, Purpose::Power, STREAM, 0);
        let mut search = Search::new(objective, on_progress, self.evaluations.into());
        for _ in 0..self.evaluations {
            let amplitudes = draw(search.limits(), &mut rng);
            search.evaluate(&amplitudes)?;
        }
        search.finish(self.name())
    }
}

/// Allowed amplitudes: a uniform direction without negative parts, and a uniform total power, as
/// far as no device has more than P_0.
fn draw(limits: &Limits, rng: &mut impl Rng) -> Vec<f64> {
    let mut amplitudes: Vec<f64> =
        (0..limits.devices()).map(|_| rng.sample::<f64, _>(StandardNormal).abs()).collect();
    let (least, most) = (limits.least_total_w(), limits.most_total_w());
    let total_w = least + (most - least) * rng.random::<f64>();
    let norm = amplitudes.iter().map(|p| p * p).sum::<f64>().sqrt();
    // A norm of 0 makes NaN, which is projected to an allowed point like anything else.
    amplitudes.iter_mut().for_each(|p| *p *= total_w.sqrt() / norm);
    limits.project(&mut amplitudes);
    amplitudes
}
