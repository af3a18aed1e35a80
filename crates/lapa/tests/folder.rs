//! Run folders that others have filled, damaged or copied.
#![cfg(unix)]

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, digits};
use lapa::run::{CheckedRun, Outcome, Run, RunError, RunEvent, RunFolder};
use tempfile::TempDir;

fn data() -> Dataset {
    digits(600, 60)
}

fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data.name = 'synthetic'
        model.name = 'logistic'
        run = { rounds = 4, seed = 5, threads = 1, evaluate_every = 2, checkpoint_every = 1 }
        partition.mix = { iid = 2, non_iid = 1, iid_samples = 60, non_iid_samples = 30 }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

fn begin(path: &Path) -> Run {
    Run::create(experiment(&[]), data(), path).unwrap()
}

/// A run that was broken off after two rounds.
fn stopped(path: &Path) {
    let outcome = begin(path).execute(&mut |event| match event {
        RunEvent::Round(record) if record.round == 2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped { round: 2 });
}

fn finished(path: &Path) {
    begin(path).execute(&mut |_| ControlFlow::Continue(())).unwrap();
}

fn resume(path: &Path) -> Result<(), RunError> {
    let folder = RunFolder::open(path)?;
    let experiment = folder.experiment()?;
    let run = Run::resume(folder, experiment, data())?;
    run.execute(&mut |_| ControlFlow::Continue(())).map(|_| ())
}

/// Puts `put` in the place of `name`, and what was there back afterwards.
fn in_place_of(folder: &Path, name: &str, put: impl Fn(&Path), then: impl Fn()) {
    let (path, aside) = (folder.join(name), folder.join("aside"));
    let there = fs::rename(&path, &aside).is_ok();
    put(&path);
    then();
    fs::remove_file(&path).unwrap();
    if there {
        fs::rename(&aside, &path).unwrap();
    }
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const FILES: [&str; 17] = [
    ".lock",
    "config.resolved.toml",
    "manifest.json",
    "metrics.jsonl",
    "metrics.parquet",
    "checkpoint.safetensors",
    "model.safetensors",
    "summary.json",
    "ledger.db",
    "ledger.db-wal",
    "ledger.db-shm",
    "ledger.db-journal",
    "report.html",
    "asked.json",
    "devices.json",
    "staged.toml",
    "power.json",
];

#[test]
fn no_link_in_a_run_folder_is_followed() {
    let place = TempDir::new().unwrap();
    let (path, done) = (place.path().join("run"), place.path().join("done"));
    stopped(&path);
    finished(&done);
    let (victim, elsewhere) = (place.path().join("victim"), place.path().join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    let precious = "a line of somebody's own\n".repeat(20_000);
    fs::write(&victim, &precious).unwrap();
    let refuse = |name: &str, target: &Path| {
        for (folder, resumes) in [(&path, true), (&done, false)] {
            let link = |at: &Path| symlink(target, at).unwrap();
            in_place_of(folder, name, link, || {
                let error = match resumes {
                    true => resume(folder).unwrap_err(),
                    false => CheckedRun::read(folder).map(|_| ()).unwrap_err(),
                };
                let error = error.to_string();
                let named = folder.join(name).display().to_string();
                assert!(error.contains(&format!("{named} is a symbolic link")), "{error}");
            });
        }
    };
    for name in FILES {
        refuse(name, &victim);
        // A link to nothing would make a new file.
        refuse(name, &place.path().join("new"));
    }
    for name in ["plots", "tensorboard", "audit"] {
        let aside = place.path().join("aside");
        let there = fs::rename(done.join(name), &aside).is_ok();
        refuse(name, &elsewhere);
        if there {
            fs::rename(aside, done.join(name)).unwrap();
        }
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), precious);
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert!(!place.path().join("new").exists());
    resume(&path).unwrap();
    CheckedRun::read(&done).unwrap().unwrap();
}

#[test]
fn temporary_names_of_before_are_nothing_special() {
    let place = TempDir::new().unwrap();
    let (path, victim) = (place.path().join("run"), place.path().join("victim"));
    stopped(&path);
    fs::write(&victim, "precious").unwrap();
    for name in ["checkpoint.safetensors", "summary.json", "metrics.parquet", "model.safetensors"] {
        symlink(&victim, path.join(format!("{name}.tmp"))).unwrap();
    }
    fs::write(path.join(".lapa-1-1.tmp"), "of a killed process").unwrap();
    resume(&path).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!path.join(".lapa-1-1.tmp").exists());
}

#[test]
fn pipes_do_not_hang_a_run() {
    let place = TempDir::new().unwrap();
    let (path, done) = (place.path().join("run"), place.path().join("done"));
    stopped(&path);
    finished(&done);
    let all = [
        ".lock",
        "config.resolved.toml",
        "manifest.json",
        "metrics.jsonl",
        "checkpoint.safetensors",
        "summary.json",
    ];
    for name in all {
        let expect = |error: RunError| {
            let mut text = error.to_string();
            let mut cause: &dyn std::error::Error = &error;
            while let Some(source) = cause.source() {
                (text, cause) = (format!("{text}: {source}"), source);
            }
            assert!(text.contains(name) && text.contains("not a regular file"), "{text}");
        };
        if name != "summary.json" {
            in_place_of(&path, name, mkfifo, || expect(resume(&path).unwrap_err()));
        }
        in_place_of(&done, name, mkfifo, || {
            expect(CheckedRun::read(&done).map(|_| ()).unwrap_err());
        });
    }
}

#[test]
fn flipped_bits_in_a_checkpoint_are_found() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    stopped(&path);
    let file = path.join("checkpoint.safetensors");
    let whole = fs::read(&file).unwrap();
    // In the state, in the middle of the weights, and in the last number.
    let text = String::from_utf8_lossy(&whole);
    let digit = text.find("metrics_bytes").unwrap() + "metrics_bytes\\\":".len();
    for at in [digit, whole.len() / 2, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&file, damaged).unwrap();
        let error = resume(&path).unwrap_err().to_string();
        assert!(error.contains("checkpoint.safetensors: damaged checkpoint"), "{error}");
        assert!(error.contains("checksum"), "{error}");
    }
    fs::write(&file, whole).unwrap();
    resume(&path).unwrap();
}

