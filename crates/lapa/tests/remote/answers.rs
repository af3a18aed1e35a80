//! Answers that a base station takes, and those that it is told twice.

use std::collections::BTreeMap;

use lapa::remote::Reason;

use crate::{Setting, bits, charged};

const ALL: [u32; 4] = [0, 1, 2, 3];

#[test]
fn answers_that_are_none_are_dropped_and_named() {
    let mut setting = Setting::new(&["privacy.epsilon=8", "run.participation=0.75"]);
    let mut station = setting.station();
    let questions = station.ask(&ALL).unwrap();
    let mut answers = setting.answers(&station, &questions);
    let asked: Vec<u32> = questions.iter().map(|question| question.device).collect();
    let other = ALL.into_iter().find(|device| !asked.contains(device)).unwrap();
    let mut expected = BTreeMap::new();
    answers.get_mut(&asked[0]).unwrap()[5] = f32::NAN;
    expected.insert(asked[0], Reason::NotFinite { index: 5 });
    answers.get_mut(&asked[1]).unwrap().push(0.0);
    let len = station.parameters().len();
    expected.insert(asked[1], Reason::Length { given: len + 1, expected: len });
    answers.insert(other, vec![0.0; len]);
    expected.insert(other, Reason::NotAsked);
    answers.insert(77, vec![]);
    expected.insert(77, Reason::NotAsked);
    let step = station.step(answers).unwrap();
    let dropped: BTreeMap<u32, Reason> =
        step.dropped.iter().map(|dropped| (dropped.device, dropped.reason)).collect();
    assert_eq!(dropped, expected);
    assert!(station.parameters().iter().all(|value| value.is_finite()));
}

/// Honest answers pass in `simulator.rs`; ten times one does not.
#[test]
fn an_answer_longer_than_clip_and_noise_allow_is_dropped() {
    let mut setting = Setting::new(&["privacy.epsilon=8", "learn.sampling=fixed"]);
    let mut station = setting.station();
    let questions = station.ask(&ALL).unwrap();
    let mut answers = setting.answers(&station, &questions);
    answers.get_mut(&1).unwrap().iter_mut().for_each(|value| *value *= 10.0);
    let step = station.step(answers).unwrap();
    let [dropped] = &step.dropped[..] else { panic!("{:?}", step.dropped) };
    assert!(matches!(dropped.reason, Reason::TooLong { .. }), "{}", dropped.reason);
}

#[test]
fn a_question_asked_again_is_answered_the_same_and_costs_nothing() {
    for seeded in [true, false] {
        let mut setting = Setting::with(&["privacy.epsilon=8", "privacy.allocator=lapa"], seeded);
        let mut station = setting.station();
        let questions = station.ask(&ALL).unwrap();
        let first = setting.answers(&station, &questions);
        let costs: Vec<_> = ALL.map(|device| setting.charged(device)).into();
        // Both begin anew, before the round was over.
        drop(station);
        setting.restart_devices();
        let mut station = setting.station();
        // Device 3 does not come back, and devices that were not asked are not asked now.
        let again = station.ask(&[0, 1, 2]).unwrap();
        assert_eq!(again, questions[..3]);
        let answers = setting.answers(&station, &questions);
        for (device, answer) in &answers {
            assert_eq!(bits(answer), bits(&first[device]));
        }
        assert_eq!(ALL.map(|device| setting.charged(device)).to_vec(), costs);
        let asked = charged(&setting.path().join("ledger.db"));
        assert_eq!(asked.len(), 4, "the base station's ledger counts nothing twice");
        station.step(answers).unwrap();
        assert_eq!(setting.round(&mut station, &ALL).record.round, 2);
    }
}

#[test]
fn devices_of_the_operating_system_are_not_the_seed() {
    let changes = ["privacy.epsilon=8", "run.entropy=seed"];
    let mut models = Vec::new();
    for _ in 0..2 {
        let mut setting = Setting::with(&changes, false);
        let mut station = setting.station();
        setting.round(&mut station, &ALL);
        models.push(bits(station.parameters()));
        let words = station.summary().unwrap().privacy.privacy;
        assert!(!words.contains("Simulation"), "{words}");
    }
    let mut setting = Setting::new(&changes);
    let mut station = setting.station();
    setting.round(&mut station, &ALL);
    models.push(bits(station.parameters()));
    assert!(models[0] != models[1] && models[0] != models[2] && models[1] != models[2]);
    assert!(station.summary().unwrap().privacy.privacy.contains("Simulation"));
}
