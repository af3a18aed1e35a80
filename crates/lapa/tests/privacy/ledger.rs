//! Runs and their ledgers: what a run does when its ledger is elsewhere, older, or shared.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use lapa::config::Experiment;
use lapa::run::{Outcome, Run, RunError, RunEvent, RunFolder, Summary};
use lapa_privacy::ledger::Ledger;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::common::{data, experiment};

/// An experiment that records in `ledger`.
fn shared(ledger: &Path, changes: &[&str]) -> Experiment {
    let mut experiment = experiment(&[&["learn.sampling=fixed"], changes].concat());
    experiment.run.ledger = Some(ledger.into());
    experiment
}

fn finish(run: Run) -> Summary {
    match run.execute(&mut |_| ControlFlow::Continue(())).unwrap() {
        Outcome::Finished(summary) => *summary,
        Outcome::Stopped { round } => panic!("stopped after round {round}"),
    }
}

/// Runs until `round` rounds are done and does something then; goes on only if that says so.
fn after(run: Run, round: u32, act: &dyn Fn() -> ControlFlow<()>) -> Result<Outcome, RunError> {
    run.execute(&mut |event| match event {
        RunEvent::Round(record) if record.round == round => act(),
        _ => ControlFlow::Continue(()),
    })
}

fn stop_after(run: Run, round: u32) {
    let outcome = after(run, round, &|| ControlFlow::Break(())).unwrap();
    assert_eq!(outcome, Outcome::Stopped { round });
}

fn resume(path: &Path) -> Result<Run, RunError> {
    let folder = RunFolder::open(path)?;
    let experiment = folder.experiment()?;
    Run::resume(folder, experiment, data())
}

/// The lines of metrics.jsonl without times.
fn metrics(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    let without_time = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().shift_remove("seconds").unwrap();
        value
    };
    text.lines().map(without_time).collect()
}

/// Two runs must not spend a whole budget each because the first one's ledger was put aside.
#[cfg(unix)]
#[test]
fn a_run_stops_when_its_ledger_is_moved_away() {
    for own in [false, true] {
        let place = TempDir::new().unwrap();
        let out = place.path().join("run");
        let (ledger, begin) = match own {
            true => (out.join("ledger.db"), experiment(&["privacy.epsilon=8"])),
            false => {
                let ledger = place.path().join("shared.db");
                (ledger.clone(), shared(&ledger, &["privacy.epsilon=8"]))
            }
        };
        let run = Run::create(begin, data(), &out).unwrap();
        let name = |suffix: &str| format!("{}{suffix}", ledger.display());
        let error = after(run, 2, &|| {
            for suffix in ["", "-wal", "-shm"] {
                fs::rename(name(suffix), place.path().join(format!("away{suffix}"))).unwrap();
            }
            ControlFlow::Continue(())
        })
        .unwrap_err();
        let text = error.to_string();
        assert!(text.contains("was moved, removed, emptied or replaced"), "{text}");
        assert!(text.contains(ledger.to_str().unwrap()), "{text}");
        assert_eq!(metrics(&out).len(), 2);
        // Put back, it goes on.
        for suffix in ["", "-wal"] {
            fs::rename(place.path().join(format!("away{suffix}")), name(suffix)).unwrap();
        }
        assert!(finish(resume(&out).unwrap()).privacy.epsilon_spent <= 8.0);
    }
}

/// Earlier spending that no sum of a run's own leaves unrounded.
#[test]
fn a_resumed_run_counts_earlier_runs_to_the_bit() {
    let place = TempDir::new().unwrap();
    let first = place.path().join("first.db");
    let radio =
        ["transmit.uplink=analog", "transmit.access=orthogonal", "privacy.channel_trust=0.5"];
    for changes in [&["privacy.allocator=lapa"][..], &radio] {
        let _ = fs::remove_file(&first);
        let with = |ledger: &Path, epsilon: &str| shared(ledger, &[&[epsilon], changes].concat());
        let earlier = place.path().join("earlier");
        finish(Run::create(with(&first, "privacy.epsilon=3"), data(), &earlier).unwrap());
        fs::remove_dir_all(&earlier).unwrap();

        let runs = [0, 1, 2, 3, 5].map(|stop| {
            let out = place.path().join(format!("run-{stop}"));
            let ledger = place.path().join(format!("{stop}.db"));
            fs::copy(&first, &ledger).unwrap();
            let run = Run::create(with(&ledger, "privacy.epsilon=7"), data(), &out).unwrap();
            let summary = match stop {
                0 => finish(run),
                _ => {
                    stop_after(run, stop);
                    // Another run meanwhile is not of the time before this one began.
                    let other = place.path().join("other");
                    let mut later = with(&ledger, "privacy.epsilon=7");
                    later.run.rounds = 1;
                    let later = Run::create(later, data(), &other).unwrap();
                    if stop == 5 {
                        finish(later);
                    } else {
                        drop(later);
                    }
                    fs::remove_dir_all(&other).unwrap();
                    finish(resume(&out).unwrap())
                }
            };
            let found = (metrics(&out), summary.privacy.epsilon_without_channel.to_bits());
            fs::remove_dir_all(&out).unwrap();
            fs::remove_file(&ledger).unwrap();
            found
        });
        let spent = runs[0].0[0]["devices"][0]["spent_provable"].as_f64().unwrap();
        assert!(spent > 2.9, "{changes:?}: {spent}");
        for run in &runs[1..4] {
            assert_eq!(*run, runs[0], "{changes:?}");
        }
        // To the last one the other run left nothing for its last round.
        assert_eq!(runs[4].0[..5], runs[0].0[..5], "{changes:?}");
    }
}

