//! The base station of remote devices: it asks, takes what comes, and steps.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use lapa_privacy::ledger::Repeat;
use lapa_privacy::{Filter, FilterKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::mailbox::Mailbox;
use super::vet::{Dropped, Reason, finite};
use super::{DeviceInfo, RemoteError, Result, check_outside_model, checked};
use crate::aggregate::Histograms;
use crate::atomic::{read_json, write_bytes};
use crate::budget::{declare, of_whole_updates};
use crate::config::Experiment;
use crate::data::{Dataset, Origin};
use crate::error::FederationError;
use crate::federation::{Asked, Federation, Prepared};
use crate::model::Evaluator;
use crate::observe::RoundRecord;
use crate::partition;
use crate::pool;
use crate::radio::Radio;
use crate::round;
use crate::run::{
    DEVICES, RunError, RunFolder, RunLog, Summary, check_same_run, is_free, read_summary,
};
use crate::seed::{Purpose, stream};
use crate::simulation;
use crate::station::Station;

/// Name of the file with the devices that were asked in a round that is not over.
const ASKED: &str = "asked.json";

/// The model that is trained.
pub enum Model {
    /// The configuration's, evaluated on the test images of a data set.
    Configured(Box<Dataset>),
    /// One that is trained outside of the engine and begins at these parameters.
    Outside(Vec<f32>),
}

/// A question to one device in a round. The parameters are the same for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The device.
    pub device: u32,
    /// The round; 0 for a label histogram.
    pub round: u32,
    /// The cost to its budget, in the currency of its filter.
    pub cost: f64,
}

/// The outcome of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The round's record.
    pub record: RoundRecord,
    /// Answers that were left out.
    pub dropped: Vec<Dropped>,
    /// Devices that were asked and did not answer.
    pub missing: Vec<u32>,
    /// Warnings since the round before.
    pub warnings: Vec<String>,
}

/// A base station of remote devices: model, weights, allocator, and a folder with a ledger of what it
/// asked for, metrics and a checkpoint of every round.
///
/// A device that was asked counts as having spent: its answer may have left it and been lost.
pub struct BaseStation {
    log: RunLog,
    federation: Federation,
    classes: usize,
    /// Devices that were asked before an interruption, in the round that comes next.
    again: Option<Vec<u32>>,
    asked: Option<Asked>,
}

/// asked.json
#[derive(Serialize, Deserialize)]
struct AskedFile {
    round: u32,
    devices: Vec<u32>,
}

impl BaseStation {
    /// Begins a run with these devices in a new folder, or goes on with the one that is in `folder`
    /// after its last round.
    pub fn open(
        experiment: &Experiment,
        model: Model,
        devices: &[DeviceInfo],
        folder: &Path,
    ) -> Result<Self> {
        let mut devices = devices.to_vec();
        devices.sort_by_key(|info| info.device);
        let seeded = devices.iter().any(|info| info.seeded);
        let experiment = checked(experiment, seeded)?
            .with_absolute_paths()
            .map_err(|(path, source)| RunError::io("find", &path)(source))?;
        let began = !is_free(folder);
        if began {
            devices = known_devices(folder, &devices)?;
        }
        let classes = if let Model::Configured(data) = &model { data.classes } else { 0 };
        let prepared = prepare(&experiment, model, &devices)?;
        for info in &devices {
            check_budget(info, prepared.budgets[info.device as usize].filter.as_ref())?;
        }
        let mut again = None;
        let (log, mut federation) = if began {
            let folder = RunFolder::open(folder)?;
            let before = folder.manifest()?;
            check_same_run(&folder, &before, &experiment, &prepared.origin)?;
            let (log, federation) = RunLog::resume(folder, before.run, prepared)?;
            let next = federation.station.round() + 1;
            again = read(&log.folder().join(ASKED))?
                .filter(|asked: &AskedFile| asked.round == next)
                .filter(|asked| asked.round <= experiment.run.rounds)
                .map(|asked| asked.devices);
            (log, federation)
        } else {
            RunLog::begin(prepared, [folder.to_path_buf()])?
        };
        write(&log.folder().join(DEVICES), &devices)?;
        for info in &devices {
            federation.books.trust(info.device, info.epsilon.max(info.epsilon_ever), info.left);
        }
        // An interruption after the last checkpoint may have come before the summary.
        if federation.station.round() == experiment.run.rounds
            && read_summary(log.folder())?.is_none()
        {
            let summary = log.summary(&mut federation)?;
            log.finish(&federation.station, &summary)?;
        }
        Ok(Self { log, federation, classes, again, asked: None })
    }

