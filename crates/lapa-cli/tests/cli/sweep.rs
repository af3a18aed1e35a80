//! `lapa sweep`: the folder it leaves, what it prints, how it goes on, its refusals.

use std::fs;

use tempfile::TempDir;

use super::*;

const GRID: [&str; 4] = ["--grid", "learn.learning_rate=0.1,0.02", "--seeds", "2"];
const QUICK: [&str; 4] = ["-c", "model.name=logistic", "-c", "model.norm=none"];

/// `lapa sweep small.toml` with a quick model, into `out`.
fn sweep(place: &TempDir, out: &str, more: &[&str]) -> Command {
    let mut command = lapa(place.path());
    command.args(["sweep", "small.toml", "--out", out]).args(QUICK).args(more);
    command
}

#[test]
fn a_sweep_leaves_a_folder_and_goes_on_in_it() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let assert = sweep(&place, "s", &GRID).assert();
    let told = one_line(&assert.get_output().stderr);
    assert!(told.contains("4 runs (0 already finished)"), "{told}");
    assert!(told.contains("4/4 runs ETA 0 s"), "{told}");
    let printed = stdout(assert);
    assert!(printed.contains("learn.learning_rate") && printed.contains("final accuracy"));
    assert!(
        printed
            .contains("final: after the last round; mean over 2 seeds [95 % confidence interval]")
    );
    // Two evaluations are no five, and no interval leaves what an accuracy can be.
    assert!(!printed.contains("last five"), "{printed}");
    for line in printed.lines().filter(|line| line.starts_with("0.")) {
        let (low, high) =
            line.split_once('[').unwrap().1.split_once(']').unwrap().0.split_once(", ").unwrap();
        let [low, high] = [low, high].map(|end| end.parse::<f64>().unwrap());
        assert!(0.0 <= low && low <= high && high <= 100.0, "{line}");
    }
    assert!(printed.contains("Results: s (sweep.json, sweep.parquet, plots"), "{printed}");
    // No noise in small.toml: nothing is proved.
    assert!(printed.lines().any(|line| line.starts_with("0.02") && line.ends_with('∞')));
    let folder = place.path().join("s");
    assert_eq!(names(&folder), ["cells", "plots", "sweep.json", "sweep.parquet"]);
    assert_eq!(names(&folder.join("plots")).len(), 4);
    let bytes = fs::read(folder.join("sweep.json")).unwrap();

    // The same again runs nothing; with a third value only what is new.
    fs::remove_file(folder.join("sweep.json")).unwrap();
    let again = sweep(&place, "s", &[&GRID[..], &["--threads", "0"]].concat()).assert().success();
    assert!(one_line(&again.get_output().stderr).contains("4 runs (4 already finished)"));
    assert_eq!(fs::read(folder.join("sweep.json")).unwrap(), bytes);
    let more = ["--grid", "learn.learning_rate=0.1,0.02,0.5", "--seeds", "2"];
    let more = sweep(&place, "s", &more).assert().success();
    assert!(one_line(&more.get_output().stderr).contains("6 runs (4 already finished)"));
}

#[test]
fn json_has_the_final_accuracies_of_single_runs() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let flags = [&GRID[..], &["--format", "json", "--quiet", "--seed", "7"]].concat();
    let assert = sweep(&place, "s", &flags).assert().success();
    assert_eq!(one_line(&assert.get_output().stderr), "");
    let swept: Value = serde_json::from_str(&stdout(assert)).unwrap();
    assert_eq!(keys(&swept), ["keys", "seeds", "points", "folder"]);
    assert_eq!(swept["seeds"], serde_json::json!([7, 8]));
    let point = &swept["points"][1];
    assert_eq!(point["values"]["learn.learning_rate"], 0.02);
    for (cell, seed) in point["cells"].as_array().unwrap().iter().zip(["7", "8"]) {
        let mut run = lapa(place.path());
        run.args(["run", "small.toml", "--quiet", "--out", seed, "--seed", seed]).args(QUICK);
        run.args(["-c", "learn.learning_rate=0.02"]).assert().success();
        let (_, lines) = results(&place.path().join(seed));
        assert_eq!(cell["result"]["accuracy_final"], lines[3]["accuracy"]);
        assert_eq!(cell["result"]["loss_final"], lines[3]["loss"]);
        assert!(cell["result"]["accuracy_last5"].is_null());
    }
}

