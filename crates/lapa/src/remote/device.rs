//! A real device, in a process of its own.

use std::path::Path;

use lapa_privacy::ledger::{Ledger, Recorded};
use lapa_privacy::{Event, Histogram};

use super::answers::{Answers, Cached, Number, Question};
use super::device_ledger::{DeviceLedger, Spending};
use super::{DeviceInfo, Refusal, RemoteError, Result, checked};
use crate::aggregate::Histograms;
use crate::budget::{of_whole_updates, public_samples};
use crate::config::{Entropy, Experiment};
use crate::data::{Dataset, Split};
use crate::device::{self, Learner, PrivateUpdate, Streams, noisy_counts};
use crate::error::FederationError;
use crate::model::Worker;
use crate::seed::Purpose;
use crate::simulation;

/// An update as it leaves a device: new, or cached and sent once more, which says nothing new.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    gradient: Vec<f32>,
    sigma: f64,
}

impl Answer {
    /// Standard deviation of the noise on each coordinate.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The noisy gradient.
    pub fn gradient(&self) -> &[f32] {
        &self.gradient
    }

    /// The noisy gradient, to be sent.
    pub fn into_gradient(self) -> Vec<f32> {
        self.gradient
    }
}

/// A device: its records, its budget and its ledger. Nothing leaves it but an [`Answer`] or a label
/// histogram, and neither before its ledger has it on the disk.
pub struct Device {
    experiment: Experiment,
    device: u32,
    /// Its public number of samples.
    samples: u32,
    label_counts: Vec<u32>,
    parameters: usize,
    ledger: DeviceLedger,
    answers: Answers,
    /// `None` where the model is trained outside of the engine.
    trainer: Option<Trainer>,
}

/// The records, and memory to learn from them.
struct Trainer {
    records: Split,
    all: Vec<u32>,
    learner: Learner,
}

/// The configured features of records.
fn features(experiment: &Experiment, records: &Split) -> Result<Split> {
    let features = experiment.model.feature_map().of(records, &mut |_| {});
    Ok(features.map_err(FederationError::from)?)
}

impl Device {
    /// The device that has the part `device` of a data set, as in a simulation of `experiment`. It
    /// keeps no other record.
    ///
    /// `seeded` devices draw from the configuration's seed, as a simulation does, and protect
    /// nobody; others from the operating system. `ledger` is a file, made if it is missing.
    pub fn of_partition(
        experiment: &Experiment,
        data: &Dataset,
        device: u32,
        seeded: bool,
        ledger: &Path,
    ) -> Result<Self> {
        let mut data = data.clone();
        let parts = experiment.deal(&mut data).map_err(FederationError::from)?;
        let Some(part) = parts.devices.get(device as usize) else {
            let last = parts.devices.len().saturating_sub(1);
            return Err(RemoteError::Devices(format!(
                "device {device} has no part of the data: the configuration has devices 0 to {last}"
            )));
        };
        let sizes: Vec<u32> = parts.devices.iter().map(|part| part.samples.len() as u32).collect();
        let records = data.train.select(&part.samples);
        let records = match data.features == experiment.model.feature_map() {
            true => records,
            false => features(experiment, &records)?,
        };
        let experiment = checked(experiment, seeded)?;
        Self::with(experiment, device, records, data.classes, (&sizes, device as usize), ledger)
    }

