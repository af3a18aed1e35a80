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
const SHARED: [&str; 2] = ["run.ledger=shared.db", "learn.sampling=fixed"];

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
    run_private(place, "alone", &["learn.sampling=fixed", "privacy.epsilon=8"]);
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

/// A mistyped name would otherwise pass for a whole budget.
#[test]
fn a_new_shared_ledger_is_announced_once() {
    let place = place();
    let place = place.path();
    for (out, new) in [("first", true), ("second", false)] {
        let output = private(place, out, &shared(&["privacy.epsilon=4"])).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let said = text.contains("warning: new ledger ") && text.contains("shared.db: nothing");
        assert_eq!(said, new, "{text}");
    }
    // Emptied, it is not a new one.
    fs::write(place.join("shared.db"), "").unwrap();
    let text = failure(&mut private(place, "third", &shared(&[])), 1);
    assert!(text.contains("shared.db: the file is empty"), "{text}");
    assert!(!place.join("third").exists());
}

/// Another user's ledger, in a folder that only its owner may write to; also with the log of a run
/// that was killed.
#[cfg(unix)]
#[test]
fn a_ledger_that_cannot_be_written_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    let place = place();
    let place = place.path();
    run_private(place, "first", &shared(&["privacy.epsilon=4"]));
    let closed = place.join("closed");
    fs::create_dir(&closed).unwrap();
    let mut ledger = lapa_privacy::ledger::Ledger::open(&place.join("shared.db")).unwrap();
    let read = |folder: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("lapa"));
        command.current_dir(place).args(["account", "--format", "json", "--ledger"]);
        command.arg(format!("{folder}/shared.db"));
        // Nothing is forbidden to root.
        if fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0)
        {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    };
    for with_log in [false, true] {
        if with_log {
            // On the log only, since the ledger is open.
            let terms = ledger.declarations().unwrap();
            let data = lapa_privacy::ledger::DataKey {
                data: terms[0].data.clone(),
                partition: terms[0].partition.clone(),
            };
            let more = terms.iter().flat_map(|declared| {
                let mut terms = declared.budget.clone();
                terms.epsilon += 1.0;
                declared.devices.clone().map(move |device| (device, terms.clone()))
            });
            ledger.begin_run("more", &data, &more.collect::<Vec<_>>()).unwrap();
            fs::copy(place.join("shared.db-wal"), closed.join("shared.db-wal")).unwrap();
        }
        fs::copy(place.join("shared.db"), closed.join("shared.db")).unwrap();
        for name in names(&closed) {
            fs::set_permissions(closed.join(name), fs::Permissions::from_mode(0o444)).unwrap();
        }
        for folder in [place, &closed] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
        }
        let before = names(&closed);
        let output = read("closed");
        for folder in [place, &closed] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() && text.is_empty() {
            eprintln!("skipped: this program cannot be run by another user");
            return;
        }
        assert!(output.status.success(), "{text}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        let devices = value["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 5);
        for device in devices {
            assert_eq!(device["declared"], if with_log { 5.0 } else { 4.0 }, "{device}");
        }
        assert_eq!(names(&closed), before);
    }
}

#[test]
fn a_plan_that_is_used_up_is_refused() {
    let place = place();
    let place = place.path();
    run_private(place, "first", &["run.ledger=shared.db"]);
    let text = refusal(place, &["run.ledger=shared.db"]);
    assert!(text.contains("shared.db: nothing is left of any device's budget"), "{text}");
}

#[test]
fn what_does_not_fit_the_ledger_is_refused() {
    let place = place();
    let place = place.path();
    run_private(place, "first", &shared(&["privacy.epsilon=4"]));
    for change in ["run.seed=4", "partition.mix.iid_samples=[30, 50]"] {
        let text = refusal(place, &shared(&[change]));
        assert!(text.contains("is recorded with partition"), "{text}");
    }
    for (change, told) in [
        ("privacy.delta=1e-6", "delta 1e-6"),
        ("privacy=none", "kind unlimited"),
        ("profile=paper", "kind unlimited"),
        ("learn.sampling=poisson", "renyi"),
        ("privacy.adjacency=add-remove", "add-remove"),
    ] {
        let text = refusal(place, &shared(&[change]));
        assert!(text.contains(told), "{change}: {text}");
        assert!(
            text.contains("the kind of filter and delta must stay the same"),
            "{change}: {text}"
        );
        assert!(text.contains("shared.db"), "{change}: {text}");
    }
}

