//! Models on the way of a run, and the noise that images had there.

use std::ops::ControlFlow;

use lapa::config::{Experiment, Start};
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::simulation::{Event, Setup, Simulation};

use crate::{Attack, AuditError, Listener, Progress};

/// A model that devices took gradients at.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Rounds done before.
    pub round: u32,
    /// The model.
    pub parameters: Vec<f32>,
    /// Standard deviation of the noise on the gradient of one image in the next round: σ·b, since an
    /// update is the mean over a batch of b images and the attacker knows all others. The least of
    /// all devices that sent.
    pub sigma: f64,
}

/// The rounds to look at: as many as `points`, evenly from the first to the last but one.
pub fn rounds(experiment: &Experiment, most: u32, points: u32) -> Vec<u32> {
    // Training before the first round is part of it.
    let first = u32::from(experiment.model.start == Start::Digits);
    let last = experiment.run.rounds.min(most).saturating_sub(1).max(first);
    let steps = points.saturating_sub(1).max(1);
    let mut rounds: Vec<u32> = (0..=steps)
        .map(|i| first + (u64::from(last - first) * u64::from(i) / u64::from(steps)) as u32)
        .collect();
    rounds.dedup();
    rounds
}

/// Repeats the run up to the last of `rounds`, ascending, and the round after it.
pub fn trajectory(
    mut experiment: Experiment,
    data: Dataset,
    rounds: &[u32],
    what: &str,
    listener: &mut Listener<'_>,
) -> Result<Vec<Snapshot>, AuditError> {
    // Nobody asks for the accuracy.
    experiment.run.evaluate_every = experiment.run.rounds;
    let of = rounds.last().map_or(0, |&last| u64::from(last) + 1);
    // The runs end with the last round that is looked at.
    let mut simulation = Setup::new(experiment, data)?.keep_transcript().in_memory()?;
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let mut parameters = Some(simulation.model().parameters.clone());
    let mut done = 0;
    let run = simulation.run(&mut |simulation, event| {
        let mut progress = Progress { attack: Attack::Inversion, what, done, of, warning: None };
        if let Event::Warning(warning) = event {
            progress.warning = Some(warning);
            return listener(progress);
        }
        let round = done as u32;
        if let Some(parameters) = parameters.take().filter(|_| rounds.contains(&round)) {
            // A round without senders has the noise of the one before.
            let before = snapshots.last().map_or(0.0, |snapshot| snapshot.sigma);
            let sigma = noise(simulation).unwrap_or(before);
            snapshots.push(Snapshot { round, parameters, sigma });
        }
        done += 1;
        parameters =
            rounds.contains(&simulation.round()).then(|| simulation.model().parameters.clone());
        progress.done = done;
        if done == of { ControlFlow::Break(()) } else { listener(progress) }
    });
    match run {
        Err(FederationError::Cancelled(_)) if done == of => {}
        run => run?,
    }
    Ok(snapshots)
}

/// σ·b of the device with the least of it in the last round.
fn noise(simulation: &Simulation) -> Option<f64> {
    let experiment = simulation.experiment();
    let (sampling, fraction) = (experiment.learn.sampling, experiment.learn.batch_fraction);
    let of_device = simulation.received().iter().map(|received| {
        let samples = simulation.public_samples()[received.device() as usize];
        received.sigma() * sampling.denominator(fraction, samples)
    });
    of_device.min_by(f64::total_cmp)
}
