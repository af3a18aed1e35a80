//! A small federation to test with.

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, digits};
use lapa::observe::{DeviceRecord, DeviceRecords, RoundRecord};
use lapa::simulation::Simulation;

/// The first few hundred synthetic digits.
pub fn data() -> Dataset {
    digits(600, 100)
}

/// Four devices and a small model; `changes` win.
pub fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 6, seed = 3, threads = 1, evaluate_every = 6, checkpoint_every = 4 }
        model.name = 'logistic'
        learn = { batch_fraction = 0.25, momentum = 0 }
        partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

pub fn federation(changes: &[&str]) -> Simulation {
    Simulation::new(experiment(changes), data()).unwrap()
}

pub fn devices(record: &RoundRecord) -> &[DeviceRecord] {
    match &record.devices {
        DeviceRecords::List(list) => list,
        DeviceRecords::Summary(_) => panic!("a list was asked for"),
    }
}
