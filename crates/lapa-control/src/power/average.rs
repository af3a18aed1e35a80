//! The mean of P1 over several pilots.

use lapa::optimize::{Evaluation, Limits, Objective, ObjectiveError};

use super::Problem;

/// Judges amplitudes by several pilots, so that they fit none of them by accident.
///
/// J is the mean over the pilots, T_th of a device the latest, under-noising the worst.
#[derive(Clone, Debug)]
pub struct Average {
    first: Problem,
    others: Vec<Problem>,
}

impl Average {
    /// The mean of `first` and `others`, which have the same devices.
    pub fn new(first: Problem, others: Vec<Problem>) -> Self {
        Self { first, others }
    }

    /// P1 on each pilot.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The sums of [`Problem::channel_terms`].
    pub fn channel_terms(&self) -> Vec<f64> {
        let mut terms = self.first.channel_terms();
        for other in &self.others {
            terms.iter_mut().zip(other.channel_terms()).for_each(|(sum, term)| *sum += term);
        }
        terms
    }
}

impl Objective for Average {
    fn limits(&self) -> &Limits {
        self.first.limits()
    }

    fn rounds(&self) -> u32 {
        self.first.rounds()
    }

    fn evaluate(&mut self, amplitudes: &[f64]) -> Result<Evaluation, ObjectiveError> {
        let mut all = self.first.evaluate(amplitudes)?;
        for problem in &mut self.others {
            let one = problem.evaluate(amplitudes)?;
            all.objective += one.objective;
            all.worst_under_noising = all.worst_under_noising.max(one.worst_under_noising);
            let rounds = all.switching_round.iter_mut().zip(one.switching_round);
            rounds.for_each(|(latest, round)| *latest = (*latest).max(round));
        }
        all.objective /= (1 + self.others.len()) as f64;
        Ok(all)
    }
}
