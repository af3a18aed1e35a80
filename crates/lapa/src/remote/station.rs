//! What a base station runs: it asks, takes what comes, and steps.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use lapa_privacy::{Filter, FilterKind};
use serde::{Deserialize, Serialize};

use super::vet::{Dropped, Reason, vet};
use super::{Facts, RemoteError, check_model_elsewhere, checked};
use crate::aggregate::Histograms;
use crate::atomic::write_atomically;
use crate::config::Experiment;
use crate::data::{Dataset, Split};
use crate::federation::{Federation, FederationError};
use crate::files;
use crate::model::{Layer, Network, Shape};
use crate::observe::RoundRecord;
use crate::round::Asked;
use crate::run::{DEVICES, Run, RunFolder, Summary, is_free, refuse_others};
use crate::transmit::Received;

/// Name of the file that says who was asked in a round that is not over.
const ASKED: &str = "asked.json";

/// The model that is trained.
pub enum Model {
    /// The configuration's, evaluated on the test images of a data set.
    Configured(Dataset),
    /// One that is trained elsewhere, which begins at these parameters.
    Elsewhere(Vec<f32>),
}

/// What one device is asked for in a round. The parameters are the same for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The device.
    pub device: u32,
    /// The round; 0 for a label histogram.
    pub round: u32,
    /// The share of its budget, in the currency of its filter.
    pub share: f64,
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The round's record.
    pub record: RoundRecord,
    /// Answers that were left out.
    pub dropped: Vec<Dropped>,
    /// Devices that were asked and did not answer.
    pub missing: Vec<u32>,
}

