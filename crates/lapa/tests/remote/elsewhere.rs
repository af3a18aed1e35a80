//! Models that are trained elsewhere.

use std::collections::BTreeMap;

use lapa::remote::{BaseStation, Device, DeviceInfo, Model};
use lapa::run::CheckedRun;
use lapa_privacy::calibrate;
use lapa_privacy::{Budget, Event, Release};

use crate::common;

const CHANGES: &[&str] =
    &["privacy.epsilon=8", "transmit.uplink=ideal", "learn.clip_norm=0.5", "run.rounds=4"];

fn devices(folder: &std::path::Path, seeded: bool, q: usize) -> Vec<Device> {
    let experiment = common::experiment(CHANGES);
    let device = |device: u32| {
        let ledger = folder.join(format!("{device}.db"));
        Device::of_updates(&experiment, device, 100 + device, q, seeded, &ledger).unwrap()
    };
    (0..3).map(device).collect()
}

/// σ is that of the Gaussian mechanism for 4 releases of sensitivity 2C, by the calibration of
/// another module; the noise has this σ (χ² with 20 000 degrees, α below 1e-9 at 5 σ).
#[test]
fn whole_updates_are_clipped_and_noised_for_twice_the_clip_norm() {
    let folder = tempfile::tempdir().unwrap();
    let q = 20_000;
    let mut devices = devices(folder.path(), true, q);
    let facts: Vec<DeviceInfo> =
        devices.iter_mut().map(|device| device.describe().unwrap()).collect();
    let model = Model::Outside(vec![1.0; q]);
    let experiment = common::experiment(CHANGES);
    let path = folder.path().join("station");
    let mut station = BaseStation::open(&experiment, model, &facts, &path).unwrap();
    assert!(station.evaluate().is_err());
    let z = calibrate::gaussian_noise_multiplier(Budget::new(8.0, 1e-5).unwrap(), 4).unwrap();
    let sigma = z * 2.0 * 0.5;
    for round in 1..=4 {
        let mut answers = BTreeMap::new();
        for question in station.ask(&[0, 1, 2]).unwrap() {
            let device = &mut devices[question.device as usize];
            // Far too long, and not a number: clipped, and zero.
            let raw = if question.device == 2 { f32::NAN } else { 3.0 };
            let update = vec![raw; q];
            let answer = device.privatize(station.run(), round, &update, question.cost).unwrap();
            assert!((answer.sigma() / sigma - 1.0).abs() < 1e-9, "{} {sigma}", answer.sigma());
            let mean = if question.device == 2 { 0.0 } else { 0.5 / (q as f32).sqrt() };
            let squares: f64 =
                answer.gradient().iter().map(|g| f64::from(g - mean).powi(2)).sum::<f64>();
            let ratio = squares / (q as f64 * sigma * sigma);
            assert!((ratio - 1.0).abs() < 5.0 * (2.0 / q as f64).sqrt(), "{ratio}");
            // Another update for the same question: the answer stands.
            let again = device.privatize(station.run(), round, &vec![9.0; q], question.cost);
            assert_eq!(again.unwrap(), answer);
            answers.insert(question.device, answer.into_gradient());
        }
        let step = station.step(answers).unwrap();
        assert_eq!((step.dropped.len(), step.record.accuracy), (0, None));
    }
    for device in &mut devices {
        let spent = device.spent().unwrap();
        assert!(spent.epsilon <= 8.0 && spent.epsilon > 7.99, "{spent:?}");
        assert_eq!(spent.releases, 4);
    }
    let ledger = lapa_privacy::ledger::Ledger::open_read_only(&folder.path().join("1.db")).unwrap();
    for recorded in ledger.releases().unwrap() {
        let Event::Release(release @ Release { .. }) = recorded.event else { panic!() };
        assert_eq!(release.sensitivity().unwrap(), 1.0);
    }
    assert!(path.join("model.safetensors").is_file());
    drop(station);
    let model = Model::Outside(vec![1.0; q]);
    let station = BaseStation::open(&experiment, model, &facts, &path).unwrap();
    assert_eq!((station.round(), station.parameters().len()), (4, q));
}

/// Nothing is trained that may not be released, or was; what training returns cannot be told from
/// what was answered.
#[test]
fn training_comes_after_the_charge_and_whatever_it_returns_an_update_comes() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = devices(folder.path(), false, 3).remove(0);
    let left = device.describe().unwrap().left;
    for (run, round, share) in [
        ("run", 1, 2.0 * left),
        ("run", 1, f64::NAN),
        ("run", 0, left / 4.0),
        ("run", 5, left / 4.0),
    ] {
        let refused = device.privatize_after(run, round, share, || panic!("it is not trained"));
        assert!(refused.unwrap_err().refusal().is_some());
    }
    assert_eq!(device.spent().unwrap().releases, 0);
    let strange = [vec![], vec![1.0; 4], vec![f32::NAN, 0.0, 0.0], vec![f32::INFINITY; 3]];
    for (round, update) in (1..).zip(strange) {
        let answer = device.privatize_after("run", round, left / 4.0, || update).unwrap();
        assert_eq!(answer.gradient().len(), 3);
        assert!(answer.gradient().iter().all(|value| value.is_finite()));
        assert_eq!(device.spent().unwrap().releases, round);
        let again = device.privatize_after("run", round, left / 4.0, || panic!("it was trained"));
        assert_eq!(again.unwrap(), answer);
    }
}

