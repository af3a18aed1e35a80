//! Golden runs that the program alone does not make: a resumed run, and a federation of processes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, digits};
use lapa::remote::{BaseStation, Device, Model};
use lapa::run::{Run, RunEvent, RunFolder};

use super::{Golden, cases::BASE, digests};

/// Changes of a federation of processes: every kind of declared budget, and histograms.
const REMOTE: &[(&str, &[&str])] = &[
    ("remote-uniform", &["privacy.epsilon=8"]),
    ("remote-lapa", &["privacy.epsilon=8", "privacy.allocator=lapa"]),
    ("remote-wasserstein", &["privacy.epsilon=8", "aggregate.rule=wasserstein"]),
    ("remote-paper", &["profile=paper", "privacy.initial_sigma=0.01"]),
];

pub fn all(place: &Path) -> Golden {
    let mut golden = Golden::new();
    for (name, changes) in REMOTE {
        golden.insert(name.to_string(), federate(&experiment(changes), &place.join(name)));
    }
    golden.insert("resumed".into(), resumed(&place.join("resumed")));
    golden
}

fn experiment(changes: &[&str]) -> Experiment {
    let logistic = ["model.name=logistic", "transmit.uplink=ideal"];
    let changes = logistic.iter().chain(changes);
    let changes: Vec<_> = changes.map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(BASE, "golden", &changes).unwrap()
}

fn data() -> Dataset {
    digits(600, 100)
}

/// A run that is stopped after three of its four rounds, one behind its checkpoint, and resumed.
fn resumed(folder: &Path) -> [String; 2] {
    let experiment = experiment(&["privacy.epsilon=8", "privacy.allocator=lapa"]);
    let run = Run::create(experiment, data(), folder).unwrap();
    run.execute(&mut |event| match event {
        RunEvent::Round(record) if record.round == 3 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .unwrap();
    let there = RunFolder::open(folder).unwrap();
    let experiment = there.experiment().unwrap();
    let run = Run::resume(there, experiment, data()).unwrap();
    run.execute(&mut |_| ControlFlow::Continue(())).unwrap();
    digests(folder)
}

/// A federation whose devices and base station share no memory.
fn federate(experiment: &Experiment, folder: &Path) -> [String; 2] {
    std::fs::create_dir(folder).unwrap();
    let device = |device| {
        let ledger = folder.join(format!("device-{device}.db"));
        Device::of_partition(experiment, &data(), device, true, &ledger).unwrap()
    };
    let mut devices: Vec<_> = (0..experiment.partition.scheme.devices()).map(device).collect();
    let facts: Vec<_> = devices.iter_mut().map(|device| device.describe().unwrap()).collect();
    let path = folder.join("station");
    let model = Model::Configured(data().into());
    let mut station = BaseStation::open(experiment, model, &facts, &path).unwrap();
    let run = station.run().to_string();
    let asked = station.ask_histograms().unwrap();
    if !asked.is_empty() {
        let answer = |asked: lapa::remote::Question| {
            let device = &mut devices[asked.device as usize];
            (asked.device, device.histogram(&run, asked.cost).unwrap())
        };
        let counts: BTreeMap<_, _> = asked.into_iter().map(answer).collect();
        station.learn_histograms(counts).unwrap();
    }
    let all: Vec<u32> = (0..experiment.partition.scheme.devices()).collect();
    for _ in 0..station.rounds() {
        let mut answers = BTreeMap::new();
        for asked in station.ask(&all).unwrap() {
            let device = &mut devices[asked.device as usize];
            let (round, model) = (asked.round, station.parameters());
            let answer = device.train(&run, round, model, asked.cost).unwrap();
            answers.insert(asked.device, answer.into_gradient());
        }
        station.step(answers).unwrap();
    }
    digests(&path)
}