/// A base station: the global model, weights, shares of the budgets, and a folder that holds a
/// ledger of what was asked for, metrics and a checkpoint of every round.
///
/// A device that was asked counts as having spent: its answer may have left it and been lost.
pub struct BaseStation {
    run: Run,
    classes: usize,
    /// Who was asked before an interruption, in the round that comes next.
    again: Option<Vec<u32>>,
    asked: Option<(Asked, Instant)>,
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
        devices: &[Facts],
        folder: &Path,
    ) -> Result<Self, RemoteError> {
        let mut devices = devices.to_vec();
        devices.sort_by_key(|facts| facts.device);
        let seeded = devices.iter().any(|facts| facts.seeded);
        let experiment = checked(experiment, seeded)?
            .with_absolute_paths()
            .map_err(|(path, source)| RemoteError::Io { action: "find", path, source })?;
        let (data, network, parameters) = match model {
            Model::Configured(mut data) => {
                // Records are the devices' own.
                data.train.images = Arc::new(Vec::new());
                data.train.labels = Vec::new();
                let (rows, cols) = (data.train.rows, data.train.cols);
                let network = crate::model::network(&experiment.model, rows, cols, data.classes)
                    .map_err(|source| FederationError::Model { rows, cols, source })?;
                (data, network, None)
            }
            Model::Elsewhere(parameters) => {
                check_model_elsewhere(&experiment)?;
                (no_data(&experiment), no_network()?, Some(parameters))
            }
        };
        let count = parameters.as_ref().map_or(network.parameter_count(), Vec::len);
        check_devices(&experiment, count, &devices)?;
        let (rounds, classes) = (experiment.run.rounds, data.classes);
        let began = !is_free(folder);
        if began {
            devices = known_devices(folder, &devices)?;
        }
        let samples = devices.iter().map(|facts| facts.samples).collect();
        let (hashes, run) = (data.clone(), experiment.clone());
        let mut federation =
            Federation::of_devices_elsewhere(experiment, data, network, parameters, samples)?;
        for facts in &devices {
            check_budget(facts, federation.budgets.declared(facts.device))?;
        }
        let mut again = None;
        let run = match began {
            true => {
                let folder = RunFolder::open(folder)?;
                let before = folder.manifest()?;
                refuse_others(&folder, &before, &run, &hashes)?;
                let run = Run::go_on(folder, before.run, federation)?;
                again = read(&run.folder().join(ASKED))?
                    .filter(|asked: &AskedFile| asked.round == run.federation.round() + 1)
                    .filter(|asked| asked.round <= rounds)
                    .map(|asked| asked.devices);
                run
            }
            false => {
                // Before anything is on the disk: the first checkpoint has it.
                federation.pretrain();
                Run::begin(federation, [folder.to_path_buf()])?
            }
        };
        write(&run.folder().join(DEVICES), &devices)?;
        let mut station = Self { run, classes, again, asked: None };
        let budgets = &mut station.run.federation.budgets;
        for facts in &devices {
            let declared = facts.epsilon.max(facts.epsilon_ever);
            budgets.trust(facts.device, declared, facts.left);
        }
        Ok(station)
    }

    /// The run's name, the same after an interruption.
    pub fn run(&self) -> &str {
        self.run.name()
    }

    /// Rounds done.
    pub fn round(&self) -> u32 {
        self.run.federation.round()
    }

    /// Rounds in all.
    pub fn rounds(&self) -> u32 {
        self.experiment().run.rounds
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        self.run.federation.experiment()
    }

    /// The global model that the devices train from.
    pub fn parameters(&self) -> &[f32] {
        &self.run.federation.model().parameters
    }

    /// The global model that is evaluated: the latest, or an average over rounds.
    pub fn evaluated(&self) -> &[f32] {
        self.run.federation.model().evaluated()
    }

    /// Where the run is written down.
    pub fn folder(&self) -> &Path {
        self.run.folder()
    }

    /// The questions for label histograms, before round 1; none where the rule of aggregation needs
    /// none, or they are known.
    pub fn ask_histograms(&mut self) -> Result<Vec<Question>, RemoteError> {
        if !self.needs_histograms() {
            return Ok(Vec::new());
        }
        let federation = &mut self.run.federation;
        let histograms = federation.experiment().aggregate.rule.histograms();
        let part = histograms.and_then(|histograms| histograms.budget_fraction());
        let devices = 0..federation.budgets.devices();
        let granted = match histograms {
            Some(Histograms::Public) | None => devices.map(|_| true).collect::<Vec<_>>(),
            Some(Histograms::Noisy(_) | Histograms::Exact) => {
                let granted = federation.budgets.grant_histograms(part)?;
                granted.iter().map(Option::is_some).collect()
            }
        };
        let budgets = &federation.budgets;
        let question = |device| {
            let share = budgets.histogram_share(device, part);
            Question { device, round: 0, share }
        };
        let asked = (0..).zip(granted).filter(|&(_, granted)| granted);
        Ok(asked.map(|(device, _)| question(device)).collect())
    }

    /// Takes the label histograms that were asked for. Of devices without one, or with one that is
    /// none, nothing is known. Returns whose were left out.
    pub fn learn_histograms(
        &mut self,
        mut answers: BTreeMap<u32, Vec<f64>>,
    ) -> Result<Vec<Dropped>, RemoteError> {
        if !self.needs_histograms() {
            return Err(RemoteError::Turn("no label histograms were asked for"));
        }
        let (federation, expected) = (&mut self.run.federation, self.classes);
        let mut dropped = Vec::new();
        let mut counts = Vec::new();
        for device in 0..federation.budgets.devices() {
            let answer = answers.remove(&device);
            let reason = answer.as_ref().and_then(|answer| {
                let given = answer.len();
                match answer.iter().position(|count| !count.is_finite()) {
                    _ if given != expected => Some(Reason::Length { given, expected }),
                    Some(index) => Some(Reason::NotFinite { index }),
                    None => None,
                }
            });
            counts.push(match (answer, reason) {
                (Some(answer), None) => answer,
                _ => vec![0.0; expected],
            });
            dropped.extend(reason.map(|reason| Dropped { device, reason }));
        }
        let others = answers.into_keys();
        dropped.extend(others.map(|device| Dropped { device, reason: Reason::NotAsked }));
        federation.weighting.learn_labels(counts);
        self.run.checkpoint()?;
        Ok(dropped)
    }

    fn needs_histograms(&self) -> bool {
        let reads = self.experiment().aggregate.rule.histograms().is_some();
        reads && !self.run.federation.weighting().knows_labels()
    }

    /// The next round's questions to the devices that are `present`. The ledger has them when this
    /// returns; asked again, before or after an interruption, they are the same.
    pub fn ask(&mut self, present: &[u32]) -> Result<Vec<Question>, RemoteError> {
        let round = self.round() + 1;
        if round > self.rounds() {
            return Err(RemoteError::Turn("all rounds are done"));
        }
        if self.needs_histograms() {
            return Err(RemoteError::Turn(
                "label histograms come before the first round: call ask_histograms and \
                 learn_histograms",
            ));
        }
        if self.asked.is_none() {
            let devices = match self.again.take() {
                Some(devices) => devices,
                None => {
                    let mut devices = self.run.federation.participants(round);
                    devices.retain(|device| present.contains(device));
                    devices
                }
            };
            let file = AskedFile { round, devices };
            write(&self.run.folder().join(ASKED), &file)?;
            self.asked = Some((self.run.federation.ask(&file.devices)?, Instant::now()));
        }
        let granted = self.asked.iter().flat_map(|(asked, _)| &asked.granted);
        Ok(granted
            .filter(|granted| present.contains(&granted.device))
            .map(|granted| Question { device: granted.device, round, share: granted.share })
            .collect())
    }

    /// Ends the round with what was answered, in any order; devices without an answer are left out.
    /// When this returns, a checkpoint of the round is on the disk.
    pub fn step(&mut self, mut answers: BTreeMap<u32, Vec<f32>>) -> Result<Step, RemoteError> {
        let Some((asked, start)) = self.asked.take() else {
            return Err(RemoteError::Turn("no question was asked: call ask before step"));
        };
        let expected = self.parameters().len();
        let (mut answered, mut received) = (Vec::new(), Vec::new());
        let (mut missing, mut dropped) = (Vec::new(), Vec::new());
        for granted in &asked.granted {
            let device = granted.device;
            let Some(answer) = answers.remove(&device) else {
                missing.push(device);
                continue;
            };
            match vet(granted, &answer, expected) {
                Ok(()) => {
                    received.push(Received::new(answer, granted.sigma()));
                    answered.push(granted.clone());
                }
                Err(reason) => dropped.push(Dropped { device, reason }),
            }
        }
        let others = answers.into_keys();
        dropped.extend(others.map(|device| Dropped { device, reason: Reason::NotAsked }));
        self.run.federation.received = received;
        let record = self.run.federation.conclude(&asked, &answered, start)?;
        self.run.append(&record, start)?;
        self.run.checkpoint()?;
        if record.round == self.rounds() {
            self.run.finish()?;
        }
        Ok(Step { record, dropped, missing })
    }

    /// Accuracy and mean loss on the configuration's test set.
    pub fn evaluate(&mut self) -> Result<(f64, f64), RemoteError> {
        match self.run.federation.data().test.is_empty() {
            true => Err(RemoteError::Turn("a model that is trained elsewhere is evaluated there")),
            false => Ok(self.run.federation.evaluate()),
        }
    }

    /// What the rounds so far come to.
    pub fn summary(&mut self) -> Result<Summary, RemoteError> {
        let records = self.run.records()?;
        Ok(self.run.summary(&records)?)
    }

    /// Warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.run.federation.take_warnings()
    }
}