/// An older copy of the ledger, put back after the last checkpoint: the metrics know better.
#[test]
fn a_ledger_that_has_forgotten_releases_is_refused() {
    let changes = ["run.entropy=os", "privacy.epsilon=8", "privacy.allocator=arb"];
    for summary in ["observe.devices=list", "observe.devices=summary"] {
        let place = TempDir::new().unwrap();
        let [out, ledger, old, newest] =
            ["run", "shared.db", "old.db", "newest.db"].map(|name| place.path().join(name));
        let begin = shared(&ledger, &[&changes[..], &[summary]].concat());
        let put = |from: &Path| {
            for suffix in ["-wal", "-shm"] {
                let _ = fs::remove_file(format!("{}{suffix}", ledger.display()));
            }
            fs::copy(from, &ledger).unwrap();
        };
        let checkpoint = out.join("checkpoint.safetensors");
        let saved = place.path().join("saved");
        // Stopped after round 2, and again after round 5, as if killed: no checkpoint since.
        stop_after(Run::create(begin, data(), &out).unwrap(), 2);
        fs::copy(&ledger, &old).unwrap();
        fs::copy(&checkpoint, &saved).unwrap();
        stop_after(resume(&out).unwrap(), 5);
        fs::copy(&ledger, &newest).unwrap();
        fs::copy(&saved, &checkpoint).unwrap();
        put(&old);
        let before = fs::read(out.join("metrics.jsonl")).unwrap();
        let refused = |told: &str| {
            let error = resume(&out).map(|_| ()).unwrap_err();
            assert!(matches!(error, RunError::Forgotten { .. }), "{error}");
            assert!(error.to_string().contains(told), "{error}");
        };
        refused("a release in round 5, and the ledger ends with round 2");
        assert_eq!(fs::read(out.join("metrics.jsonl")).unwrap(), before);

        // Rounds 3 and 4 once more, which are charged again; then the copy from before that.
        put(&newest);
        stop_after(resume(&out).unwrap(), 4);
        fs::copy(&ledger, &old).unwrap();
        fs::copy(&saved, &checkpoint).unwrap();
        put(&newest);
        refused("was spent, and the ledger knows of");
        put(&old);
        finish(resume(&out).unwrap());
    }
}

/// A hash of private files would let anyone who has the folder test a guess at them.
#[test]
fn real_releases_leave_no_plain_hash_of_the_data() {
    let place = TempDir::new().unwrap();
    let plain: Vec<String> = data().hashes.iter().map(|file| file.sha256.clone()).collect();
    let joined = Sha256::digest(plain.concat());
    let joined: String = joined.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut names = Vec::new();
    for (out, entropy) in
        [("seeded", "run.entropy=seed"), ("real", "run.entropy=os"), ("again", "run.entropy=os")]
    {
        let out = place.path().join(out);
        let real = entropy.ends_with("os");
        let run = Run::create(experiment(&["privacy.epsilon=8", entropy]), data(), &out).unwrap();
        stop_after(run, 2);
        let text = fs::read_to_string(out.join("manifest.json")).unwrap();
        assert_eq!(plain.iter().all(|hash| text.contains(hash)), !real, "{text}");
        assert_eq!(plain.iter().any(|hash| text.contains(hash)), !real, "{text}");
        let ledger = fs::read(out.join("ledger.db")).unwrap();
        for hash in plain.iter().chain([&joined]) {
            assert!(!ledger.windows(64).any(|part| part == hash.as_bytes()));
        }
        let manifest = RunFolder::open(&out).unwrap().manifest().unwrap();
        names.extend(manifest.data.keyed_files.into_iter().map(|file| file.hmac_sha256));

        // Other data are told apart all the same.
        let mut other = data();
        other.hashes[1].sha256.replace_range(..4, "0000");
        let folder = RunFolder::open(&out).unwrap();
        let begun = folder.experiment().unwrap();
        let refused = Run::resume(folder, begun, other).map(|_| ()).unwrap_err();
        assert!(matches!(refused, RunError::OtherData { .. }), "{refused}");
        finish(resume(&out).unwrap());
    }
    // One for each file, and another one on every ledger.
    assert_eq!(names.len(), 2 * plain.len());
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 2 * plain.len());
}

/// A simulation and a real run spend from one account.
#[test]
fn seeded_and_real_runs_share_an_account() {
    let place = TempDir::new().unwrap();
    let ledger = place.path().join("shared.db");
    for (out, entropy) in [("seeded", "run.entropy=seed"), ("real", "run.entropy=os")] {
        let experiment = shared(&ledger, &["privacy.allocator=arb", "privacy.epsilon=8", entropy]);
        let mut told = Vec::new();
        let run = Run::create(experiment, data(), &place.path().join(out)).unwrap();
        run.execute(&mut |event| {
            if let RunEvent::Warning(text) = event {
                told.push(text.to_string());
            }
            match event {
                RunEvent::Round(record) if record.round == 1 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        })
        .unwrap();
        // Said once: a mistyped name would otherwise pass for a whole budget.
        let new = format!("new ledger {}", ledger.display());
        assert_eq!(told.iter().any(|text| text.contains(&new)), out == "seeded", "{told:?}");
    }
    let declarations = Ledger::open_read_only(&ledger).unwrap().declarations().unwrap();
    assert_eq!(declarations.iter().flat_map(|declared| declared.devices.clone()).count(), 2 * 4);
    assert!(declarations.iter().all(|declared| declared.data == declarations[0].data));
}