    /// The device that has these records.
    pub fn with_records(
        experiment: &Experiment,
        device: u32,
        records: Split,
        classes: usize,
        seeded: bool,
        ledger: &Path,
    ) -> Result<Self> {
        let (values, labels) = (records.values.len(), records.labels.len());
        if values != labels * records.shape.len() || records.is_empty() {
            return Err(RemoteError::Records(format!(
                "{values} pixels for {labels} labels: allowed is {} for each, and at least one",
                records.shape.of_image()
            )));
        }
        if let Some(declared) = experiment.data.classes.filter(|&n| n as usize != classes) {
            return Err(RemoteError::Records(format!(
                "{classes} classes: allowed is data.classes = {declared}, as for the base station"
            )));
        }
        if let Some(at) = records.labels.iter().position(|&label| usize::from(label) >= classes) {
            return Err(RemoteError::Records(format!(
                "at {at} (from 0) a label is {}: allowed is below {classes}, the number of classes",
                records.labels[at]
            )));
        }
        refuse_initial_sigma(experiment)?;
        let mut records = records;
        let normalized = experiment.data.normalize(&mut records);
        normalized.map_err(|error| RemoteError::Records(error.to_string()))?;
        let sizes = [records.len() as u32];
        let records = features(experiment, &records)?;
        let experiment = checked(experiment, seeded)?;
        Self::with(experiment, device, records, classes, (&sizes, 0), ledger)
    }

    /// The device that trains on these records.
    fn with(
        experiment: Experiment,
        device: u32,
        records: Split,
        classes: usize,
        sizes: (&[u32], usize),
        ledger: &Path,
    ) -> Result<Self> {
        let shape = records.shape;
        let network = crate::model::network(&experiment.model, shape, classes)
            .map_err(|source| FederationError::Model { shape, source: source.into() })?;
        simulation::check(&experiment, (shape, classes), &network)?;
        // One update at a time, on one thread, and no test images.
        let largest = records.len() as u32;
        simulation::check_memory(&experiment, (shape, classes), &network, largest, 1, 1, 0)?;
        let mut made = Self::new(experiment, device, sizes, network.parameter_count(), ledger)?;
        made.label_counts = vec![0; classes];
        records.labels.iter().for_each(|&label| made.label_counts[usize::from(label)] += 1);
        let all = (0..records.len() as u32).collect();
        let learner = Learner::new(Worker::new(network.into()));
        made.trainer = Some(Trainer { records, all, learner });
        Ok(made)
    }

    /// The device without records. `sizes` are those of all devices that are known to it, and the
    /// place of its own among them.
    fn new(
        experiment: Experiment,
        device: u32,
        (sizes, place): (&[u32], usize),
        parameters: usize,
        ledger: &Path,
    ) -> Result<Self> {
        let samples = public_samples(&experiment, sizes)?;
        let answers = Answers::beside(ledger, device);
        let begun = std::fs::metadata(ledger).is_ok_and(|file| file.len() > 0);
        if !begun && answers.folder().exists() {
            return Err(RemoteError::Ledger(format!(
                "{} is missing or empty, but {} has this device's answers: what was released, and \
                 what is left of the budget, is no longer known. Put the ledger back from a \
                 backup. Without one the budget counts as spent: remove the folder only if these \
                 records may be released anew",
                ledger.display(),
                answers.folder().display()
            )));
        }
        let ledger = Ledger::open(ledger)?;
        Ok(Self {
            device,
            samples: samples[place],
            label_counts: Vec::new(),
            parameters,
            ledger: DeviceLedger::new(&experiment, device, &samples, place, ledger)?,
            answers,
            trainer: None,
            experiment,
        })
    }

    /// A device whose model of `parameters` parameters is trained by another program from `samples`
    /// samples: it only calls [`Device::privatize`].
    pub fn of_updates(
        experiment: &Experiment,
        device: u32,
        samples: u32,
        parameters: usize,
        seeded: bool,
        ledger: &Path,
    ) -> Result<Self> {
        let experiment = checked(experiment, seeded)?;
        super::check_outside_model(&experiment)?;
        refuse_initial_sigma(&experiment)?;
        if samples == 0 || parameters == 0 {
            return Err(RemoteError::Records(format!(
                "{samples} samples and {parameters} parameters: allowed is at least one of each"
            )));
        }
        Self::new(of_whole_updates(&experiment), device, (&[samples], 0), parameters, ledger)
    }

