//! The subject's run, repeated with other coins, several at once.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use lapa::config::Experiment;
use lapa::error::FederationError;
use lapa::model::{Batch, Network, Worker};
use lapa::simulation::{Cancelled, Event, Setup, Simulation};
use rand::Rng;

use super::candidates::{Candidates, draws};
use super::lira::scaled_confidence;
use crate::AuditError;
use crate::subject::network;

/// Number of the attacker's stream of `Purpose::Membership`, in place of a round.
const REPETITION: u64 = 3;
/// Records evaluated together.
const BLOCK: usize = 250;
/// Bytes that they may take; of large images there are fewer.
const BLOCK_BYTES: u64 = 1 << 26;

/// A listener that hears how many repetitions are done, or a warning, and may break off.
type OnDone<'a> = dyn FnMut(usize, Option<&str>) -> ControlFlow<()> + 'a;

/// Repeats a run.
pub(super) struct Repeater<'a> {
    experiment: Experiment,
    candidates: &'a Candidates,
    seed: u64,
}

/// Result of a repetition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Repetition {
    /// φ of each record under the final model.
    pub confidences: Vec<f64>,
    /// Accuracy of that model on the test set.
    pub accuracy: f64,
    /// Its warnings.
    pub warnings: Vec<String>,
}

impl<'a> Repeater<'a> {
    /// Repeats `experiment` for the candidates, with batches and noise that follow from `seed`.
    pub fn new(experiment: &Experiment, candidates: &'a Candidates, seed: u64) -> Self {
        let mut experiment = experiment.clone();
        experiment.run.threads = 1;
        experiment.run.evaluate_every = experiment.run.rounds;
        Self { experiment, candidates, seed }
    }

    /// A repetition for each set of coins, `threads` at once and each on one thread, so that the
    /// result does not depend on their number. `on_done` hears how many are
    /// done, and each warning once; it may break off.
    pub fn run(
        &self,
        coins: &[Vec<bool>],
        threads: usize,
        on_done: &mut OnDone<'_>,
    ) -> Result<Vec<Repetition>, AuditError> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let mut repetitions: Vec<Option<Repetition>> = vec![None; coins.len()];
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            let work = || {
                let sender = sender.clone();
                let (next, stop) = (&next, &stop);
                move || {
                    while !stop.load(Ordering::Relaxed) {
                        let which = next.fetch_add(1, Ordering::Relaxed);
                        let Some(coins) = coins.get(which) else { break };
                        let done = self.repeat(which, coins, stop);
                        let failed = done.is_err();
                        // An error means that nobody listens any more.
                        let _ = sender.send((which, done));
                        if failed {
                            break;
                        }
                    }
                }
            };
            let workers: Vec<_> =
                (0..threads.clamp(1, coins.len().max(1))).map(|_| scope.spawn(work())).collect();
            drop(sender);
            let result = collect(&receiver, &mut repetitions, on_done);
            stop.store(true, Ordering::Relaxed);
            for worker in workers {
                if let Err(panic) = worker.join() {
                    resume_unwind(panic);
                }
            }
            result
        })?;
        Ok(repetitions.into_iter().flatten().collect())
    }

    /// One repetition.
    fn repeat(
        &self,
        which: usize,
        coins: &[bool],
        stop: &AtomicBool,
    ) -> Result<Repetition, AuditError> {
        let candidates = self.candidates;
        let mut federation = Setup::with_records(
            self.experiment.clone(),
            candidates.data.clone(),
            self.network()?,
            candidates.partition(coins),
            &candidates.sizes(),
        )?
        .in_memory()
        .map_err(FederationError::from)?;
        federation.redraw(draws(self.seed, REPETITION, which as u64).next_u64());
        let mut warnings = Vec::new();
        federation.run(&mut |_, event| {
            if let Event::Warning(warning) = event {
                warnings.push(warning.to_owned());
            }
            let stops = stop.load(Ordering::Relaxed);
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let (accuracy, _) = federation.evaluate().ok_or(AuditError::NotFinite)?;
        Ok(Repetition { confidences: self.confidences(&federation)?, accuracy, warnings })
    }

    /// φ of each record under the model that is handed out.
    fn confidences(&self, federation: &Simulation) -> Result<Vec<f64>, AuditError> {
        let network = Arc::new(self.network()?);
        let block = network.footprint().samples_within(BLOCK_BYTES).min(BLOCK);
        let mut worker = Worker::new(network);
        let model = federation.model();
        let data = &self.candidates.data.train;
        let (records, classes) = (self.candidates.records(), federation.network().classes());
        let mut confidences = Vec::with_capacity(records.len());
        for samples in records.chunks(block) {
            let batch = Batch { data, samples };
            let logits = worker.logits(model.evaluated(), &model.statistics, batch);
            let labels = samples.iter().map(|&sample| usize::from(data.labels[sample as usize]));
            confidences.extend(
                logits.chunks_exact(classes).zip(labels).map(|(z, y)| scaled_confidence(z, y)),
            );
        }
        Ok(confidences)
    }

    fn network(&self) -> Result<Network, FederationError> {
        network(&self.experiment, &self.candidates.data)
    }
}

/// Takes in what the workers finish, until one fails, the listener breaks off, or all are done.
fn collect(
    receiver: &mpsc::Receiver<(usize, Result<Repetition, AuditError>)>,
    repetitions: &mut [Option<Repetition>],
    on_done: &mut OnDone<'_>,
) -> Result<(), AuditError> {
    let mut warned = BTreeSet::new();
    for (done, (which, repetition)) in receiver.iter().enumerate() {
        let repetition = repetition?;
        let new = repetition.warnings.iter().filter(|&warning| warned.insert(warning.clone()));
        for warning in new.map(|warning| Some(warning.as_str())).chain([None]) {
            if on_done(done + 1, warning).is_break() {
                return Err(Cancelled.into());
            }
        }
        repetitions[which] = Some(repetition);
    }
    Ok(())
}