    /// The run's name, the same after an interruption.
    pub fn run(&self) -> &str {
        self.log.name()
    }

    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.federation.station.round()
    }

    /// Rounds in all.
    pub fn rounds(&self) -> u32 {
        self.experiment().run.rounds
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.federation.experiment
    }

    /// The global model that the devices train from.
    pub fn parameters(&self) -> &[f32] {
        &self.federation.station.model().parameters
    }

    /// The global model that is evaluated: the latest, or an average over rounds.
    pub fn evaluated(&self) -> &[f32] {
        self.federation.station.model().evaluated()
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        self.log.folder()
    }

    /// The questions for label histograms, before round 1; empty where the rule of aggregation needs
    /// none, or they are known.
    pub fn ask_histograms(&mut self) -> Result<Vec<Question>> {
        if !self.federation.station.needs_labels() {
            return Ok(Vec::new());
        }
        let recorded = round::ask_histograms(&mut self.federation)?;
        let Federation { experiment, books, .. } = &self.federation;
        let fraction =
            experiment.aggregate.rule.histograms().and_then(|sent| sent.budget_fraction());
        let asked = (0..books.devices()).filter(|&device| {
            recorded.as_ref().is_none_or(|recorded| recorded[device as usize].is_some())
        });
        let question =
            |device| Question { device, round: 0, cost: books.histogram_cost(device, fraction) };
        Ok(asked.map(question).collect())
    }

    /// Takes the label histograms that were asked for. Of devices without one, or with one that is
    /// none, nothing is known. Returns whose were left out.
    pub fn learn_histograms(&mut self, answers: BTreeMap<u32, Vec<f64>>) -> Result<Vec<Dropped>> {
        let mut answers = answers;
        if !self.federation.station.needs_labels() {
            return Err(RemoteError::Turn("no label histograms were asked for"));
        }
        let expected = self.classes;
        let mut dropped = Vec::new();
        let mut counts = Vec::new();
        for device in 0..self.federation.books.devices() {
            let answer = answers.remove(&device);
            let vetted =
                answer.map(|answer| finite(&answer, expected, f64::is_finite).map(|()| answer));
            let vetted = vetted.transpose().unwrap_or_else(|reason| {
                dropped.push(Dropped { device, reason });
                None
            });
            counts.push(vetted.unwrap_or_else(|| vec![0.0; expected]));
        }
        let others = answers.into_keys();
        dropped.extend(others.map(|device| Dropped { device, reason: Reason::NotAsked }));
        self.federation.station.learn_labels(counts);
        self.log.checkpoint(&self.federation)?;
        Ok(dropped)
    }

    /// The next round's questions to the devices that are `present`. The ledger has them when this
    /// returns; asked again, before or after an interruption, they are the same.
    pub fn ask(&mut self, present: &[u32]) -> Result<Vec<Question>> {
        let round = self.round() + 1;
        if round > self.rounds() {
            return Err(RemoteError::Turn("all rounds are done"));
        }
        if self.federation.station.needs_labels() {
            return Err(RemoteError::Turn(
                "label histograms come before the first round: call ask_histograms and \
                 learn_histograms",
            ));
        }
        if self.asked.is_none() {
            let devices = self.again.take().unwrap_or_else(|| {
                let mut devices = self.federation.station.participants();
                devices.retain(|device| present.contains(device));
                devices
            });
            let file = AskedFile { round, devices };
            write(&self.log.folder().join(ASKED), &file)?;
            self.asked = Some(round::ask(&mut self.federation, &file.devices)?);
        }
        let granted = self.asked.iter().flat_map(|asked| &asked.granted);
        Ok(granted
            .filter(|granted| present.contains(&granted.device))
            .map(|granted| Question { device: granted.device, round, cost: granted.cost })
            .collect())
    }

    /// Ends the round with what was answered, in any order; devices without an answer are left out.
    /// A checkpoint of the round is on the disk when this returns.
    pub fn step(&mut self, answers: BTreeMap<u32, Vec<f32>>) -> Result<Step> {
        let Some(asked) = self.asked.take() else {
            return Err(RemoteError::Turn("no question was asked: call ask before step"));
        };
        let (start, mut mailbox) = (asked.start, Mailbox::new(answers));
        let record = round::conclude(&mut self.federation, &mut mailbox, asked)?;
        self.log.append(&record, start)?;
        self.log.checkpoint(&self.federation)?;
        if record.round == self.rounds() {
            let summary = self.summary()?;
            self.log.finish(&self.federation.station, &summary)?;
        }
        let Mailbox { dropped, missing, .. } = mailbox;
        Ok(Step { record, dropped, missing, warnings: self.federation.take_warnings() })
    }

    /// Accuracy and mean loss on the configuration's test set.
    pub fn evaluate(&mut self) -> Result<(f64, f64)> {
        let nowhere = "a model that is trained outside of the engine is evaluated there";
        self.federation.station.evaluate().ok_or(RemoteError::Turn(nowhere))
    }

    /// The summary of the rounds so far.
    pub fn summary(&mut self) -> Result<Summary> {
        Ok(self.log.summary(&mut self.federation)?)
    }
}

