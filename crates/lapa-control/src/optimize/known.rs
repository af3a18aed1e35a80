//! Powers that need no search.

use std::ops::ControlFlow;

use super::search::Search;
use super::{OptimizeError, Optimizer, Optimum, Progress};
use crate::power::{Limits, Objective};

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

    /// The best against channel noise alone: see [`closed_form`](crate::power::closed_form).
    pub fn closed_form(amplitudes: Vec<f64>) -> Self {
        Self { name: "closed-form", amplitudes }
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