/// Ten evaluations of ten rounds: the last three are in the last fifth, of 25 rounds the last five.
#[test]
fn the_last_five_evaluations_have_a_name_of_their_own() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let flags = ["--grid", "run.rounds=10,25", "--seeds", "1", "-c", "run.evaluate_every=1"];
    let printed = stdout(sweep(&place, "s", &flags).assert());
    assert!(printed.contains("final accuracy") && printed.contains("last five: mean accuracy of"));
    let short = printed.lines().find(|line| line.starts_with("10 ")).unwrap();
    // No last five, and the first point has no gain over itself.
    assert_eq!(short.matches('–').count(), 2, "{short}");
    let text = fs::read_to_string(place.path().join("s/sweep.json")).unwrap();
    let swept: Value = serde_json::from_str(&text).unwrap();
    assert!(swept["points"][0]["result"]["accuracy_last5"].is_null());
    let result = &swept["points"][1]["result"];
    let rounds = result["rounds"].as_array().unwrap();
    let of = |round: &Value| round["accuracy"]["mean"].as_f64().unwrap();
    let sum: f64 = rounds[20..].iter().rev().map(of).sum();
    assert_eq!(result["accuracy_last5"]["mean"], sum / 5.0);
    assert_eq!(result["accuracy_final"]["mean"], of(&rounds[24]));
}

#[test]
fn failed_cells_are_told_and_the_others_kept() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    let grid = ["--grid", "partition.mix.iid_samples=[20,40],[90000,90001]", "--seeds", "2"];
    let assert = sweep(&place, "s", &grid).assert().code(1);
    let printed = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(printed.contains("failed:"), "{printed}");
    assert!(printed.contains("partition.mix.iid_samples=[90000,90001], seed 4: "), "{printed}");
    let missing = printed.lines().find(|line| line.starts_with("[90000,90001]")).unwrap();
    assert_eq!(missing.matches('–').count(), 4, "{missing}");
    assert!(missing.ends_with("0 of 2"), "{missing}");
    let text = fs::read_to_string(place.path().join("s/sweep.json")).unwrap();
    let swept: Value = serde_json::from_str(&text).unwrap();
    assert!(swept["points"][0]["result"]["accuracy_final"]["mean"].is_number());
    assert!(swept["points"][1]["result"].is_null());
}

#[test]
fn without_data_the_quickstart_makes_do() {
    let place = TempDir::new().unwrap();
    let mut command = lapa_alone(place.path());
    command.args(["sweep", "--grid", "run.rounds=1,2", "--seeds", "1"]).args(QUICK);
    let assert = command.assert();
    let told = one_line(&assert.get_output().stderr);
    assert_eq!(told.matches("using the built-in synthetic digits").count(), 1, "{told}");
    assert_eq!(told.matches("notice: partition.mix.iid_samples").count(), 1, "{told}");
    assert!(stdout(assert).contains("Results: runs/quickstart-sweep"));
}

#[test]
fn what_cannot_be_swept_is_refused_before_anything_runs() {
    let place = TempDir::new().unwrap();
    write_small(place.path());
    for (flags, expected) in [
        (&[][..], "--grid <KEY=A,B,C>"),
        (&["--grid", "run.roundz=1,2"], "--grid run.roundz=1: unknown key `run.roundz`"),
        (&["--grid", "run.roundz=1,2"], "did you mean `rounds`?"),
        (&["--grid", "run.rounds="], "--grid run.rounds=: a value is empty"),
        (&["--grid", "run.seed=1,2"], "use --seeds"),
        (&["--grid", "model.name=cnn,mlp"], "`model.name` is set by both -c and --grid"),
        (&["--grid", "run.rounds=1,2", "-c", "run.ledger=l.db"], "would share that budget"),
        (&["--grid", "run.rounds=1,2", "--seeds", "0"], "--seeds"),
    ] {
        let text = failure(&mut sweep(&place, "s", flags), 2);
        assert!(text.contains(expected), "{text}");
    }
    assert!(!place.path().join("s").exists());
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_finished_cells() {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    let place = TempDir::new().unwrap();
    write_small(place.path());
    let flags = ["--grid", "run.rounds=2,1000000", "--seeds", "1", "--threads", "1"];
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("lapa"));
    command.current_dir(place.path()).args(["sweep", "small.toml", "--out", "s"]).args(QUICK);
    command.args(flags).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let cells = place.path().join("s/cells");
    while !cells.exists() || !names(&cells).iter().any(|name| name.ends_with(".json")) {
        sleep(Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let printed = one_line(&output.stdout);
    assert!(printed.contains("1 of 2 runs are finished and kept in s; repeat the command"));
    assert!(!place.path().join("s/sweep.json").exists());
}