/// The federation of these devices, checked.
fn prepare(experiment: &Experiment, model: Model, devices: &[DeviceInfo]) -> Result<Prepared> {
    let samples: Vec<u32> = devices.iter().map(|info| info.samples).collect();
    let test_images = if let Model::Configured(data) = &model { data.test.len() } else { 0 };
    let threads = simulation::threads(experiment, samples.len(), test_images);
    let (origin, declared, parameters, evaluator) = match model {
        Model::Configured(data) => {
            let origin = data.origin();
            let (first, evaluator) = configured_model(experiment, *data, devices, threads)?;
            (origin, experiment.clone(), first, Some(evaluator))
        }
        Model::Outside(parameters) => {
            check_outside_model(experiment)?;
            check_devices(experiment, parameters.len(), devices)?;
            let name = experiment.data.name.clone();
            let origin = Origin { name, source: "elsewhere".into(), hashes: Vec::new() };
            (origin, of_whole_updates(experiment), parameters, None)
        }
    };
    let budgets = declare(&declared, &samples, &|_| None)?;
    let mut station = Station::new(&declared, parameters, samples, evaluator)?;
    // Before anything is on the disk: the first checkpoint has it.
    station.pretrain();
    let radio =
        Radio::new(experiment.setting(), experiment.draws()).map_err(FederationError::from)?;
    // A base station does not know which records its devices hold.
    let partition = partition::digest(devices.iter().map(|_| &[][..]));
    let experiment = experiment.clone();
    // A base station draws no noise: a round that is recorded already is the same round again.
    let repeat = Repeat::Replay;
    Ok(Prepared {
        experiment,
        origin,
        partition,
        station,
        radio,
        declared,
        budgets,
        repeat,
        threads,
    })
}

/// The first parameters of the configured model, and its evaluation on the test images.
fn configured_model(
    experiment: &Experiment,
    data: Dataset,
    devices: &[DeviceInfo],
    threads: usize,
) -> Result<(Vec<f32>, Evaluator)> {
    let data = data.with_features(experiment.model.feature_map(), &mut |_| {});
    let data = data.map_err(FederationError::from)?;
    let (shape, classes) = (data.train.shape, data.classes);
    let network = crate::model::network(&experiment.model, shape, classes)
        .map_err(|source| FederationError::Model { shape, source: source.into() })?;
    check_devices(experiment, network.parameter_count(), devices)?;
    simulation::check(experiment, (shape, classes), &network)?;
    let (updates, test) = (experiment.taking_part(devices.len()), data.test.len());
    simulation::check_memory(experiment, (shape, classes), &network, 0, updates, threads, test)?;
    let seed = experiment.run.training_seed();
    let first = network.initial_parameters(&mut stream(seed, Purpose::ModelInit, 0, 0));
    let threads = pool::start(threads).map_err(FederationError::from)?;
    // A base station does not know which training images its devices hold.
    Ok((first, Evaluator::new(Arc::new(network), data.test, None, seed, threads)))
}

