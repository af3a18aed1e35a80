//! Judging powers by training with them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use lapa::config::{Experiment, Powers};
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::optimize::{Evaluation, Limits, Objective, ObjectiveError, PowerChoice};
use lapa::simulation::{Event, Simulation};

use super::{PhaseError, Pilot, limits, pilot_data, pilot_experiment, problem, run_in_memory};

/// Trains anew for every power vector, as the paper's environment does, and judges the noise that
/// this training asked for. Slow: an evaluation is a whole run.
///
/// It trains as a pilot does, so that every device has what it needs, whatever the rule that powers
/// are judged by.
///
/// Differs from the paper: it trains on public digits, since every evaluation would otherwise
/// release updates of the devices' records.
pub struct Live {
    experiment: Experiment,
    pilot: Experiment,
    data: Dataset,
    limits: Limits,
    warned: BTreeSet<String>,
}

impl Live {
    /// Judges powers for `experiment` by pilots on digits drawn by code, as many as `data` has.
    pub fn new(experiment: &Experiment, data: &Dataset) -> Result<Self, PhaseError> {
        let mut pilot = pilot_experiment(experiment, None, 0);
        pilot.control.power = PowerChoice::File;
        Ok(Self {
            data: pilot_data(experiment, data)?,
            limits: limits(experiment)?,
            warned: BTreeSet::new(),
            experiment: experiment.clone(),
            pilot,
        })
    }

    /// The warnings of the trainings so far, each once.
    pub fn take_warnings(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.warned)
    }

    fn train(&mut self, amplitudes: &[f64]) -> Result<Evaluation, PhaseError> {
        let mut pilot = self.pilot.clone();
        pilot.transmit.power_w = Powers::Each(amplitudes.iter().map(|p| p * p).collect());
        let mut federation = Simulation::new(pilot, self.data.clone())?;
        let records = match run_in_memory(&mut federation, &mut |event| {
            if let Event::Warning(warning) = event {
                self.warned.insert(warning.to_owned());
            }
            ControlFlow::Continue(())
        }) {
            // So much noise that training fails is as bad as can be.
            Err(FederationError::Diverged { .. }) => {
                return Ok(Evaluation {
                    objective: f64::INFINITY,
                    switching_round: vec![self.rounds(); amplitudes.len()],
                    worst_under_noising: 1.0,
                });
            }
            records => records?,
        };
        let pilot = Pilot::new(&federation, &records)?;
        Ok(problem(&self.experiment, &pilot)?.evaluate(amplitudes)?)
    }
}

impl Objective for Live {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn rounds(&self) -> u32 {
        self.experiment.run.rounds
    }

    fn evaluate(&mut self, amplitudes: &[f64]) -> Result<Evaluation, ObjectiveError> {
        self.train(amplitudes).map_err(|error| match error {
            PhaseError::Objective(error) => error,
            other => ObjectiveError::Training(Box::new(other)),
        })
    }
}
