//! The base station: nothing here may see records.
//!
//! It holds the global model, the allocator, the aggregation weights and public images, and
//! reads what it [`Received`] and public numbers. `cargo xtask lint` refuses an import of `data` or
//! `device` here and in `aggregate/`.

mod allocator;
mod inbox;
mod kept;

use lapa_privacy::allocate::{Allocator, AllocatorState, Ask, DeviceTranscript, Transcript};
use rand::seq::index;

use crate::aggregate::{GlobalDelta, GlobalModel, Rule, Weighting, WeightingState};
use crate::budget::{Books, PrivacyError};
use crate::config::{Experiment, MANY_DEVICES, Start};
use crate::error::FederationError;
use crate::model::{Confusion, Evaluator, Network, Results, pretrain};
use crate::radio::{Link, Received, Selection};
use crate::seed::{Purpose, stream};
pub(crate) use inbox::Inbox;
pub(crate) use kept::reader_of_updates;

/// The base station of a run.
pub struct Station {
    experiment: Experiment,
    model: GlobalModel,
    delta: GlobalDelta,
    weighting: Weighting,
    /// `None` without noise.
    allocator: Option<Box<dyn Allocator>>,
    /// The public number of samples of each device.
    samples: Vec<u32>,
    /// Its test and calibration images; `None` where the model is not one of ours.
    evaluator: Option<Evaluator>,
    /// Confusions of the model as it is, once it was evaluated.
    confusion: Option<Confusion>,
    received: Vec<Received>,
    /// Transcripts are kept, however large.
    keeps_transcript: bool,
    /// Until it is told.
    warning: Option<String>,
    round: u32,
}

/// Costs of a round as the allocator decided them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocation {
    /// The cost of each chosen device.
    pub costs: Vec<f64>,
    /// `e^[t]`, the PID-like error.
    pub pid_error: Option<f64>,
    /// `ε^[t]`, the round's budget.
    pub epsilon_round: Option<f64>,
    /// The smoothed angle of each chosen device.
    pub angles: Vec<Option<f64>>,
}

impl Station {
    /// A base station of devices with `samples`, whose model begins at `parameters`.
    pub(crate) fn new(
        experiment: &Experiment,
        parameters: Vec<f32>,
        samples: Vec<u32>,
        evaluator: Option<Evaluator>,
    ) -> Result<Self, PrivacyError> {
        let network = evaluator.as_ref().map(Evaluator::network);
        let average =
            if experiment.learn.averaging == 0.0 { Vec::new() } else { parameters.clone() };
        Ok(Self {
            warning: kept::warning(experiment, parameters.len()),
            model: GlobalModel {
                velocity: vec![0.0; parameters.len()],
                average,
                parameters,
                statistics: vec![0.0; network.map_or(0, |network| network.statistics_count())],
            },
            delta: GlobalDelta::default(),
            weighting: Weighting::new(
                experiment.aggregate.rule.build(samples.len()),
                samples.len(),
            ),
            allocator: allocator::allocator(experiment, &samples)?,
            samples,
            evaluator,
            confusion: None,
            received: Vec::new(),
            keeps_transcript: false,
            round: 0,
            experiment: experiment.clone(),
        })
    }

    /// Keeps the transcript of every round, however large.
    pub(crate) fn keep_transcript(&mut self) {
        self.keeps_transcript = true;
    }

    /// Takes an allocator of one's own.
    pub(crate) fn replace_allocator(&mut self, own: Box<dyn Allocator>) {
        self.allocator = Some(own);
    }

    /// Takes a rule of one's own.
    pub(crate) fn replace_rule(&mut self, own: Box<dyn Rule>) {
        self.weighting = Weighting::new(own, self.samples.len());
    }

    /// Trains the model on public digits before round 1, if it is to start from there.
    pub(crate) fn pretrain(&mut self) {
        let Some(evaluator) = &self.evaluator else { return };
        if self.round > 0 || self.experiment.model.start == Start::Random {
            return;
        }
        let seed = self.experiment.run.training_seed();
        pretrain(evaluator.network(), &mut self.model.parameters, seed);
        if !self.model.average.is_empty() {
            self.model.average.clone_from(&self.model.parameters);
        }
    }

    /// The devices of the next round, ascending: a random part of them, at least one.
    pub(crate) fn participants(&self) -> Vec<u32> {
        let all = self.samples.len();
        let count = self.experiment.taking_part(all);
        if count == all {
            return (0..all as u32).collect();
        }
        let round = u64::from(self.round + 1);
        let mut rng = stream(self.experiment.run.training_seed(), Purpose::Participation, round, 0);
        let mut devices: Vec<u32> =
            index::sample(&mut rng, all, count).into_iter().map(|device| device as u32).collect();
        devices.sort_unstable();
        devices
    }

