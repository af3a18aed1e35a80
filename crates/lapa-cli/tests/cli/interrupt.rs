//! Runs that are stopped, killed and resumed end as if nothing had happened.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::privacy::{number, rows, write_private};
use super::{failure, lapa, names, one_line, results, stdout_json, write_small};

const ROUNDS: usize = 60;

/// Starts a run of 60 quick rounds in `out`, or resumes it if it is there.
fn start(place: &Path, out: &str) -> Child {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("lapa"));
    command.current_dir(place).arg("run");
    if place.join(out).exists() {
        command.args(["--resume", out])
    } else {
        command.args(["small.toml", "--out", out, "-c", "run.rounds=60"]).args([
            "-c",
            "run.checkpoint_every=2",
            "-c",
            "run.evaluate_every=30",
        ])
    };
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A folder with small.toml and a run `whole` that nothing disturbed; and the time its rounds took,
/// plots not included.
fn undisturbed(write: fn(&Path)) -> (TempDir, Duration) {
    let place = TempDir::new().unwrap();
    write(place.path());
    let begun = lapa::clock::now();
    let mut run = start(place.path(), "whole");
    let metrics = place.path().join("whole/metrics.jsonl");
    while lines(&metrics) < ROUNDS && run.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(1));
    }
    let rounds = begun.elapsed();
    assert!(run.wait_with_output().unwrap().status.success());
    (place, rounds)
}

fn assert_whole(place: &Path, out: &str) {
    let (run, whole) = (place.join(out), place.join("whole"));
    assert_eq!(names(&run), names(&whole));
    let (run, whole) = (results(&run), results(&whole));
    assert_eq!(run.1.len(), ROUNDS);
    assert!(run == whole, "{out} differs from the undisturbed run");
}

fn lines(file: &Path) -> usize {
    fs::read(file).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count())
}

#[test]
fn an_interrupt_stops_after_the_round() {
    let (place, _) = undisturbed(write_small);
    let place = place.path();
    let run = start(place, "stopped");
    let metrics = place.join("stopped/metrics.jsonl");
    while lines(&metrics) < 5 {
        sleep(Duration::from_millis(1));
    }
    // While it runs, no one else may have its folder.
    let busy = lapa(place).args(["run", "--resume", "stopped"]).output().unwrap();
    let interrupt = format!("kill -INT {}", run.id());
    assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    if output.status.success() {
        eprintln!("skipped: the run was over before the interrupt arrived");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{}", one_line(&output.stderr));
    let told = one_line(&output.stdout);
    assert!(told.contains("stopped after round"), "{told}");
    assert!(told.contains("lapa run --resume stopped"), "{told}");
    assert!(!place.join("stopped/summary.json").exists());
    let text = one_line(&busy.stderr);
    assert!(text.contains("stopped is in use by another process"), "{text}");
    assert_eq!(busy.status.code(), Some(1));

    let resume = ["run", "--resume", "stopped", "--quiet", "--format", "json"];
    assert_eq!(stdout_json(lapa(place).args(resume))["rounds"], 60);
    assert_whole(place, "stopped");
    // Once more: finished stays finished.
    assert_eq!(stdout_json(lapa(place).args(resume))["rounds"], 60);
    assert_whole(place, "stopped");

    fs::write(place.join("stopped/checkpoint.safetensors"), "short").unwrap();
    let text = failure(lapa(place).args(["run", "--resume", "stopped"]), 1);
    assert!(text.contains("checkpoint.safetensors"), "{text}");
}

/// Kills and resumes runs at moments spread over the time they take, and compares them with the
/// run that nothing disturbed. Gives the folder and the names of the runs.
fn kill_and_resume(write: fn(&Path), runs: usize) -> (TempDir, Vec<String>) {
    let (folder, rounds) = undisturbed(write);
    let place = folder.path();
    let runs = if std::env::var_os("LAPA_TEST_LONG").is_some() { 5 * runs } else { runs };
    // Multiples of the golden ratio spread the moments evenly over the run, in no order.
    let mut moments = (1..).map(|k| (f64::from(k) * 0.618_034).fract());
    let runs: Vec<String> = (0..runs).map(|run| format!("killed-{run}")).collect();
    for out in &runs {
        for _ in 0..3 {
            let mut child = start(place, out);
            sleep(rounds.mul_f64(moments.next().unwrap()));
            // It may have finished by itself.
            let _ = child.kill();
            child.wait().unwrap();
            if !place.join(out).exists() {
                let begun = format!(".{out}.");
                let left = names(place).into_iter().filter(|name| name.contains(out));
                for name in left {
                    assert!(name.starts_with(&begun) && name.ends_with(".partial"), "{name}");
                }
            }
        }
        let output = start(place, out).wait_with_output().unwrap();
        assert!(output.status.success(), "{}", one_line(&output.stderr));
        assert_whole(place, out);
    }
    (folder, runs)
}

#[test]
fn killed_runs_resume_to_the_same_bits() {
    kill_and_resume(write_small, 8);
}

/// LAPA remembers received gradients, and a round that is repeated is not charged again.
#[test]
fn killed_private_runs_resume_to_the_same_bits_and_charges() {
    let write: fn(&Path) = |place| {
        write_private(place);
        let text = fs::read_to_string(place.join("private.toml")).unwrap();
        fs::write(place.join("small.toml"), text + "allocator = 'lapa'\n").unwrap();
    };
    let (place, runs) = kill_and_resume(write, 4);
    // Each ledger has names of its own for the data.
    let nameless = |mut row: Value| {
        row.as_object_mut().unwrap().remove("data").unwrap();
        row
    };
    let ledger = |out: &str| -> Vec<Value> {
        rows(place.path(), &format!("{out}/ledger.db")).into_iter().map(nameless).collect()
    };
    let whole = ledger("whole");
    assert!(whole.iter().all(|row| number(&row["provable"]) <= 8.0));
    for out in &runs {
        assert_eq!(ledger(out), whole, "{out}");
    }
}