/// Refuses devices that do not fit together, or not the configuration.
fn check_devices(
    experiment: &Experiment,
    parameters: usize,
    devices: &[Facts],
) -> Result<(), RemoteError> {
    if devices.is_empty() {
        return Err(RemoteError::Devices("there are no devices".into()));
    }
    for (place, facts) in (0..).zip(devices) {
        if facts.device != place {
            return Err(RemoteError::Devices(format!(
                "devices must be numbered from 0 to {}, each once: device {place} is missing",
                devices.len() - 1
            )));
        }
        let (rounds, delta) = (experiment.run.rounds, experiment.delta());
        let differs = |what: &str, has: String, expected: String| {
            Err(RemoteError::Devices(format!(
                "device {place} has {what} {has}, but the base station has {expected}: give both \
                 the same configuration"
            )))
        };
        if facts.parameters != parameters {
            let (has, expected) = (facts.parameters.to_string(), parameters.to_string());
            return differs("parameters", has, expected);
        }
        if facts.rounds != rounds {
            return differs("rounds", facts.rounds.to_string(), rounds.to_string());
        }
        if facts.delta != delta {
            return differs("delta", facts.delta.to_string(), delta.to_string());
        }
        let numbers = [facts.left, facts.epsilon, facts.epsilon_ever];
        if facts.samples == 0 || numbers.iter().any(|number| number.is_nan()) {
            return Err(RemoteError::Devices(format!(
                "device {place} tells of itself what cannot be: {facts:?}"
            )));
        }
        if facts.seeded != devices[0].seeded {
            return Err(RemoteError::Devices(
                "some devices draw from a seed and some from the operating system".into(),
            ));
        }
    }
    Ok(())
}