/// Three runs of one base station, whose ε is 8, with devices that hold themselves to 100.
#[test]
fn the_figure_of_a_base_station_is_the_largest_budget_that_its_devices_declare() {
    let folder = tempfile::tempdir().unwrap();
    let device = |number: u32, epsilon: &'static str| {
        let changes: Vec<&str> = CHANGES[1..].iter().copied().chain([epsilon]).collect();
        let ledger = folder.path().join(format!("{number}.db"));
        let experiment = common::experiment(&changes);
        Device::of_updates(&experiment, number, 100, 5, false, &ledger).unwrap()
    };
    let run = |name: &str, mut devices: Vec<Device>| {
        let facts: Vec<DeviceInfo> =
            devices.iter_mut().map(|device| device.describe().unwrap()).collect();
        let (model, path) = (Model::Outside(vec![0.0; 5]), folder.path().join(name));
        let experiment = common::experiment(CHANGES);
        let mut station = BaseStation::open(&experiment, model, &facts, &path).unwrap();
        for round in 1..=4 {
            let mut answers = BTreeMap::new();
            for question in station.ask(&[0, 1]).unwrap() {
                let device = &mut devices[question.device as usize];
                let answer = device.privatize(station.run(), round, &[0.1; 5], question.cost);
                answers.insert(question.device, answer.unwrap().into_gradient());
            }
            station.step(answers).unwrap();
        }
        let privacy = station.summary().unwrap().privacy;
        let spent = devices.iter_mut().map(|device| device.spent().unwrap().epsilon);
        (privacy, spent.fold(0.0, f64::max))
    };
    for (name, more_than_its_own) in [("first", false), ("second", true), ("third", true)] {
        let (privacy, spent) =
            run(name, vec![device(0, "privacy.epsilon=100"), device(1, "privacy.epsilon=50")]);
        assert_eq!((privacy.epsilon_provable, spent > 8.0), (100.0, more_than_its_own));
        assert!(privacy.epsilon_provable >= spent, "{spent}");
        let words = &privacy.privacy;
        assert!(
            words.starts_with("Guarantee: declared by the devices")
                && words.contains("(100, 1e-5)"),
            "{words}"
        );
        assert!(!words.contains("(8, 1e-5)"), "{words}");
        let file = std::fs::read_to_string(folder.path().join(name).join("summary.json")).unwrap();
        assert!(file.contains("\"epsilon_provable\": 100.0"), "{file}");
        // Its statement is no contradiction to its own configuration.
        assert!(CheckedRun::read(&folder.path().join(name)).unwrap().is_some());
        if name == "first" {
            // The owner lowers the budget for the last devices; what was promised before stands.
            let facts = device(0, "privacy.epsilon=9").describe().unwrap();
            assert_eq!((facts.epsilon, facts.epsilon_ever), (9.0, 100.0));
        }
    }
}

#[test]
fn what_does_not_go_with_models_elsewhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("0.db");
    let error = |changes: &[&str], samples, q| {
        let sigma = changes.iter().any(|change| change.contains("sigma"));
        let base = CHANGES.iter().filter(|change| !sigma || !change.contains("epsilon"));
        let changes: Vec<&str> = base.chain(changes).copied().collect();
        let experiment = common::experiment(&changes);
        let device = Device::of_updates(&experiment, 0, samples, q, true, &ledger);
        device.err().expect("a refusal").to_string()
    };
    assert!(error(&["privacy.noise=discrete-gaussian"], 10, 10).contains("single samples"));
    assert!(error(&["aggregate.rule=wasserstein"], 10, 10).contains("goes by labels"));
    assert!(error(&["privacy.initial_sigma=0.1"], 10, 10).contains("privacy.epsilon"));
    assert!(error(&[], 0, 10).contains("at least one"));
    assert!(error(&[], 10, 0).contains("at least one"));
    let mut device = devices(folder.path(), true, 10).remove(0);
    let refused = device.privatize("run", 1, &[0.0; 9], 1.0).unwrap_err();
    assert!(refused.to_string().contains("9 values, its model has 10"), "{refused}");
    let error = device.train("run", 1, &[0.0; 10], 1.0).unwrap_err().to_string();
    assert!(error.contains("no records to train on"), "{error}");
}
