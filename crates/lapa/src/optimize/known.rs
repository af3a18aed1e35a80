//! Powers that need no search.

use std::ops::ControlFlow;

use lapa_privacy::OutOfRange;

use super::search::Search;
use super::{
    BuildOptimizer, Given, Limits, Objective, OptimizeError, Optimizer, Optimum, Progress,
    closed_form,
};

/// Tries one allocation.
#[derive(Clone, Debug)]
pub struct Known {
    name: &'static str,
    amplitudes: Vec<f64>,
}

impl Known {
    /// These amplitudes, as the configuration gives them.
    pub fn given(amplitudes: Vec<f64>) -> Self {
        Self { name: "file", amplitudes }
    }

    /// P_max/K watts for each device.
    pub fn equal(limits: &Limits) -> Self {
        Self { name: "equal", amplitudes: limits.equal() }
    }

    /// P_0 watts for each device, scaled down to P_max.
    pub fn full(limits: &Limits) -> Self {
        Self { name: "full", amplitudes: limits.full() }
    }

    /// The best against channel noise alone: see [`closed_form`].
    pub fn closed_form(limits: &Limits, channel_terms: &[f64]) -> Self {
        Self { name: "closed-form", amplitudes: closed_form(limits, channel_terms) }
    }
}

impl Optimizer for Known {
    fn name(&self) -> &'static str {
        self.name
    }

    fn optimize(
        &mut self,
        objective: &mut dyn Objective,
        _seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimizeError> {
        let mut search = Search::new(objective, on_progress, 1);
        search.evaluate(&self.amplitudes)?;
        search.finish(self.name)
    }
}

/// Parameters of equal powers: none.
#[derive(Clone, Copy, Debug)]
pub struct Equal;

impl BuildOptimizer for Equal {
    fn build(&self, given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange> {
        Ok(Box::new(Known::equal(given.limits)))
    }

    fn needs_pilot(&self) -> bool {
        false
    }
}

/// Parameters of full powers: none.
#[derive(Clone, Copy, Debug)]
pub struct Full;

impl BuildOptimizer for Full {
    fn build(&self, given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange> {
        Ok(Box::new(Known::full(given.limits)))
    }

    fn needs_pilot(&self) -> bool {
        false
    }
}