    /// Costs of the next round for the devices with these links.
    pub(crate) fn allocate(&mut self, links: &[Link], books: &Books) -> Allocation {
        let devices: Vec<u32> = links.iter().map(|link| link.device).collect();
        let weights = self.weighting.rule().prior(&devices, &self.samples_of(&devices));
        let asks: Vec<Ask> = devices
            .iter()
            .zip(weights)
            .map(|(&device, weight)| Ask {
                device,
                left: books.left(device),
                weight,
                sensitivity: books.release(device).claimed_sensitivity(),
            })
            .collect();
        let none = || (vec![f64::INFINITY; asks.len()], None, None, vec![None; asks.len()]);
        let (costs, pid_error, epsilon_round, angles) = match &mut self.allocator {
            Some(allocator) if !asks.is_empty() => {
                let costs = allocator.allocate(self.round + 1, &asks);
                (costs.by_device, costs.pid_error, costs.round_budget, costs.angles)
            }
            _ => none(),
        };
        Allocation { costs, pid_error, epsilon_round, angles }
    }

    /// True if a round's updates are kept: something reads them, or they are few.
    pub(crate) fn keeps_updates(&self, updates: usize) -> bool {
        updates < MANY_DEVICES
            || self.keeps_transcript
            || self.weighting.rule().reads_updates()
            || self.allocator.as_ref().is_some_and(|allocator| allocator.reads_updates())
    }

    /// The inbox of a round in which `devices` are asked. Where `all` of them will answer and nobody
    /// reads single updates, it sums them.
    pub(crate) fn open_inbox(
        &mut self,
        devices: &[u32],
        selection: &Selection,
        all: bool,
    ) -> Inbox {
        let mut known = None;
        if all && !self.keeps_updates(devices.len()) {
            let weighs = |device: &u32| selection.weightless.binary_search(device).is_err();
            let weighed: Vec<u32> = devices.iter().copied().filter(weighs).collect();
            let prior = self.weighting.rule().prior(&weighed, &self.samples_of(&weighed));
            let mut weights = self.as_configured(prior, &weighed, selection).into_iter();
            let weight = |device| weighs(device).then(|| weights.next().unwrap_or_default());
            known = Some(devices.iter().map(weight).collect());
        }
        let (delta, before) = (std::mem::take(&mut self.delta), std::mem::take(&mut self.received));
        Inbox::new(delta, known, before)
    }

    /// The weights of `devices`, as a part of those of all that were selected where they are not to be
    /// renormalized.
    fn as_configured(
        &self,
        mut weights: Vec<f64>,
        devices: &[u32],
        selection: &Selection,
    ) -> Vec<f64> {
        if !self.experiment.aggregate.renormalize {
            let skipped = selection.skipped.iter().map(|link| link.device);
            let others = selection.weightless.iter().copied().chain(skipped);
            let all: Vec<u32> = devices.iter().copied().chain(others).collect();
            let prior = self.weighting.rule().prior(&all, &self.samples_of(&all));
            let part: f64 = prior[..weights.len()].iter().sum();
            weights.iter_mut().for_each(|weight| *weight *= part);
        }
        weights
    }

    /// Weights what was received, steps the model and shows the transcript to the allocator. The
    /// round is then over. Returns the devices that were received with their weights. Weightless
    /// devices of the selection have 0, and no effect on the others'.
    pub(crate) fn aggregate(&mut self, mut inbox: Inbox, selection: &Selection) -> Vec<(u32, f64)> {
        let known = inbox.known_weights();
        let Inbox { delta, devices, kept, .. } = inbox;
        self.delta = delta;
        if let Some(weights) = known {
            self.step(weights.iter().any(|&weight| weight != 0.0));
            return devices.into_iter().zip(weights).collect();
        }
        let weightless = &selection.weightless;
        let weighs = |received: &Received| weightless.binary_search(&received.device()).is_err();
        let (weighed, ignored): (Vec<_>, Vec<_>) = kept.into_iter().partition(weighs);
        self.received = weighed;
        let devices: Vec<u32> = self.received.iter().map(Received::device).collect();
        let weights = self.weighting.weights(&self.samples_of(&devices), &self.received);
        let mut weights = self.as_configured(weights, &devices, selection);
        self.delta.combine(&weights, &self.received);
        let steps = !self.received.is_empty();
        self.step(steps);
        self.take_ignored(ignored, &mut weights);
        if steps {
            self.show_transcript(&weights);
        }
        self.received.iter().map(Received::device).zip(weights).collect()
    }

    /// Ends the round with a step of the model, if anything with a weight arrived.
    fn step(&mut self, steps: bool) {
        self.round += 1;
        self.confusion = None;
        let learn = &self.experiment.learn;
        if steps {
            let (rate, decay) = (learn.learning_rate, learn.weight_decay);
            self.model.apply(&self.delta, rate, learn.momentum, decay);
        }
        self.model.update_average(self.round, learn.averaging);
    }

    /// Takes in what was received with weight 0, in the order of the devices.
    fn take_ignored(&mut self, ignored: Vec<Received>, weights: &mut Vec<f64>) {
        if ignored.is_empty() {
            return;
        }
        let weighed = self.received.drain(..).zip(weights.drain(..));
        let mut all: Vec<_> = weighed.chain(ignored.into_iter().map(|r| (r, 0.0))).collect();
        all.sort_by_key(|(received, _)| received.device());
        (self.received, *weights) = all.into_iter().unzip();
    }

