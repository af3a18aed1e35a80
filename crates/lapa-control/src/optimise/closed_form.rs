//! The best powers against channel noise alone, as an optimiser.

use std::ops::ControlFlow;

use super::fixed::only;
use super::{OptimiseError, Optimiser, Optimum, Progress};
use crate::power::Objective;

/// Takes amplitudes that were computed: see [`closed_form`](crate::power::closed_form).
#[derive(Clone, Debug)]
pub struct ClosedForm {
    /// The amplitudes.
    pub amplitudes: Vec<f64>,
}

impl Optimiser for ClosedForm {
    fn name(&self) -> &'static str {
        "closed-form"
    }

    fn optimise(
        &mut self,
        objective: &mut dyn Objective,
        _seed: u64,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Optimum, OptimiseError> {
        only(self.name(), &self.amplitudes, objective, on_progress)
    }
}
