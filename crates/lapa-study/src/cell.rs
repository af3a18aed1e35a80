//! One run of a study, in memory, and what it leaves.

use std::ops::ControlFlow;

use lapa::config::{Clip, Experiment, Update};
use lapa::data::Dataset;
use lapa::observe::{DeviceRecords, Quantiles, RoundRecord, number};
use lapa::run::{RunEvent, Summary, fingerprint};
use lapa_control::phases::{Choice, InMemory, Judgment, PhaseError, PhaseEvent};
use serde::{Deserialize, Serialize};

/// Evaluations whose mean is steadier than the last one alone.
const LAST: usize = 5;

/// An experiment with its seed, to be run on one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    id: String,
    experiment: Experiment,
}

/// A cell without a result.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    /// The run or the choice of its powers failed, or the listener broke off.
    #[error(transparent)]
    Run(#[from] PhaseError),
    /// A program error, caught so that other cells go on.
    #[error("internal error: {0}")]
    Panic(String),
}

/// Result of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Every round.
    pub rounds: Vec<Round>,
    /// The powers, where they were chosen by a pilot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub powers: Option<ChosenPowers>,
    /// J, the noise terms of the bound, of the run's own rounds; `None` without amplitudes or without
    /// noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Judgment>,
    /// The round whose numbers were not finite: the run ended there, and its later evaluations count as
    /// guesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diverged: Option<u32>,
    /// The whole run.
    pub summary: Summary,
    /// Its computing time, pilot and choice of powers included.
    pub seconds: f64,
}

/// A round of a cell, from which figures are drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Round, from 1.
    pub round: u32,
    /// Test accuracy in [0, 1], where it was evaluated.
    #[serde(with = "number::optional")]
    pub accuracy: Option<f64>,
    /// Mean test loss.
    #[serde(with = "number::optional")]
    pub loss: Option<f64>,
    /// `ε^[t]`
    #[serde(with = "number::optional")]
    pub epsilon_round: Option<f64>,
    /// Devices that sent.
    pub sent: u32,
    /// Median over them of the artificial noise; `None` if no device sent.
    #[serde(with = "number::optional")]
    pub sigma_artificial: Option<f64>,
    /// Median of the receiver's noise.
    #[serde(with = "number::optional")]
    pub sigma_channel: Option<f64>,
    /// Median of the noise asked for.
    #[serde(with = "number::optional")]
    pub sigma_required: Option<f64>,
    /// Weight of the third of the senders with the worst links, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_of_worst: Option<f64>,
}

/// Powers that were chosen after a pilot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChosenPowers {
    /// J over that of full power.
    #[serde(with = "number")]
    pub objective_relative: f64,
    /// J over that of equal power, as the pilots have it.
    #[serde(with = "number")]
    pub over_equal: f64,
    /// |p_k|² of each device.
    pub powers_w: Vec<f64>,
}

impl Cell {
    /// A cell of `experiment`.
    pub fn new(mut experiment: Experiment) -> Self {
        experiment.run.threads = 1;
        Self { id: fingerprint(&experiment), experiment }
    }

    /// The same without evaluations before those that [`Finished::accuracy`] is the mean of.
    pub fn evaluated_late(self) -> Self {
        let mut experiment = self.experiment;
        let run = &mut experiment.run;
        let first = run.rounds.saturating_sub((LAST as u32 - 1) * run.evaluate_every);
        run.evaluate_from = Some(first).filter(|first| *first > run.evaluate_every);
        Self::new(experiment)
    }

    /// Its name: a hash of all that decides the result.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// About how many samples it trains on, or what costs as much; `data` has the sizes.
    pub fn work(&self, data: &Dataset) -> f64 {
        let (run, learn) = (&self.experiment.run, &self.experiment.learn);
        let share = match learn.update {
            Update::Gradient => learn.batch_fraction,
            Update::Epoch => 1.0,
        };
        let clip = if learn.clip == Clip::Sample { 1.1 } else { 1.0 };
        let samples = self.samples().unwrap_or(data.train.len() as f64);
        let trained = f64::from(run.rounds) * run.participation * share * clip * samples;
        let evaluations = (1..=run.rounds).filter(|round| run.is_evaluated(*round)).count();
        let evaluated = FORWARD * evaluations as f64 * data.test.len() as f64;
        let control = &self.experiment.control;
        // Powers are rehearsed after the pilots, in a training as long as one of them.
        let trainings = f64::from(1 + control.pilots);
        let fitted = trainings * trained + OPTIMIZER_WORK;
        trained + evaluated + if control.needs_pilot() { fitted } else { 0.0 }
    }

    /// Samples of all devices, where the partition says.
    fn samples(&self) -> Option<f64> {
        let scheme = &self.experiment.partition.scheme;
        Some(f64::from(scheme.devices()) * f64::from(scheme.middle_samples()?))
    }