    /// Shows the allocator what was received.
    fn show_transcript(&mut self, weights: &[f64]) {
        let Some(allocator) = &mut self.allocator else { return };
        let devices: Vec<_> = self
            .received
            .iter()
            .zip(weights)
            .map(|(received, &weight)| DeviceTranscript {
                device: received.device(),
                weight,
                gradient: received.gradient(),
                sigma: received.sigma(),
            })
            .collect();
        let round = self.round;
        let transcript = Transcript { round, devices: &devices, global: &self.delta.gradient };
        let seed = self.experiment.run.training_seed();
        allocator.observe(&transcript, &mut stream(seed, Purpose::Allocate, round.into(), 0));
    }

    /// Accuracy and loss, in the rounds that are evaluated.
    pub(crate) fn evaluate_if_due(&mut self) -> Result<Option<(f64, f64)>, FederationError> {
        let (run, round) = (&self.experiment.run, self.round);
        let is_due = run.is_evaluated(round);
        let Some((accuracy, loss)) = is_due.then(|| self.evaluate()).flatten() else {
            return Ok(None);
        };
        if !loss.is_finite() {
            let learning_rate = self.experiment.learn.learning_rate;
            return Err(FederationError::LossNotFinite { round, learning_rate });
        }
        Ok(Some((accuracy, loss)))
    }

    /// Accuracy and mean loss of the model on the test images; `None` without any.
    pub fn evaluate(&mut self) -> Option<(f64, f64)> {
        let evaluator = self.evaluator.as_ref().filter(|evaluator| !evaluator.is_empty())?;
        let GlobalModel { parameters, average, statistics, .. } = &mut self.model;
        let evaluated = if average.is_empty() { parameters } else { average };
        let Results { accuracy, loss, confusion } = evaluator.evaluate(evaluated, statistics);
        self.confusion = confusion;
        Some((accuracy, loss))
    }

    /// Test images by class and prediction, of the evaluation of this round or of one made now;
    /// `None` without any, or where the model gives no numbers.
    pub(crate) fn confusion(&mut self) -> Option<&Confusion> {
        if self.confusion.is_none() {
            self.evaluate()?;
        }
        self.confusion.as_ref()
    }

    /// Warnings about the updates and images that are kept here, once.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let images = self.evaluator.as_mut().and_then(Evaluator::take_warning);
        self.warning.take().into_iter().chain(images).collect()
    }

    /// True if label histograms are needed and have not arrived.
    pub(crate) fn needs_labels(&self) -> bool {
        self.experiment.aggregate.rule.histograms().is_some() && self.weighting.labels().is_none()
    }

    /// Takes the label counts of all devices, as they were sent.
    pub(crate) fn learn_labels(&mut self, counts: Vec<Vec<f64>>) {
        self.weighting.learn_labels(counts);
    }

    /// Bytes of the label histograms, 4 for each count; counted with round 1.
    pub(crate) fn histogram_bytes(&self) -> u64 {
        let counts = self.weighting.labels().into_iter().flatten().map(Vec::len);
        if self.round == 1 { 4 * counts.sum::<usize>() as u64 } else { 0 }
    }

    fn samples_of(&self, devices: &[u32]) -> Vec<u32> {
        devices.iter().map(|&device| self.samples[device as usize]).collect()
    }

    /// The public number of samples of each device.
    pub fn public_samples(&self) -> &[u32] {
        &self.samples
    }

    /// The transcript of the last round, by device; empty after a large round of which nobody reads
    /// single updates.
    pub fn received(&self) -> &[Received] {
        &self.received
    }

    /// The global model.
    pub fn model(&self) -> &GlobalModel {
        &self.model
    }

    /// The network; `None` where the model is not one of ours.
    pub fn network(&self) -> Option<&Network> {
        self.evaluator.as_ref().map(|evaluator| &**evaluator.network())
    }

    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Aggregation weights.
    pub fn weighting(&self) -> &Weighting {
        &self.weighting
    }

    /// State of the allocator, for a checkpoint.
    pub(crate) fn allocator_state(&self) -> Option<AllocatorState> {
        self.allocator.as_ref().map(|allocator| allocator.state())
    }

    /// Goes on after `round` rounds. False if the weights are of another number of devices.
    pub(crate) fn restore(
        &mut self,
        round: u32,
        model: GlobalModel,
        weighting: WeightingState,
        allocator: Option<AllocatorState>,
    ) -> Result<bool, PrivacyError> {
        if !self.weighting.restore(weighting) {
            return Ok(false);
        }
        self.round = round;
        self.model = model;
        self.confusion = None;
        if let (Some(allocator), Some(state)) = (&mut self.allocator, allocator) {
            allocator.restore(state)?;
        }
        Ok(true)
    }
}
