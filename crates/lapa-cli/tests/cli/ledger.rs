//! The ledger: shared by runs, never lost, never charged for less than was released.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::privacy::{metrics, number, private, releases, rows, run_private, write_private};
use super::*;

/// A place with private.toml, where runs share shared.db.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    write_private(place.path());
    place
}

/// Changes of a run on shared.db whose filter takes any budget.
const SHARED: [&str; 2] = ["privacy.ledger=shared.db", "privacy.sampling=fixed"];

fn shared<'a>(changes: &[&'a str]) -> Vec<&'a str> {
    [&SHARED, changes].concat()
}

/// The message that refuses a run, which must leave no folder and no record.
fn refusal(place: &Path, changes: &[&str]) -> String {
    let before = rows(place, "shared.db");
    let text = failure(&mut private(place, "refused", changes), 1);
    assert!(names(place).iter().all(|name| !name.contains("refused")), "{text}");
    assert_eq!(rows(place, "shared.db"), before, "{text}");
    text
}

#[test]
fn a_second_run_starts_from_what_is_left() {
    let place = place();
    let place = place.path();
    let first = run_private(place, "first", &shared(&["privacy.epsilon=4"]));
    assert!(!place.join("first/ledger.db").exists());
    let spent = number(&first["epsilon_spent"]);
    assert!((3.99..=4.0).contains(&spent), "{spent}");

    let second = run_private(place, "second", &shared(&["privacy.epsilon=8"]));
    assert!(number(&second["epsilon_spent"]) <= 8.0);
    for device in releases(&place.join("second")) {
        let provable = number(&device["spent_provable"]);
        assert!(spent < provable && provable <= 8.0, "{device}");
    }
    // The same six rounds on what is left have more noise than on a ledger of their own.
    run_private(place, "alone", &["privacy.sampling=fixed", "privacy.epsilon=8"]);
    let sigma = |out: &str| number(&releases(&place.join(out))[0]["sigma_artificial"]);
    assert!(sigma("second") > sigma("alone"));
    for row in rows(place, "shared.db") {
        assert_eq!((&row["runs"], &row["releases"]), (&2.into(), &12.into()));
        assert_eq!(row["declared"], 8.0);
        assert!((7.99..=8.0).contains(&number(&row["provable"])), "{row}");
    }

    for epsilon in ["privacy.epsilon=8", "privacy.epsilon=2"] {
        let text = refusal(place, &shared(&[epsilon]));
        assert!(text.contains("shared.db: nothing is left of any device's budget"), "{text}");
    }
}

/// Neither knows what the other spends; the ledger does.
#[test]
fn two_runs_at_once_stay_within_the_budget_together() {
    let place = place();
    let place = place.path();
    let changes = shared(&["run.rounds=100", "run.evaluate_every=100"]);
    std::thread::scope(|scope| {
        for out in ["one", "two"] {
            let mut run = private(place, out, &changes);
            scope.spawn(move || run.assert().success());
        }
    });
    let sent = ["one", "two"].map(|out| releases(&place.join(out)).len());
    let rows = rows(place, "shared.db");
    assert!(rows.iter().all(|row| (7.9..=8.0).contains(&number(&row["provable"]))), "{rows:?}");
    let recorded: u64 = rows.iter().map(|row| row["releases"].as_u64().unwrap()).sum();
    assert_eq!(recorded, sent.iter().sum::<usize>() as u64);
}

#[test]
fn a_plan_that_is_used_up_is_refused() {
    let place = place();
    let place = place.path();
    run_private(place, "first", &["privacy.ledger=shared.db"]);
    let text = refusal(place, &["privacy.ledger=shared.db"]);
    assert!(text.contains("shared.db: nothing is left of any device's budget"), "{text}");
}

#[test]
fn what_does_not_fit_the_ledger_is_refused() {
    let place = place();
    let place = place.path();
    run_private(place, "first", &shared(&["privacy.epsilon=4"]));
    for change in ["run.seed=4", "partition.iid_samples=[30, 50]"] {
        let text = refusal(place, &shared(&[change]));
        assert!(text.contains("is recorded with partition"), "{text}");
    }
    for (change, told) in [
        ("privacy.delta=1e-6", "delta 1e-6"),
        ("privacy.allocator=none", "kind unlimited"),
        ("profile=paper", "kind unlimited"),
        ("privacy.sampling=poisson", "renyi"),
        ("privacy.adjacency=add-remove", "add-remove"),
    ] {
        let text = refusal(place, &shared(&[change]));
        assert!(text.contains(told), "{change}: {text}");
        assert!(text.contains("counted and delta must stay the same"), "{change}: {text}");
        assert!(text.contains("shared.db"), "{change}: {text}");
    }
}