#[test]
fn other_files_are_not_taken_for_ledgers() {
    let place = place();
    let place = place.path();
    let before = fs::read(place.join("private.toml")).unwrap();
    let mut command = private(place, "run", &["run.ledger=private.toml"]);
    let text = failure(&mut command, 1);
    assert!(text.contains("private.toml: not a ledger"), "{text}");
    assert_eq!(fs::read(place.join("private.toml")).unwrap(), before);
    let text = failure(&mut private(place, "run", &["run.ledger=no/such/ledger.db"]), 1);
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
        "run.entropy=os",
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
    // The odometer does not forget the charges before the kill.
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

/// A ledger of devices that release label counts in two rounds, with one of forty noises each, and three
/// more that only declare a budget. Runs of neighbors have budgets of their own.
fn of_forty_noises(path: &Path, devices: u32) {
    use lapa_privacy::ledger::{DataKey, DeclaredBudget, Ledger, Repeat, Request};
    use lapa_privacy::{Adjacency, Event, Histogram, NoiseKind};
    let mut ledger = Ledger::open(path).unwrap();
    let data = DataKey { data: "data".into(), partition: "partition".into() };
    let (kind, capacity) = (String::from("\"none\""), f64::INFINITY);
    let budget = |device: u32| {
        let epsilon = f64::from(1 + device / 500);
        (device, DeclaredBudget { kind: kind.clone(), epsilon, delta: 1e-5, capacity })
    };
    ledger.begin_run("run", &data, &(0..devices + 3).map(budget).collect::<Vec<_>>()).unwrap();
    for round in [1, 2] {
        let request = |device| Request { device, cost: 1.0 };
        let requests: Vec<_> = (0..devices).map(request).collect();
        let offers = ledger.offer("run", round, Repeat::Replay, 0.0, &requests).unwrap();
        let release = |device: u32| {
            let sigma = f64::from(2 + device % 40);
            let (adjacency, noise) = (Adjacency::ZeroOut, NoiseKind::Gaussian);
            (Event::Histogram(Histogram { adjacency, noise, sigma }), 1.0)
        };
        offers.record((0..devices).map(release)).unwrap();
    }
}

/// Each device of a large ledger has the figures that a small ledger, shown in full, has for its noise.
#[test]
fn a_ledger_of_many_devices_is_told_in_few_words_that_are_those_of_a_small_one() {
    let place = TempDir::new().unwrap();
    let place = place.path();
    of_forty_noises(&place.join("small.db"), 40);
    of_forty_noises(&place.join("large.db"), 3000);
    let told = |arguments: &[&str]| {
        let output = lapa(place).args(["account", "--ledger"]).args(arguments).assert();
        stdout(output.success())
    };
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&told(&[arguments, &["--format", "json"]].concat())).unwrap()
    };
    let small = json(&["small.db"]);
    let [small_rows, few, all] = [&small, &json(&["large.db"]), &json(&["large.db", "--all"])]
        .map(|value| value["devices"].as_array().unwrap().clone());
    assert_eq!((small_rows.len(), few.len(), all.len()), (43, 20, 3003));
    for (row, device) in all.iter().zip(0u32..) {
        assert_eq!(row["device"], device);
        let twin = if device < 3000 { device % 40 } else { 40 };
        let twin = &small_rows[twin as usize];
        for key in ["runs", "releases", "claimed", "provable", "without_channel", "rdp", "pld"] {
            assert_eq!(row[key], twin[key], "{device}: {key}");
        }
        assert_eq!(row["declared"], f64::from(1 + device / 500));
    }
    // 75 devices have each noise; those without releases are counted.
    let large = json(&["large.db"]);
    assert_eq!((&large["count"], &large["unlisted"]), (&3000.into(), &3.into()));
    let provable: Vec<f64> = small_rows[..40].iter().map(|row| number(&row["provable"])).collect();
    assert!(provable.is_sorted_by(|a, b| a > b));
    assert_eq!(number(&large["provable"]["max"]), provable[0]);
    assert_eq!(number(&large["provable"]["min"]), provable[39]);
    let median = number(&large["provable"]["median"]);
    assert!(provable[20] <= median && median <= provable[19], "{median}");
    let devices = |rows: &[Value]| -> Vec<u64> {
        rows.iter().map(|row| row["device"].as_u64().unwrap()).collect()
    };
    assert_eq!(devices(&few[..10]), (0..10).map(|i| 40 * i).collect::<Vec<_>>());
    assert_eq!(devices(&few[10..]), (65..75).map(|i| 40 * i + 39).collect::<Vec<_>>());

    let text = told(&["large.db"]);
    assert!(text.lines().count() < 50 && text.contains("the 10 of 3000 devices"), "{text}");
    assert!(text.contains("3 more devices declared a budget and released nothing"), "{text}");
    let text = told(&["large.db", "--all"]);
    let rows = text.lines().filter(|line| line.trim_start().starts_with("data "));
    assert_eq!(rows.count(), 1 + 3003, "a heading and the devices");
    let calculated = ["account", "--sigma", "1", "--rounds", "1", "--delta", "1e-5", "--all"];
    let refused = failure(lapa(place).args(calculated), 2);
    assert!(refused.contains("--all"), "{refused}");
}

/// Of many devices, those that released nothing are counted, and of the others the ends are shown.
#[test]
fn idle_devices_do_not_hide_the_worst() {
    let place = place();
    let place = place.path();
    let many = [
        "partition.scheme=virtual",
        "partition.virtual.devices=900",
        "partition.virtual.samples=20",
        "run.participation=0.1",
        "run.rounds=1",
        "transmit.uplink=ideal",
    ];
    run_private(place, "many", &many);
    let text = stdout(lapa(place).args(["account", "--ledger", "many"]).assert());
    assert!(text.contains("the 10 of 90 devices with the largest"), "{text}");
    assert!(text.contains("810 more devices declared a budget and released nothing"), "{text}");
    assert!(text.contains("provable ε: "), "{text}");
    let listed = rows(place, "many");
    assert_eq!(listed.len(), 90);
    assert!(listed.iter().all(|row| row["releases"] == 1));
}