#[test]
fn a_run_s_folder_is_its_owner_s_alone() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    finished(&path);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for entry in fs::read_dir(&path).unwrap() {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path())).unwrap();
        if path.is_file() && !name.to_string_lossy().starts_with("ledger.db") {
            assert_eq!(mode(&path), 0o600, "{name:?}");
        }
    }
}

#[test]
fn without_its_lock_file_a_folder_is_still_locked() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let run = begin(&path);
    fs::remove_file(path.join(".lock")).unwrap();
    assert!(matches!(RunFolder::open(&path), Err(RunError::Busy(_))));
    assert!(matches!(CheckedRun::read(&path), Err(RunError::Busy(_))));
    drop(run);
    resume(&path).unwrap();
}

fn hidden(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with('.'));
    names.sort();
    names
}

#[test]
fn leftovers_of_killed_processes_go_and_nothing_else() {
    let place = TempDir::new().unwrap();
    let source = place.path().join("source");
    drop(begin(&source));
    let leave = |name: &str| -> PathBuf {
        let path = place.path().join(name);
        fs::create_dir(&path).unwrap();
        for entry in fs::read_dir(&source).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), path.join(entry.file_name())).unwrap();
        }
        path
    };
    leave(".run.abc123.partial");
    leave(".other.abc124.partial");
    for name in [".ledger.abc129.partial", ".ledger.abc129.partial-journal"] {
        fs::write(place.path().join(".other.abc124.partial").join(name), "").unwrap();
    }
    let held = leave(".held.abc125.partial");
    let held = lapa::files::Folder::open(&held).unwrap();
    let lock = held.lock().unwrap();
    fs::write(leave(".mine.abc126.partial").join("notes.txt"), "mine").unwrap();
    fs::write(leave(".rounds.abc127.partial").join("metrics.jsonl"), "{}\n").unwrap();
    fs::create_dir(place.path().join(".empty.abc128.partial")).unwrap();
    fs::write(place.path().join(".file.partial"), "").unwrap();
    drop(begin(&place.path().join("run")));
    let left =
        [".file.partial", ".held.abc125.partial", ".mine.abc126.partial", ".rounds.abc127.partial"];
    assert_eq!(hidden(place.path()), left);
    drop(lock);
    drop(begin(&place.path().join("run-2")));
    assert_eq!(hidden(place.path()), [left[0], left[2], left[3]]);
}