    /// Runs it. The listener hears of each round and may break off.
    pub fn run(
        &self,
        data: &Dataset,
        on_event: &mut dyn FnMut(CellEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Finished, CellError> {
        let start = lapa::clock::now();
        let on_event = &mut |event: PhaseEvent<'_>| on_event(event.into());
        let mut run = InMemory::prepare(self.experiment.clone(), data.clone(), on_event)?;
        let diverged = match run.execute(on_event) {
            Err(error) if error.has_diverged() => Some(run.records.len() as u32 + 1),
            ended => ended.map(|()| None).map_err(PhaseError::from)?,
        };
        let seconds = start.elapsed().as_secs_f64();
        let InMemory { choice, simulation, records, .. } = &mut run;
        let mut rounds: Vec<Round> = records.iter().map(Round::from).collect();
        if let Some(round) = diverged {
            let run = &simulation.experiment().run;
            let left = (round..=run.rounds).filter(|round| run.is_evaluated(*round));
            rounds.extend(left.map(|round| Round::guess(round, data.classes)));
        }
        let summary = simulation.summary(records, seconds).map_err(PhaseError::from)?;
        let objective = match diverged {
            Some(_) => None,
            None => Judgment::from_records(simulation, records)?,
        };
        let powers = choice.as_ref().map(ChosenPowers::from);
        Ok(Finished { rounds, objective, powers, diverged, summary, seconds })
    }
}

/// Events of a cell.
pub enum CellEvent<'a> {
    /// Something the user should know.
    Warning(&'a str),
    /// Number of rounds done.
    Round(u32),
}

/// Cost of evaluating a sample over that of training on it.
const FORWARD: f64 = 1.0 / 3.0;

/// Cost of an optimizer's steps, in samples.
const OPTIMIZER_WORK: f64 = 150_000.0;

impl<'a> From<PhaseEvent<'a>> for CellEvent<'a> {
    fn from(event: PhaseEvent<'a>) -> Self {
        match event {
            PhaseEvent::Pilot(RunEvent::Warning(text))
            | PhaseEvent::Run(RunEvent::Warning(text)) => Self::Warning(text),
            PhaseEvent::Run(RunEvent::Round(record)) => Self::Round(record.round),
            _ => Self::Round(0),
        }
    }
}

impl From<&Choice> for ChosenPowers {
    fn from(choice: &Choice) -> Self {
        Self {
            objective_relative: choice.objective_relative,
            over_equal: choice.over_equal(),
            powers_w: choice.powers_w.clone(),
        }
    }
}

impl Round {
    /// A round after the run diverged.
    fn guess(round: u32, classes: usize) -> Self {
        let (accuracy, loss) = (Some(1.0 / classes as f64), Some(f64::INFINITY));
        Self { round, accuracy, loss, ..Self::default() }
    }
}

impl From<&RoundRecord> for Round {
    fn from(record: &RoundRecord) -> Self {
        let devices = record.devices.summary();
        let sent = match &record.devices {
            DeviceRecords::List(list) => list.iter().filter(|d| d.selected).count() as u32,
            DeviceRecords::Summary(summary) => summary.count,
        };
        let median = |quantiles: Option<Quantiles>| quantiles.map(|q| q.median);
        Self {
            round: record.round,
            accuracy: record.accuracy,
            loss: record.loss,
            epsilon_round: record.epsilon_round,
            sent,
            sigma_artificial: median(devices.sigma_artificial),
            sigma_channel: median(devices.sigma_channel),
            sigma_required: median(devices.sigma_required),
            weight_of_worst: weight_of_worst(&record.devices),
        }
    }
}

/// Weight of the third of the senders with the least SINR; `None` without a list of devices or links.
fn weight_of_worst(devices: &DeviceRecords) -> Option<f64> {
    let DeviceRecords::List(list) = devices else { return None };
    let sent = list.iter().filter(|device| device.selected);
    let mut links: Vec<(f64, f64)> = sent.map(|device| (device.sinr_db, device.weight)).collect();
    links.sort_by(|a, b| a.0.total_cmp(&b.0));
    links.first().filter(|(sinr_db, _)| sinr_db.is_finite())?;
    Some(links[..links.len().div_ceil(3)].iter().map(|(_, weight)| weight).sum())
}

impl Finished {
    /// Rounds that were evaluated, with their accuracies.
    pub fn evaluations(&self) -> impl Iterator<Item = (u32, f64)> {
        self.rounds.iter().filter_map(|round| Some((round.round, round.accuracy?)))
    }

    /// The accuracy after the last round.
    pub fn final_accuracy(&self) -> f64 {
        self.rounds.iter().rev().find_map(|round| round.accuracy).unwrap_or(f64::NAN)
    }

    /// The loss after the last round.
    pub fn final_loss(&self) -> f64 {
        self.rounds.iter().rev().find_map(|round| round.loss).unwrap_or(f64::NAN)
    }

    /// The mean of the last five evaluations; `None` unless these lie in the last fifth of the rounds,
    /// behind the learning curve.
    pub fn settled_accuracy(&self) -> Option<f64> {
        let rounds = u64::from(self.rounds.last()?.round);
        let late = |round: u32| 5 * u64::from(round) >= 4 * rounds;
        let last = self.evaluations().filter(|(round, _)| late(*round)).count();
        (last >= LAST).then(|| self.accuracy())
    }

    /// The mean of the last five evaluations, or of as many as there are: what the figures of the
    /// paper are made of, whatever the rounds.
    pub fn accuracy(&self) -> f64 {
        mean(self.rounds.iter().rev().filter_map(|round| round.accuracy).take(LAST))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}