#[test]
fn other_files_are_not_taken_for_ledgers() {
    let place = place();
    let place = place.path();
    let before = fs::read(place.join("private.toml")).unwrap();
    let mut command = private(place, "run", &["privacy.ledger=private.toml"]);
    let text = failure(&mut command, 1);
    assert!(text.contains("private.toml: this file is not a ledger"), "{text}");
    assert_eq!(fs::read(place.join("private.toml")).unwrap(), before);
    let text = failure(&mut private(place, "run", &["privacy.ledger=no/such/ledger.db"]), 1);
    assert!(text.contains("ledger.db"), "{text}");
    assert_eq!(names(place), ["digits", "private.toml"]);
}

#[test]
fn a_run_does_not_go_on_without_its_ledger() {
    let place = place();
    let place = place.path();
    run_private(place, "run", &[]);
    fs::rename(place.join("run/ledger.db"), place.join("away.db")).unwrap();
    let resume = || failure(lapa(place).args(["run", "--resume", "run"]), 1);
    let text = resume();
    assert!(text.contains("its ledger run/ledger.db is missing"), "{text}");
    assert!(!place.join("run/ledger.db").exists());
    // Nor with the ledger of another run.
    run_private(place, "other", &["run.participation=0.2"]);
    fs::copy(place.join("other/ledger.db"), place.join("run/ledger.db")).unwrap();
    let text = resume();
    assert!(text.contains("up to round 0, but its checkpoint, after round 6"), "{text}");
    fs::rename(place.join("away.db"), place.join("run/ledger.db")).unwrap();
    lapa(place).args(["run", "--resume", "run", "--quiet"]).assert().success();
}

/// Kills a run with the operating system's entropy a few rounds after a checkpoint: repeated
/// rounds are new releases.
#[cfg(unix)]
#[test]
fn killed_and_resumed_real_releases_are_charged_again() {
    use std::process::Stdio;
    let place = place();
    let place = place.path();
    let binary = assert_cmd::cargo::cargo_bin("lapa");
    let mut run = std::process::Command::new(binary);
    run.current_dir(place).args(["run", "private.toml", "--out", "run"]);
    // A schedule by what is left, so that every round still has its share after the repeats.
    for change in shared(&[
        "privacy.entropy=os",
        "privacy.allocator=arb",
        "run.rounds=400",
        "run.evaluate_every=400",
        "run.checkpoint_every=50",
    ]) {
        run.args(["-c", change]);
    }
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lines = || {
        let text = fs::read(place.join("run/metrics.jsonl")).unwrap_or_default();
        text.iter().filter(|&&byte| byte == b'\n').count()
    };
    while lines() < 60 {
        assert!(run.try_wait().unwrap().is_none(), "the run ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    let sent = lines();
    let killed = rows(place, "shared.db");
    assert_eq!(killed.len(), 5);
    for row in &killed {
        assert!(row["releases"].as_u64().unwrap() as usize >= sent, "{row}");
    }
    let mut resume = lapa(place);
    resume.args(["run", "--resume", "run", "--quiet", "--format", "json"]);
    let summary = stdout_json(&mut resume);
    assert!(number(&summary["epsilon_spent"]) <= 8.0);
    assert_eq!(metrics(&place.join("run")).len(), 400);
    let repeated = sent % 50 > 0;
    for (row, killed) in rows(place, "shared.db").iter().zip(&killed) {
        assert!(number(&row["provable"]) >= number(&killed["provable"]), "{row}");
        assert!(number(&row["provable"]) <= 8.0, "{row}");
        assert!(row["releases"].as_u64().unwrap() > 400 || !repeated, "{row}");
    }
    // What was charged before the kill is not forgotten by the odometer.
    let first = &metrics(&place.join("run"))[sent / 50 * 50]["devices"][0];
    assert!(number(&first["spent_provable"]) > number(&killed[0]["provable"]), "{first}");
}

/// A replay is free because it makes the same releases; another configuration makes others.
#[test]
fn a_changed_run_cannot_replay_its_releases() {
    let place = place();
    let place = place.path();
    run_private(place, "run", &[]);
    let config = place.join("run/config.resolved.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("momentum = 0.9", "momentum = 0.5")).unwrap();
    let text = failure(lapa(place).args(["run", "--resume", "run"]), 1);
    assert!(text.contains("config.resolved.toml was changed since"), "{text}");
}
