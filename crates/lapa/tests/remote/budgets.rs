//! A device holds itself to its budget, whatever it is asked.

use std::path::{Path, PathBuf};

use lapa::remote::Refusal;
use lapa::remote::{Device, RemoteError};
use lapa_privacy::ledger::{DataKey, Ledger, Repeat, Request};

use crate::{Setting, bits, common, ideal};

const ALL: [u32; 4] = [0, 1, 2, 3];

/// The refusal of a device that is asked for a share in a round.
fn refusal(setting: &mut Setting, run: &str, round: u32, share: f64) -> Refusal {
    let parameters = vec![0.0; setting.facts()[1].parameters];
    let error = setting.devices[1].train(run, round, &parameters, share).unwrap_err();
    error.refusal().unwrap_or_else(|| panic!("{error}")).clone()
}

#[test]
fn a_greedy_share_is_refused_and_nothing_is_spent() {
    for changes in [
        &["privacy.epsilon=8", "privacy.allocator=lapa"][..],
        &["privacy.epsilon=8", "privacy.allocator=lapa", "learn.sampling=fixed"],
        &["privacy.epsilon=8"],
    ] {
        for seeded in [true, false] {
            let mut setting = Setting::with(changes, seeded);
            let left = setting.facts()[1].left;
            for share in [left * 1.001, 1e300, f64::INFINITY, f64::NAN, 0.0, -1.0, 1e-300] {
                let refused = refusal(&mut setting, "run", 1, share);
                let expected =
                    matches!(refused, Refusal::MoreThanLeft { .. } | Refusal::Cost { .. });
                assert!(expected, "{share}: {refused}");
                assert_eq!((setting.charged(1).len(), setting.facts()[1].left), (0, left));
            }
        }
    }
}

#[test]
fn a_budget_holds_over_rounds_runs_and_restarts() {
    for changes in [
        &["privacy.epsilon=8", "privacy.allocator=lapa"][..],
        &["privacy.epsilon=8", "privacy.allocator=lapa", "learn.sampling=fixed"],
    ] {
        let mut setting = Setting::with(changes, false);
        let parameters = vec![0.0; setting.facts()[1].parameters];
        let capacity = setting.facts()[1].left;
        let mut granted = 0;
        // Runs that nobody has heard of, each with the same appetite.
        for run in 0..8 {
            setting.restart_devices();
            let device = &mut setting.devices[1];
            match device.train(&format!("run {run}"), 1, &parameters, 0.3 * capacity) {
                Ok(_) => granted += 1,
                Err(error) => assert!(error.refusal().is_some(), "{error}"),
            }
            let spent = device.spent().unwrap();
            assert!(spent.epsilon <= 8.0 && spent.left >= 0.0, "{spent:?}");
        }
        assert_eq!((granted, setting.charged(1).len()), (3, 3));
        let total: f64 = setting.charged(1).iter().map(|(_, cost)| cost).sum();
        assert!(total <= capacity);
    }
}

/// Another run of a device that has spent all of a plan.
#[test]
fn an_exhausted_device_refuses_and_the_run_goes_on_without_it() {
    let mut setting = Setting::with(&["privacy.epsilon=8"], false);
    let parameters = vec![0.0; setting.facts()[1].parameters];
    for round in 1..=6 {
        setting.devices[1].train("before", round, &parameters, 1.0).unwrap();
    }
    let mut facts = setting.facts();
    assert_eq!(facts[1].left, 0.0);
    let refused = refusal(&mut setting, "after", 1, 1.0);
    assert!(matches!(refused, Refusal::MoreThanLeft { left: 0.0, .. }), "{refused}");
    // Told of it, a base station does not ask; told otherwise, it asks and gets no answer.
    for (told, missing) in [(0.0, vec![]), (6.0, vec![1])] {
        facts[1].left = told;
        let mut station = setting.open(&facts).unwrap();
        let step = setting.round(&mut station, &ALL);
        assert_eq!(step.missing, missing);
        assert_eq!(setting.charged(1).len(), 6);
        drop(station);
        std::fs::remove_dir_all(setting.path()).unwrap();
    }
}

#[test]
fn strange_rounds_parameters_and_questions_are_refused() {
    let mut setting = Setting::new(&["privacy.epsilon=8"]);
    for round in [0, 7, u32::MAX] {
        let refused = refusal(&mut setting, "run", round, 1.0);
        assert!(matches!(refused, Refusal::Round { rounds: 6, .. }), "{refused}");
    }
    let mut parameters = vec![0.0; setting.facts()[1].parameters];
    let device = &mut setting.devices[1];
    let error = device.train("run", 1, &parameters[1..], 1.0).unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Length { .. })), "{error}");
    for value in [f32::NAN, f32::INFINITY] {
        parameters[3] = value;
        let error = device.train("run", 1, &parameters, 1.0).unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::NotFinite { index: 3, .. })), "{error}");
    }
    parameters[3] = 0.0;
    let first = device.train("run", 2, &parameters, 1.0).unwrap();
    assert_eq!(device.train("run", 2, &parameters, 1.0).unwrap(), first);
    parameters[3] = 1.0;
    let error = device.train("run", 2, &parameters, 1.0).unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Answered { .. })), "{error}");
    let error = device.train("run", 1, &parameters, 1.0).unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Past { last: 2, .. })), "{error}");
    assert_eq!(setting.charged(1).len(), 1);
    // Another run is another matter, seeded or not: the same noise, charged once more.
    parameters[3] = 0.0;
    let other = setting.devices[1].train("other", 2, &parameters, 1.0).unwrap();
    assert_eq!(bits(other.gradient()), bits(first.gradient()));
    assert_eq!(setting.charged(1).len(), 2);
}