/// Refuses a device whose noise the base station could not know. Where costs are μ², any budget
/// will do: what is left of it says what may be asked for, and the report has the device's ε.
fn check_budget(facts: &Facts, filter: Option<&Filter>) -> Result<(), RemoteError> {
    let declared = filter.map_or(f64::INFINITY, |filter| filter.budget().epsilon());
    let in_mu = filter.is_some_and(|filter| filter.kind() == FilterKind::Gdp);
    match facts.epsilon == declared || (in_mu && facts.epsilon.is_finite()) {
        true => Ok(()),
        false => Err(RemoteError::Devices(format!(
            "device {} holds itself to epsilon {}, but the base station has {declared}: give both \
             the same privacy.epsilon",
            facts.device, facts.epsilon
        ))),
    }
}

/// The devices as they were when the run began: what they have left is told then. A budget that
/// was raised since counts.
fn known_devices(folder: &Path, now: &[Facts]) -> Result<Vec<Facts>, RemoteError> {
    // Nothing is asked before the file is there: without it the devices are as they are now.
    let Some(before): Option<Vec<Facts>> = read(&folder.join(DEVICES))? else {
        return Ok(now.to_vec());
    };
    let fixed = |facts: &Facts| Facts { left: 0.0, epsilon_ever: 0.0, ..*facts };
    let ever = |(before, now): (&Facts, &Facts)| Facts {
        epsilon_ever: before.epsilon_ever.max(now.epsilon_ever),
        ..*before
    };
    match before.iter().map(fixed).eq(now.iter().map(fixed)) {
        true => Ok(before.iter().zip(now).map(ever).collect()),
        false => Err(RemoteError::Devices(format!(
            "{}: the run began with other devices; it can only go on with the same ones",
            folder.display()
        ))),
    }
}

fn read<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Option<T>, RemoteError> {
    let text = match files::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RemoteError::Io { action: "read", path: path.into(), source }),
    };
    let damaged = |error: serde_json::Error| RemoteError::Answer {
        path: path.into(),
        what: error.to_string(),
    };
    serde_json::from_str(&text).map(Some).map_err(damaged)
}

fn write(path: &Path, value: &impl Serialize) -> Result<(), RemoteError> {
    let io = |error: std::io::Error| RemoteError::io("write", path)(error);
    let text = serde_json::to_string(value).map_err(|error| io(error.into()))?;
    write_atomically(path, |file| file.write_all(text.as_bytes())).map_err(io)
}

/// The data of a base station that evaluates nothing.
fn no_data(experiment: &Experiment) -> Dataset {
    let none = Split { images: Arc::default(), labels: Vec::new(), rows: 1, cols: 1 };
    Dataset {
        name: experiment.data.name.clone(),
        source: "elsewhere".into(),
        train: none.clone(),
        test: none,
        classes: 0,
        hashes: Vec::new(),
    }
}

/// Threads need a network to work on; of a model that is trained elsewhere there is none.
fn no_network() -> Result<Network, RemoteError> {
    let (rows, cols) = (1, 1);
    Network::new(Shape::new(1, rows, cols), &[Layer::Linear { outputs: 1 }])
        .map_err(|source| FederationError::Model { rows, cols, source }.into())
}
