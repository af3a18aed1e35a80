//! Seeded devices are the simulator's, bit by bit.

use crate::{Setting, bits, common, ideal};

const ALL: [u32; 4] = [0, 1, 2, 3];

/// Every way that the releases of a device can be declared, and weights that need histograms.
const CASES: &[&[&str]] = &[
    &["privacy.epsilon=8"],
    &["privacy.epsilon=8", "privacy.allocator=uniform", "learn.sampling=fixed"],
    &["privacy.epsilon=8", "privacy.allocator=lapa"],
    &["privacy.epsilon=8", "privacy.allocator=lapa", "learn.sampling=fixed"],
    &["privacy.epsilon=4", "privacy.allocator=arb", "learn.momentum=0.9", "learn.averaging=0.5"],
    &["privacy.epsilon=8", "privacy.noise=discrete-gaussian"],
    &["privacy.epsilon=8", "privacy.adjacency=add-remove"],
    &["privacy.initial_sigma=0.05"],
    &[
        "profile=paper",
        "privacy.initial_sigma=0.01",
        "privacy.allocator=lapa",
        "model.name=logistic",
    ],
    &["privacy.epsilon=8", "aggregate.rule=wasserstein", "aggregate.wasserstein.histograms=noisy"],
    &["privacy.epsilon=8", "aggregate.rule=noise-aware", "aggregate.noise-aware.histograms=public"],
    &["privacy.epsilon=8", "aggregate.rule=fedadp", "run.participation=0.5"],
    &["privacy=none"],
    &["privacy.epsilon=8", "model.start=random", "run.rounds=3"],
];

#[test]
fn seeded_devices_give_the_model_of_the_simulator_bit_by_bit() {
    for case in CASES {
        let mut setting = Setting::new(case);
        let mut simulator = common::federation(&ideal(case));
        let mut station = setting.station();
        assert_eq!(bits(station.parameters()), bits(&simulator.model().parameters), "{case:?}");
        // To the end, where tables and plots are made, only once.
        for _ in 0..if case == &CASES[0] { station.rounds() } else { 3 } {
            let expected = simulator.next_round().unwrap();
            let step = setting.round(&mut station, &ALL);
            let model = simulator.model();
            assert_eq!(bits(station.parameters()), bits(&model.parameters), "{case:?}");
            assert_eq!(bits(station.evaluated()), bits(model.evaluated()), "{case:?}");
            assert_eq!((step.dropped.len(), step.missing.len()), (0, 0));
            let (mut ours, mut theirs) = (step.record, expected);
            // The base station does not see what is before the noise, nor the same clock.
            (ours.seconds, theirs.seconds) = (0.0, 0.0);
            if let lapa::observe::DeviceRecords::List(list) = &mut theirs.devices {
                for device in list {
                    (device.gradient_norm, device.clipped) = (None, None);
                }
            }
            assert_eq!(ours, theirs, "{case:?}");
        }
        let (mut ours, theirs) = (station.summary().unwrap().privacy, simulator.privacy().unwrap());
        // The same figures; who says so differs (`elsewhere.rs`).
        let declared = ours.privacy.starts_with("Guarantee: declared by the devices");
        assert_eq!(declared, theirs.privacy.starts_with("Guarantee: proven"), "{case:?}");
        ours.privacy.clone_from(&theirs.privacy);
        assert_eq!(ours, theirs, "{case:?}");
        assert_eq!(station.evaluate().unwrap(), simulator.evaluate().unwrap());
        for device in ALL {
            let spent = setting.devices[device as usize].spent().unwrap();
            let expected = simulator.books().declared(device).map(|f| f.budget().epsilon());
            assert_eq!(spent.declared, expected.unwrap_or(f64::INFINITY));
            assert!(spent.epsilon <= spent.declared || spent.epsilon == f64::INFINITY);
        }
    }
}