    /// Its public numbers.
    pub fn describe(&mut self) -> Result<DeviceInfo> {
        let Spending { declared, delta, left, .. } = self.ledger.spending()?;
        Ok(DeviceInfo {
            device: self.device,
            samples: self.samples,
            parameters: self.parameters,
            classes: self.label_counts.len(),
            rounds: self.experiment.run.rounds,
            epsilon: declared,
            epsilon_ever: self.ledger.largest_epsilon()?,
            delta,
            left,
            seeded: self.experiment.run.entropy == Entropy::Seed,
        })
    }

    /// State of its budget.
    pub fn spent(&mut self) -> Result<Spending> {
        Ok(self.ledger.spending()?)
    }

    /// Its update from the global `model` in a round of `run`: batch, gradient, clip,
    /// charged to its ledger for `cost`, then noise. Asked again, it is the same for nothing.
    pub fn train(&mut self, run: &str, round: u32, model: &[f32], cost: f64) -> Result<Answer> {
        self.expect("parameters", model.len())?;
        if let Some(index) = model.iter().position(|value| !value.is_finite()) {
            let (device, value) = (self.device, model[index]);
            return Err(Refusal::NotFinite { device, index, value }.into());
        }
        let question = Question { run, round, what: "train", cost, values: model };
        let Self { experiment, device, samples, trainer, ledger, answers, .. } = self;
        let Some(Trainer { records, all, learner }) = trainer else {
            return Err(RemoteError::Turn(
                "this device was given no records to train on: call privatize",
            ));
        };
        let here = device::Device {
            number: ledger.account(),
            learn: &experiment.learn,
            records,
            samples: (&**all).into(),
            batches: experiment.batches(*samples),
            grid: experiment.grid()?,
        };
        let (device, draws) = (*device, experiment.draws());
        answer(answers, ledger, experiment.run.rounds, &question, |recorded| {
            let mut batch = draws.stream(Purpose::Batch, round, device)?;
            let mut noise = draws.stream(Purpose::Noise, round, device)?;
            let streams = Streams { batch: &mut *batch, noise: &mut *noise };
            let reply = here.answer(model, recorded, 1.0, streams, learner, Vec::new());
            let failed = |error| FederationError::of_device(error, round, device, here.learn);
            Ok(reply.map_err(failed)?.update)
        })
    }

    /// An update that was computed elsewhere, clipped as a whole to C, charged to its ledger for
    /// `cost`, then noised. One record moves it by up to 2C. Asked again for the same round and
    /// cost, it is the same for nothing: training elsewhere need not be repeatable, and the update
    /// is the device's own, not part of the question.
    pub fn privatize(&mut self, run: &str, round: u32, raw: &[f32], cost: f64) -> Result<Answer> {
        self.expect("values", raw.len())?;
        self.privatize_after(run, round, cost, || raw.to_vec())
    }

    /// [`Device::privatize`] of what `train` returns, which is called when the release is granted
    /// and charged: what may not be released is not trained. An update of another length, or with
    /// values that are not finite, counts as zero, since a refusal would tell of the records. An
    /// answer that was kept is given without training.
    pub fn privatize_after(
        &mut self,
        run: &str,
        round: u32,
        cost: f64,
        train: impl FnOnce() -> Vec<f32>,
    ) -> Result<Answer> {
        let expected = self.parameters;
        let Self { experiment, trainer: None, ledger, answers, .. } = self else {
            return Err(RemoteError::Turn(
                "this device trains by itself: privatize is for one that was given a number of \
                 parameters instead of records",
            ));
        };
        let question = Question { run, round, what: "privatize", cost, values: &[] };
        let clip_norm = experiment.learn.clip_norm.unwrap_or(f64::MAX);
        let (number, account) = (ledger.device(), ledger.account());
        let draws = experiment.draws();
        answer(answers, ledger, experiment.run.rounds, &question, |recorded| {
            let mut update = train();
            if update.len() != expected {
                update = vec![0.0; expected];
            }
            let mut noise = draws.stream(Purpose::Noise, round, number)?;
            Ok(PrivateUpdate::of_whole(update, clip_norm, (account, recorded), &mut *noise)?)
        })
    }