/// The answer was charged and lost before it was kept: the operating system's noise cannot be had
/// twice, so it costs twice.
#[test]
fn an_answer_that_was_never_kept_is_charged_again() {
    let mut setting = Setting::with(&["privacy.epsilon=8"], false);
    let parameters = vec![0.0; setting.facts()[1].parameters];
    let first = setting.devices[1].train("run", 1, &parameters, 1.0).unwrap();
    let mut answers = setting.ledger(1).into_os_string();
    answers.push("-answers");
    std::fs::remove_dir_all(answers).unwrap();
    let second = setting.devices[1].train("run", 1, &parameters, 1.0).unwrap();
    assert_ne!(bits(first.gradient()), bits(second.gradient()));
    assert_eq!(setting.charged(1).len(), 2);
}

/// The device of a number, with the same records and the same ledger.
fn numbered(number: u32, ledger: &Path) -> Result<Device, RemoteError> {
    let experiment = common::experiment(&ideal(&["privacy.epsilon=8", "learn.clip_norm=1"]));
    Device::of_updates(&experiment, number, 100, 2, false, ledger)
}

/// In another federation the same device has another number, and no other budget.
#[test]
fn a_ledger_has_one_budget_whatever_number_the_device_has() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.db");
    let mut device = numbered(0, &ledger).unwrap();
    let capacity = device.describe().unwrap().left;
    device.privatize("a", 1, &[0.1, 0.2], 0.6 * capacity).unwrap();
    for number in [3, 1] {
        let mut other = numbered(number, &ledger).unwrap();
        let facts = other.describe().unwrap();
        assert_eq!(facts.device, number);
        assert!((facts.left / capacity - 0.4).abs() < 1e-9, "{facts:?}");
        let refused = other.privatize("b", 1, &[0.1, 0.2], 0.6 * capacity).unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::MoreThanLeft { .. })), "{refused}");
    }
    numbered(7, &ledger).unwrap().privatize("c", 1, &[0.1, 0.2], 0.4 * capacity).unwrap();
    let mut device = numbered(0, &ledger).unwrap();
    let spent = device.spent().unwrap();
    assert!(spent.left < 1e-9 * capacity && spent.epsilon <= 8.0, "{spent:?}");
    assert_eq!(spent.releases, 2);
}

/// A ledger with what `ledger` has of device 0, as of these numbers.
fn renumbered(ledger: &Path, numbers: &[u32]) -> PathBuf {
    let (known, path) = (Ledger::open_read_only(ledger).unwrap(), ledger.with_extension("other"));
    let (declared, release) =
        (known.declarations().unwrap().remove(0), known.releases().unwrap().remove(0));
    let key = DataKey { data: declared.data, partition: declared.partition };
    let mut other = Ledger::open(&path).unwrap();
    for &number in numbers {
        let run = format!("run of {number}");
        other.begin_run(&run, &key, &[(number, declared.budget.clone())]).unwrap();
        let request = [Request { device: number, cost: release.granted }];
        let offers = other.offer(&run, 1, Repeat::ChargeAgain, 0.0, &request).unwrap();
        offers.record([(release.event.clone(), release.cost)]).unwrap();
    }
    path
}

/// Ledgers of versions that kept an account for each number.
#[test]
fn an_account_of_another_number_goes_on_and_several_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.db");
    let mut device = numbered(0, &ledger).unwrap();
    let capacity = device.describe().unwrap().left;
    device.privatize("a", 1, &[0.1, 0.2], 0.6 * capacity).unwrap();
    let one = renumbered(&ledger, &[3]);
    for number in [3, 0] {
        let mut other = numbered(number, &one).unwrap();
        assert!((other.describe().unwrap().left / capacity - 0.4).abs() < 1e-9);
        other.privatize("b", 1, &[0.1, 0.2], 0.6 * capacity).unwrap_err();
    }
    std::fs::remove_file(&one).unwrap();
    let several = renumbered(&ledger, &[0, 3]);
    let error = numbered(0, &several).err().unwrap().to_string();
    assert!(error.contains("accounts of devices [0, 3]"), "{error}");
    assert!(error.contains(&several.display().to_string()), "{error}");
}

#[test]
fn a_lost_ledger_is_not_made_anew_beside_the_answers() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger.db");
    let mut device = numbered(0, &ledger).unwrap();
    let capacity = device.describe().unwrap().left;
    device.privatize("a", 1, &[0.1, 0.2], capacity).unwrap();
    drop(device);
    let kept = std::fs::read(&ledger).unwrap();
    std::fs::remove_file(&ledger).unwrap();
    for empty in [false, true] {
        if empty {
            std::fs::write(&ledger, []).unwrap();
        }
        // Another number, too: the folder is the ledger's.
        for number in [0, 5] {
            let error = numbered(number, &ledger).err().unwrap().to_string();
            let answers = format!("{}-answers", ledger.display());
            let named = error.contains(&format!("{} is missing", ledger.display()));
            assert!(named && error.contains(&answers) && error.contains("backup"), "{error}");
        }
        assert_eq!(std::fs::metadata(&ledger).is_ok_and(|file| file.len() == 0), empty);
    }
    std::fs::write(&ledger, kept).unwrap();
    assert!(numbered(0, &ledger).unwrap().describe().unwrap().left < 1e-9 * capacity);
}
