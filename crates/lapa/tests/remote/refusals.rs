//! Configurations, devices and folders that do not fit.

use lapa::remote::{Device, RemoteError};

use crate::{Setting, common};

fn error(changes: &[&str], seeded: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let experiment = common::experiment(changes);
    let ledger = folder.path().join("ledger.db");
    let device = Device::of_partition(&experiment, &common::data(), 0, seeded, &ledger);
    device.err().expect("a refusal").to_string()
}

#[test]
fn what_only_a_simulation_has_is_refused() {
    let error_of = |changes: &[&str]| error(changes, true);
    let noisy = "privacy.epsilon=8";
    let radio = error_of(&[noisy, "transmit.uplink=analog"]);
    assert!(
        radio.contains("transmit.uplink = \"analog\"") && radio.contains("\"ideal\""),
        "{radio}"
    );
    let ideal = "transmit.uplink=ideal";
    let threshold = error_of(&[noisy, ideal, "aggregate.ser_threshold=0.1"]);
    assert!(threshold.contains("a threshold on links"), "{threshold}");
    let ledger = error_of(&[noisy, ideal, "run.ledger=shared.db"]);
    assert!(ledger.contains("run.ledger = \"shared.db\" is one for all"), "{ledger}");
}

#[test]
fn a_real_device_needs_a_budget() {
    for changes in [&["privacy=none"][..], &["profile=paper", "privacy.epsilon=8"]] {
        let changes: Vec<&str> = changes.iter().copied().chain(["transmit.uplink=ideal"]).collect();
        let error = error(&changes, false);
        assert!(error.contains("no budget that it could hold itself to"), "{error}");
    }
}

#[test]
fn a_device_without_a_part_or_with_strange_records_is_refused() {
    let setting = Setting::new(&["privacy.epsilon=8"]);
    let error = setting.device(4).err().unwrap().to_string();
    assert_eq!(error, "device 4 has no part of the data: the configuration has devices 0 to 3");
    let ledger = setting.folder.path().join("own.db");
    let own = |records, classes| {
        Device::with_records(&setting.experiment, 0, records, classes, true, &ledger)
            .err()
            .unwrap()
            .to_string()
    };
    let mut records = common::data().train;
    let mut declared = setting.experiment.clone();
    declared.data.classes = Some(12);
    let error = Device::with_records(&declared, 0, records.clone(), 10, true, &ledger).err();
    let error = error.unwrap().to_string();
    assert!(error.contains("10 classes: allowed is data.classes = 12"), "{error}");
    assert!(own(records.clone(), 9).contains("a label is 9: allowed is below 9"));
    records.labels.pop();
    assert!(own(records.clone(), 10).contains("pixels for 599 labels"));
    records.labels.clear();
    assert!(own(records, 10).contains("at least one"));
}

#[test]
fn devices_that_do_not_fit_the_base_station_are_refused() {
    let mut setting = Setting::new(&["privacy.epsilon=8"]);
    let good = setting.facts();
    let open = |change: &dyn Fn(&mut Vec<lapa::remote::DeviceInfo>)| {
        let mut facts = good.clone();
        change(&mut facts);
        setting.open(&facts).err().expect("a refusal").to_string()
    };
    assert!(open(&|facts| facts.clear()).contains("no devices"));
    assert!(open(&|facts| facts.retain(|facts| facts.device != 1)).contains("device 1 is missing"));
    assert!(open(&|facts| facts[2].device = 1).contains("device 2 is missing"));
    assert!(open(&|facts| facts[2].parameters = 3).contains("device 2 has parameters 3"));
    assert!(open(&|facts| facts[2].rounds = 3).contains("device 2 has rounds 3"));
    assert!(open(&|facts| facts[2].delta = 0.1).contains("device 2 has delta 0.1"));
    assert!(open(&|facts| facts[2].samples = 0).contains("impossible values"));
    assert!(open(&|facts| facts[2].left = f64::NAN).contains("impossible values"));
    assert!(open(&|facts| facts[2].seeded = false).contains("operating system"));
    assert!(open(&|facts| facts[2].epsilon_ever = f64::NAN).contains("impossible values"));
    assert!(open(&|facts| facts[2].epsilon = 9.0).contains("has privacy.epsilon = 9"));
    let labels = Setting::new(&["privacy.epsilon=8", "aggregate.rule=wasserstein"]);
    let many = lapa::remote::DeviceInfo { device: 0, ..good[0] };
    let error = labels.open(&vec![many; 10_001]).err().unwrap().to_string();
    assert!(
        error.contains("each of the 10001 devices") && error.contains("at most 10000"),
        "{error}"
    );
    // None of them has left a folder, in which the right devices would be others.
    assert!(!setting.path().exists());
    setting.open(&good).unwrap();
}

#[test]
fn a_folder_goes_on_only_with_its_own_run() {
    let mut setting = Setting::new(&["privacy.epsilon=8"]);
    let mut station = setting.station();
    let facts = setting.facts();
    let busy = setting.open(&facts).err().unwrap();
    assert!(matches!(busy, RemoteError::Run(lapa::run::RunError::Busy(_))), "{busy}");
    setting.round(&mut station, &[0, 1, 2, 3]);
    drop(station);
    let mut facts = setting.facts();
    facts[0].samples += 1;
    assert!(setting.open(&facts).err().unwrap().to_string().contains("other devices"));
    let mut other = Setting::new(&["privacy.epsilon=8", "learn.learning_rate=0.123"]);
    other.folder = setting.folder;
    let facts = other.facts();
    let error = other.open(&facts).err().unwrap().to_string();
    assert!(error.contains("changed since the run began"), "{error}");
}

#[test]
fn calls_out_of_turn_say_so() {
    let mut setting = Setting::new(&[
        "privacy.epsilon=8",
        "aggregate.rule=wasserstein",
        "aggregate.wasserstein.histograms=noisy",
    ]);
    let mut station = setting.station();
    let error = station.ask(&[0]).unwrap_err().to_string();
    assert!(error.contains("label histograms come before the first round"), "{error}");
    let error = station.step(Default::default()).unwrap_err().to_string();
    assert!(error.contains("call ask before step"), "{error}");
    let error = setting.devices[0].privatize("run", 1, &vec![0.0; 7850], 1.0).unwrap_err();
    assert!(error.to_string().contains("trains by itself"), "{error}");
    let mut setting = Setting::new(&["privacy.epsilon=8"]);
    let error = setting.devices[0].histogram("run", 0.1).unwrap_err().to_string();
    assert!(error.contains("reads no label histograms"), "{error}");
}

/// Warnings of a real federation were lost once.
#[test]
fn a_base_station_hears_warnings_with_its_first_round() {
    let sizes = ["partition.mix.iid=4", "partition.mix.non_iid=0", "partition.mix.iid_samples=110"];
    let changes = [&["privacy.epsilon=8", "privacy.delta=0.01"][..], &sizes].concat();
    let mut setting = Setting::new(&changes);
    let mut station = setting.station();
    let warnings = setting.round(&mut station, &[0, 1, 2, 3]).warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("is not below 1/110"), "{warnings:?}");
    assert!(setting.round(&mut station, &[0, 1, 2, 3]).warnings.is_empty());
}