/// Refuses devices that do not fit together, or not the configuration.
fn check_devices(experiment: &Experiment, parameters: usize, devices: &[DeviceInfo]) -> Result<()> {
    if devices.is_empty() {
        return Err(RemoteError::Devices("there are no devices".into()));
    }
    if experiment.aggregate.rule.histograms().is_some() {
        Histograms::check(devices.len(), devices[0].classes)
            .map_err(|why| RemoteError::Devices(format!("aggregate.rule {why}")))?;
    }
    for (place, info) in (0..).zip(devices) {
        if info.device != place {
            return Err(RemoteError::Devices(format!(
                "devices must be numbered from 0 to {}, each once: device {place} is missing",
                devices.len() - 1
            )));
        }
        let (rounds, delta) = (experiment.run.rounds, experiment.delta());
        for (what, has, expected) in [
            ("parameters", info.parameters.to_string(), parameters.to_string()),
            ("rounds", info.rounds.to_string(), rounds.to_string()),
            ("delta", info.delta.to_string(), delta.to_string()),
        ] {
            if has != expected {
                return Err(RemoteError::Devices(format!(
                    "device {place} has {what} {has}, but the base station has {expected}: give \
                     both the same configuration"
                )));
            }
        }
        let numbers = [info.left, info.epsilon, info.epsilon_ever];
        if info.samples == 0 || numbers.iter().any(|number| number.is_nan()) {
            return Err(RemoteError::Devices(format!(
                "device {place} sent impossible values: {info:?}"
            )));
        }
        if info.seeded != devices[0].seeded {
            return Err(RemoteError::Devices(
                "some devices draw from a seed and some from the operating system".into(),
            ));
        }
    }
    Ok(())
}

/// Refuses a device whose noise the base station could not know. Where costs are μ², any budget
/// will do: what is left of it says what may be asked for, and the report has the device's ε.
fn check_budget(info: &DeviceInfo, filter: Option<&Filter>) -> Result<()> {
    let declared = filter.map_or(f64::INFINITY, |filter| filter.budget().epsilon());
    let in_mu = filter.is_some_and(|filter| filter.kind() == FilterKind::Gdp);
    if info.epsilon == declared || (in_mu && info.epsilon.is_finite()) {
        return Ok(());
    }
    Err(RemoteError::Devices(format!(
        "device {} has privacy.epsilon = {}, but the base station has {declared}: give both the \
         same privacy.epsilon",
        info.device, info.epsilon
    )))
}

/// The devices as they were when the run began: what they have left is told then. A budget that
/// was raised since counts.
fn known_devices(folder: &Path, now: &[DeviceInfo]) -> Result<Vec<DeviceInfo>> {
    // Nothing is asked before the file is there: without it the devices are as they are now.
    let Some(before): Option<Vec<DeviceInfo>> = read(&folder.join(DEVICES))? else {
        return Ok(now.to_vec());
    };
    let fixed = |info: &DeviceInfo| DeviceInfo { left: 0.0, epsilon_ever: 0.0, ..*info };
    if before.iter().map(fixed).ne(now.iter().map(fixed)) {
        return Err(RemoteError::Devices(format!(
            "{}: the run began with other devices; it can only go on with the same ones",
            folder.display()
        )));
    }
    let mut known = before;
    for (known, now) in known.iter_mut().zip(now) {
        known.epsilon_ever = known.epsilon_ever.max(now.epsilon_ever);
    }
    Ok(known)
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let found = read_json(path).map_err(RunError::io("read", path))?;
    found.transpose().map_err(RemoteError::damaged(path))
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let text = serde_json::to_string(value).map_err(io::Error::from);
    text.and_then(|text| write_bytes(path, text)).map_err(RunError::io("write", path))
}
