//! Devices and a base station that share no memory.

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod budgets;
mod elsewhere;
mod refusals;
mod simulator;

use std::collections::BTreeMap;
use std::path::Path;

use lapa::config::Experiment;
use lapa::remote::{BaseStation, Device, DeviceInfo, Model, Question, RemoteError, Step};

/// Four devices in a folder, and what is needed to open a base station there.
struct Setting {
    experiment: Experiment,
    folder: tempfile::TempDir,
    devices: Vec<Device>,
    seeded: bool,
}

/// With the change that makes an experiment one of devices that share no memory.
fn ideal<'a>(changes: &[&'a str]) -> Vec<&'a str> {
    ["transmit.uplink=ideal"].into_iter().chain(changes.iter().copied()).collect()
}

impl Setting {
    fn new(changes: &[&str]) -> Self {
        Self::with(changes, true)
    }

    fn with(changes: &[&str], seeded: bool) -> Self {
        let experiment = common::experiment(&ideal(changes));
        let folder = tempfile::tempdir().unwrap();
        let mut setting = Self { experiment, folder, devices: Vec::new(), seeded };
        setting.restart_devices();
        setting
    }

    fn ledger(&self, device: u32) -> std::path::PathBuf {
        self.folder.path().join(format!("device-{device}.db"))
    }

    /// Every device as a new process would find it.
    fn restart_devices(&mut self) {
        self.devices.clear();
        for device in 0..4 {
            self.devices.push(self.device(device).unwrap());
        }
    }

    fn device(&self, device: u32) -> Result<Device, RemoteError> {
        let ledger = self.ledger(device);
        Device::of_partition(&self.experiment, &common::data(), device, self.seeded, &ledger)
    }

    fn facts(&mut self) -> Vec<DeviceInfo> {
        self.devices.iter_mut().map(|device| device.describe().unwrap()).collect()
    }

    /// The base station of the folder, as a new process would find it.
    fn station(&mut self) -> BaseStation {
        let facts = self.facts();
        self.open(&facts).unwrap()
    }

    fn open(&self, facts: &[DeviceInfo]) -> Result<BaseStation, RemoteError> {
        let model = Model::Configured(common::data().into());
        BaseStation::open(&self.experiment, model, facts, &self.path())
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("station")
    }

    /// Answers of the devices, those that refuse left out.
    fn answers(
        &mut self,
        station: &BaseStation,
        questions: &[Question],
    ) -> BTreeMap<u32, Vec<f32>> {
        let mut answers = BTreeMap::new();
        // Any order will do.
        for question in questions.iter().rev() {
            let device = &mut self.devices[question.device as usize];
            let (run, parameters) = (station.run(), station.parameters());
            if let Ok(answer) = device.train(run, question.round, parameters, question.cost) {
                answers.insert(question.device, answer.into_gradient());
            }
        }
        answers
    }

    /// One round with the devices that are present.
    fn round(&mut self, station: &mut BaseStation, present: &[u32]) -> Step {
        if let Some(questions) = Some(station.ask_histograms().unwrap()).filter(|q| !q.is_empty()) {
            let mut counts = BTreeMap::new();
            for question in questions.iter().rev() {
                let device = &mut self.devices[question.device as usize];
                let answer = device.histogram(station.run(), question.cost).unwrap();
                counts.insert(question.device, answer);
            }
            assert_eq!(station.learn_histograms(counts).unwrap(), []);
        }
        let questions = station.ask(present).unwrap();
        let answers = self.answers(station, &questions);
        station.step(answers).unwrap()
    }

    /// Releases in each device's own ledger, with their cost.
    fn charged(&self, device: u32) -> Vec<(u32, f64)> {
        charged(&self.ledger(device))
    }
}

/// Round and cost of every release in a ledger.
fn charged(ledger: &Path) -> Vec<(u32, f64)> {
    let ledger = lapa_privacy::ledger::Ledger::open_read_only(ledger).unwrap();
    ledger.releases().unwrap().iter().map(|release| (release.round, release.cost)).collect()
}

/// The bits of numbers, so that −0 and NaN are told apart as well.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
