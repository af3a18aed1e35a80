//! State that all optimizers keep during a search.

use std::ops::ControlFlow;

use super::{Evaluation, Limits, Objective, OptimizeError, Optimum, Progress};
use crate::observe::Cancelled;

/// Evaluates, reports, and keeps the best.
pub(super) struct Search<'a> {
    objective: &'a mut dyn Objective,
    on_progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    of: u64,
    evaluations: u64,
    best: Option<(Vec<f64>, Evaluation)>,
    curve: Vec<(u64, f64)>,
}

impl<'a> Search<'a> {
    /// A search with `of` evaluations.
    pub fn new(
        objective: &'a mut dyn Objective,
        on_progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
        of: u64,
    ) -> Self {
        Self { objective, on_progress, of, evaluations: 0, best: None, curve: Vec::new() }
    }

    /// Limits of the amplitudes.
    pub fn limits(&self) -> &Limits {
        self.objective.limits()
    }

    /// Rounds T.
    pub fn rounds(&self) -> u32 {
        self.objective.rounds()
    }

    /// The objective at feasible amplitudes.
    pub fn evaluate(&mut self, amplitudes: &[f64]) -> Result<f64, OptimizeError> {
        Ok(self.evaluation(amplitudes)?.objective)
    }

    /// Evaluation of feasible amplitudes.
    pub fn evaluation(&mut self, amplitudes: &[f64]) -> Result<Evaluation, OptimizeError> {
        let evaluation = self.objective.evaluate(amplitudes)?;
        let value = evaluation.objective;
        self.evaluations += 1;
        if value.is_finite() && value < self.least() {
            self.curve.push((self.evaluations, value));
            self.best = Some((amplitudes.to_vec(), evaluation.clone()));
        }
        let (evaluations, of, best) = (self.evaluations, self.of, self.least());
        match (self.on_progress)(Progress { evaluations, of, best }) {
            ControlFlow::Continue(()) => Ok(evaluation),
            ControlFlow::Break(()) => Err(Cancelled.into()),
        }
    }

    /// These amplitudes, whatever was better before.
    pub fn finish_at(
        self,
        amplitudes: Vec<f64>,
        evaluation: Evaluation,
        optimizer: &'static str,
    ) -> Result<Optimum, OptimizeError> {
        Ok(Optimum { amplitudes, evaluation, ..self.finish(optimizer)? })
    }

    /// The best of all evaluations.
    pub fn finish(mut self, optimizer: &'static str) -> Result<Optimum, OptimizeError> {
        let evaluations = self.evaluations;
        let least = self.least();
        let Some((amplitudes, evaluation)) = self.best else {
            return Err(OptimizeError::NothingFinite { optimizer, evaluations });
        };
        if self.curve.last().is_some_and(|&(at, _)| at < evaluations) {
            self.curve.push((evaluations, least));
        }
        Ok(Optimum { amplitudes, evaluation, evaluations, curve: self.curve })
    }

    /// The least objective so far.
    fn least(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |(_, evaluation)| evaluation.objective)
    }
}