#[test]
fn a_link_to_an_empty_folder_stands_for_it() {
    let place = TempDir::new().unwrap();
    let (real, link) = (place.path().join("real"), place.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let run = begin(&link);
    assert_eq!(run.folder(), real.canonicalize().unwrap());
    drop(run);
    assert!(link.is_symlink());
    resume(&link).unwrap();
    // A link to nothing is in the way.
    let dangling = place.path().join("dangling");
    symlink(place.path().join("nothing"), &dangling).unwrap();
    let error = Run::create(experiment(&[]), data(), &dangling).map(|_| ()).unwrap_err();
    assert!(matches!(error, RunError::Exists(_)), "{error}");
}

/// Every kind of run, so that no honest one is refused.
#[test]
fn a_finished_run_agrees_with_itself() {
    let kinds: [&[&str]; 9] = [
        &["profile=paper"],
        &["profile=paper", "privacy.epsilon=8", "privacy.lapa.window=2"],
        &["profile=certified"],
        &["privacy.epsilon=4", "run.participation=0.6", "observe.devices=summary"],
        &["privacy.allocator=lapa", "privacy.lapa.window=2"],
        &["privacy.allocator=arb", "learn.sampling=full", "learn.batch_fraction=1"],
        &["privacy.epsilon=1", "privacy.noise=discrete-gaussian"],
        &["privacy=none"],
        &["privacy.epsilon=4", "aggregate.rule=wasserstein", "run.entropy=os"],
    ];
    for kind in kinds {
        let place = TempDir::new().unwrap();
        let path = place.path().join("run");
        let run = Run::create(experiment(kind), data(), &path).unwrap();
        let outcome = run.execute(&mut |_| ControlFlow::Continue(())).unwrap();
        let checked = CheckedRun::read(&path).unwrap_or_else(|e| panic!("{kind:?}: {e}")).unwrap();
        assert_eq!(outcome, Outcome::Finished(checked.summary.into()));
    }
}

#[test]
fn a_finished_run_that_was_changed_is_refused_with_the_value() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let run = Run::create(experiment(&["privacy.epsilon=8"]), data(), &path).unwrap();
    run.execute(&mut |_| ControlFlow::Continue(())).unwrap();
    let refuse = |name: &str, change: &dyn Fn(&str) -> String, words: &str| {
        let file = path.join(name);
        let whole = fs::read_to_string(&file).unwrap();
        let changed = change(&whole);
        assert_ne!(changed, whole, "{name}: {words}");
        fs::write(&file, changed).unwrap();
        let error = CheckedRun::read(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(words), "{words} in {error}");
        fs::write(&file, whole).unwrap();
    };
    let key = |name: &'static str, value: &'static str| {
        move |text: &str| {
            let line = text.lines().find(|line| line.contains(&format!("\"{name}\":"))).unwrap();
            let comma = if line.ends_with(',') { "," } else { "" };
            text.replacen(line, &format!("  \"{name}\": {value}{comma}"), 1)
        }
    };
    let config = "config.resolved.toml";
    refuse(config, &|text| text.replace("epsilon = 8", "epsilon = 800"), "was changed since");
    refuse(config, &|text| text[..100].into(), "was changed since");
    refuse("manifest.json", &key("seed", "6"), "seed 6, but config.resolved.toml says 5");
    let summary = "summary.json";
    refuse(summary, &key("accuracy", "7.5"), "accuracy 7.5, but metrics.jsonl says 0.");
    refuse(summary, &key("loss", "0.125"), "loss 0.125, but metrics.jsonl says");
    refuse(summary, &key("uplink_bytes", "1"), "uplink_bytes 1, but metrics.jsonl says");
    refuse(summary, &key("delta", "0.5"), "delta 0.5, but config.resolved.toml says");
    refuse(summary, &key("epsilon_spent", "0.25"), "epsilon_spent 0.25, but metrics.jsonl says");
    refuse(summary, &key("epsilon_provable", "800.0"), "but privacy.epsilon is 8");
    refuse(summary, &key("epsilon_provable", "1.0"), "epsilon_provable 1, but");
    refuse(summary, &|text| text.replace("(8, 1e-5)", "(0.1, 1e-9)"), "without the words");
    let metrics = "metrics.jsonl";
    refuse(metrics, &|text| text.lines().next().unwrap().to_owned() + "\n", "1 rounds, but");
    refuse(metrics, &|text| text.replacen("\"device\":2", "\"device\":7", 1), "line 1: device 7");
    CheckedRun::read(&path).unwrap().unwrap();
}

#[test]
fn reading_writes_nothing() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    finished(&path);
    fs::remove_file(path.join(".lock")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o500)).unwrap();
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let (one, two) = (CheckedRun::read(&path).unwrap(), CheckedRun::read(&path).unwrap());
    assert!(one.is_some() && two.is_some());
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
    assert!(matches!(RunFolder::open(&path), Err(RunError::Busy(_))));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
}