#[test]
fn processes_that_restart_after_every_message_change_nothing() {
    for case in [
        &["privacy.epsilon=8", "privacy.allocator=lapa"][..],
        &[
            "privacy.epsilon=8",
            "aggregate.rule=wasserstein",
            "aggregate.wasserstein.histograms=noisy",
        ],
    ] {
        let mut setting = Setting::new(case);
        let mut simulator = common::federation(&ideal(case));
        let name = setting.station().run().to_string();
        let mut records = Vec::new();
        for round in 1..=6 {
            let mut station = setting.station();
            assert_eq!((station.run(), station.round()), (name.as_str(), round - 1));
            setting.restart_devices();
            setting.round(&mut station, &ALL);
            records.push(simulator.next_round().unwrap());
            assert_eq!(bits(station.parameters()), bits(&simulator.model().parameters));
        }
        let ours = lapa::run::read_summary(&setting.path()).unwrap().unwrap();
        let theirs = simulator.summary(&records, 0.0).unwrap();
        // A base station does not know the labels of its devices.
        assert!(ours.confusion.is_some() && ours.confusion == theirs.confusion);
        assert!(ours.device_accuracy.is_none() && theirs.device_accuracy.is_some());
        let mut station = setting.station();
        assert_eq!(station.round(), 6);
        let error = station.ask(&ALL).unwrap_err();
        assert_eq!(error.to_string(), "all rounds are done");
    }
}

/// A kill between the last checkpoint and the summary costs no summary.
#[test]
fn a_base_station_that_was_killed_before_its_summary_writes_it_when_it_is_opened() {
    let mut setting = Setting::new(&["privacy.epsilon=8", "run.rounds=1"]);
    let mut station = setting.station();
    setting.round(&mut station, &ALL);
    drop(station);
    let path = setting.path().join("summary.json");
    let summary = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    drop(setting.station());
    assert_eq!(std::fs::read(&path).unwrap(), summary);
}

/// With the weights of those that answered, which are |D_k| over their sum.
#[test]
fn a_round_without_one_device_averages_the_others() {
    let mut setting = Setting::new(&["privacy.epsilon=8", "privacy.allocator=lapa"]);
    let mut station = setting.station();
    setting.round(&mut station, &ALL);
    let before = station.parameters().to_vec();
    let questions = station.ask(&ALL).unwrap();
    assert_eq!(questions.len(), 4);
    let mut answers = setting.answers(&station, &questions);
    let lost = answers.remove(&2).unwrap();
    let samples: Vec<f64> = setting.facts().iter().map(|facts| f64::from(facts.samples)).collect();
    let total = samples[0] + samples[1] + samples[3];
    let rate = setting.experiment.learn.learning_rate as f32;
    let mut expected = before.clone();
    let mut sum = vec![0.0f32; before.len()];
    for (&device, answer) in &answers {
        let weight = (samples[device as usize] / total) as f32;
        sum.iter_mut().zip(answer).for_each(|(sum, g)| *sum += weight * g);
    }
    expected.iter_mut().zip(&sum).for_each(|(w, g)| *w -= rate * g);
    let step = station.step(answers).unwrap();
    assert_eq!(step.missing, [2]);
    for (ours, theirs) in station.parameters().iter().zip(&expected) {
        assert!((ours - theirs).abs() <= 1e-6 * (1.0 + theirs.abs()), "{ours} {theirs}");
    }
    let device = &common::devices(&step.record)[2];
    assert_eq!((device.weight, device.selected), (0.0, true));
    assert!(device.epsilon > 0.0, "it may have released what was lost");
    assert!(lost.iter().any(|&value| value != 0.0));
    // The others and it go on.
    let step = setting.round(&mut station, &ALL);
    assert!(step.missing.is_empty());
    // Absent from the beginning: not asked, and not charged.
    let charged = setting.charged(1).len();
    let step = setting.round(&mut station, &[0, 2, 3]);
    assert_eq!((step.missing.len(), setting.charged(1).len()), (0, charged));
}

#[test]
fn a_round_without_any_answer_leaves_the_model() {
    let mut setting = Setting::new(&["privacy.epsilon=8"]);
    let mut station = setting.station();
    let before = bits(station.parameters());
    assert_eq!(station.ask(&[]).unwrap(), []);
    station.step(Default::default()).unwrap();
    assert_eq!((bits(station.parameters()), station.round()), (before, 1));
}