    /// Its label counts before round 1, where the rule of aggregation goes by them: with noise for
    /// `cost` of its budget, or exact where they are declared public.
    pub fn histogram(&mut self, run: &str, cost: f64) -> Result<Vec<f64>> {
        match self.experiment.aggregate.rule.histograms() {
            None => {
                return Err(RemoteError::Turn(
                    "aggregate.rule of this device's configuration reads no label histograms",
                ));
            }
            Some(Histograms::Public) => {
                return Ok(self.label_counts.iter().map(|&count| f64::from(count)).collect());
            }
            Some(Histograms::Noisy(_) | Histograms::Exact) => {}
        }
        let question = Question { run, round: 0, what: "histogram", cost, values: &[] };
        let _lock = self.answers.lock()?;
        if let Some((counts, _)) = cached(&self.answers, &self.ledger, &question)? {
            return Ok(counts);
        }
        let recorded = self.ledger.record_histogram(run, cost)?;
        let Event::Histogram(Histogram { sigma, .. }) = *recorded.event() else {
            // Round 0 has nothing else.
            return Err(self.ledger.answered(run, 0).into());
        };
        let mut rng = self.experiment.draws().stream(Purpose::Histogram, 0, self.device)?;
        let counts =
            noisy_counts(&self.label_counts, (self.ledger.account(), recorded), &mut *rng)?;
        self.answers.keep(&question, &counts, sigma)?;
        Ok(counts)
    }

    fn expect(&self, what: &'static str, given: usize) -> Result<(), Refusal> {
        let (device, expected) = (self.device, self.parameters);
        if given == expected {
            return Ok(());
        }
        Err(Refusal::Length { device, what, given, expected })
    }
}

/// The cached answer, or a new one: charged and on the disk before its noise is drawn, cached before
/// it is handed out.
fn answer(
    answers: &Answers,
    ledger: &mut DeviceLedger,
    rounds: u32,
    question: &Question<'_>,
    compute: impl FnOnce(Recorded) -> Result<PrivateUpdate>,
) -> Result<Answer> {
    let (run, round) = (question.run, question.round);
    if round == 0 || round > rounds {
        return Err(Refusal::Round { device: ledger.device(), round, rounds }.into());
    }
    let _lock = answers.lock()?;
    if let Some((gradient, sigma)) = cached(answers, ledger, question)? {
        return Ok(Answer { gradient, sigma });
    }
    let update = compute(ledger.record(run, round, question.cost)?)?;
    let sigma = update.sigma();
    answers.keep(question, update.gradient(), sigma)?;
    Ok(Answer { gradient: update.into_gradient(), sigma })
}

/// The cached answer to this question; refuses another question for a round that is over.
fn cached<T: Number>(
    answers: &Answers,
    ledger: &DeviceLedger,
    question: &Question<'_>,
) -> Result<Option<(Vec<T>, f64)>> {
    let (run, round) = (question.run, question.round);
    match answers.find(question)? {
        Cached::Nothing => Ok(None),
        Cached::Same(values, sigma) => Ok(Some((values, sigma))),
        Cached::Other { round: last } if last == round => Err(ledger.answered(run, round).into()),
        Cached::Other { round: last } => {
            let (device, run) = (ledger.device(), run.into());
            Err(Refusal::Past { device, run, round, last }.into())
        }
    }
}

/// Refuses a noise level where ε goes by the sizes of all devices.
fn refuse_initial_sigma(experiment: &Experiment) -> Result<()> {
    if experiment.initial_sigma().is_none() {
        return Ok(());
    }
    let what = "privacy.initial_sigma goes by the mean size of all devices, which a device with \
                records of its own does not know";
    Err(RemoteError::Config { what: what.into(), instead: "privacy.epsilon" })
}
