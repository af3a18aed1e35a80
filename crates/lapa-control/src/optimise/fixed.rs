//! Powers that follow from the limits alone.

use std::ops::ControlFlow;

use super::search::Search;
use super::{OptimiseError, Optimiser, Optimum, Progress};
use crate::power::Objective;

/// P_max/K watts for each device.
#[derive(Clone, Copy, Debug)]
pub struct Equal;

/// P_0 watts for each device, scaled down to P_max.
#[derive(Clone, Copy, Debug)]
pub struct Full;

impl Optimiser for Equal {
    fn name(&self) -> &'static str {
        "equal"
    }

    fn optimise(
        &mut self,
        objective: &mut dyn Objective,
        _seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimiseError> {
        let amplitudes = objective.limits().equal();
        only(self.name(), &amplitudes, objective, on_progress)
    }
}

impl Optimiser for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn optimise(
        &mut self,
        objective: &mut dyn Objective,
        _seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimiseError> {
        let amplitudes = objective.limits().full();
        only(self.name(), &amplitudes, objective, on_progress)
    }
}

/// The outcome of a search that tries one allocation.
pub(super) fn only(
    name: &'static str,
    amplitudes: &[f64],
    objective: &mut dyn Objective,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Optimum, OptimiseError> {
    let mut search = Search::new(objective, on_progress, 1);
    search.evaluate(amplitudes)?;
    search.finish(name)
}
