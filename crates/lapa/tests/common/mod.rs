//! A small federation to test with.

use std::sync::{Arc, OnceLock};

use lapa::config::{Experiment, Override};
use lapa::data::{DataName, Dataset, Split};
use lapa::federation::Federation;
use lapa::observe::{DeviceRecord, DeviceRecords, RoundRecord};

/// The first few hundred synthetic digits.
pub fn data() -> Dataset {
    static DATA: OnceLock<Dataset> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        let mut data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
        let shorten = |split: &mut Split, len: usize| {
            Arc::make_mut(&mut split.images).truncate(len * split.rows * split.cols);
            split.labels.truncate(len);
        };
        shorten(&mut data.train, 600);
        shorten(&mut data.test, 100);
        data
    });
    data.clone()
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

pub fn federation(changes: &[&str]) -> Federation {
    Federation::new(experiment(changes), data()).unwrap()
}

pub fn devices(record: &RoundRecord) -> &[DeviceRecord] {
    match &record.devices {
        DeviceRecords::List(list) => list,
        DeviceRecords::Summary(_) => panic!("a list was asked for"),
    }
}
