//! Sweeps, from the grid to the files.

mod common;

use std::fs;
use std::path::Path;

use common::{SYNTHETIC, TOO_MANY, data, experiment, run};
use lapa::config::Override;
use lapa::data::Inputs;
use lapa::run::{Outcome, Run};
use lapa_study::store::Store;
use lapa_study::sweep::{Grid, MOST_CELLS, Sweep, SweepError, SweepResults};
use serde_json::Value;

fn sweep(flags: &[&str], seeds: u32) -> Result<Sweep, SweepError> {
    Sweep::new(Grid::parse(flags.iter().copied())?, seeds, experiment)
}

/// Runs a sweep in `folder`, up to `most` finished cells, and writes it if it is complete. Returns
/// how many cells were begun.
fn execute(sweep: &Sweep, folder: &Path, threads: usize, most: usize) -> usize {
    let store = Store::open(folder).unwrap();
    let (executed, heard) = run(&sweep.cells(), &store, threads, most);
    assert!(heard.finished.len() + heard.failed.len() <= heard.started.len());
    if !executed.stopped {
        SweepResults::new(sweep, &executed).write(folder).unwrap();
    }
    heard.started.len()
}

fn read(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("sweep.json")).unwrap()).unwrap()
}

const GRID: [&str; 2] = ["learn.learning_rate=0.1,0.01", "privacy.epsilon=5,20"];

#[test]
fn a_sweep_has_a_cell_for_each_point_and_seed() {
    let sweep = sweep(&GRID, 3).unwrap();
    let cells = sweep.cells();
    assert_eq!(cells.len(), 12);
    assert_eq!(sweep.seeds().collect::<Vec<_>>(), [3, 4, 5]);
    for (i, cell) in cells.iter().enumerate() {
        let e = cell.experiment();
        assert_eq!(e.run.seed, 3 + i as u64 % 3);
        assert_eq!(
            e.privacy.as_ref().and_then(lapa::config::Privacy::epsilon),
            Some([5.0, 20.0][i / 3 % 2])
        );
        assert_eq!(e.learn.learning_rate, [0.1, 0.01][i / 6]);
    }
}

#[test]
fn what_is_no_simulation_or_too_much_is_refused() {
    let many: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let (rounds, rates) = (format!("run.rounds={}", many.join(",")), many.join(","));
    let rates = format!("learn.learning_rate={rates}");
    for (flags, expected) in [
        (&["run.roundz=1,2"][..], "--grid run.roundz=1: unknown key `run.roundz`"),
        (&["run.roundz=1,2"], "did you mean `rounds`?"),
        (&["run.rounds=1,x"], "--grid run.rounds=x: "),
        (&["run.ledger=a.db,b.db"], "run.ledger = \"a.db\": the runs of a sweep are sim"),
        (&["run.entropy=seed,os"], "run.entropy = \"os\": the runs of a sweep are cached"),
        (&["run.rounds=1,1000000", "partition.mix.iid=20"], "at most 10000000"),
        (
            &[&rounds, &rates],
            "160000 points with 1 seeds each, which makes 160000 runs; the limit is 100000",
        ),
    ] {
        let error = sweep(flags, 1).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = sweep(&[&rounds], 1000).unwrap_err();
    assert!(matches!(error, SweepError::TooMany { cells: 400_000, .. }) && MOST_CELLS < 400_000);
    let last = |overrides: &[Override]| {
        let last = Override::parse(&format!("run.seed={}", i64::MAX)).unwrap();
        experiment(&[overrides, &[last]].concat())
    };
    let error = Sweep::new(Grid::parse(["run.rounds=1,2"]).unwrap(), 2, last).unwrap_err();
    assert!(
        error.to_string().contains("the largest possible seed is 9223372036854775807"),
        "{error}"
    );
}

/// The means of a sweep against the last evaluations of run folders with the same seeds.
#[test]
fn figures_are_those_of_separate_runs() {
    let place = tempfile::tempdir().unwrap();
    let sweep = sweep(&GRID, 2).unwrap();
    execute(&sweep, place.path(), 2, usize::MAX);
    let swept = read(place.path());
    assert_eq!(swept["seeds"], serde_json::json!([3, 4]));
    assert_eq!(swept["keys"][0]["key"], "learn.learning_rate");
    assert_eq!(swept["keys"][1]["values"], serde_json::json!([5, 20]));
    for (index, point) in swept["points"].as_array().unwrap().iter().enumerate() {
        let mut sums = [0.0; 2];
        let mut worst = 0.0f64;
        for (cell, seed) in point["cells"].as_array().unwrap().iter().zip([3, 4]) {
            assert_eq!(cell["seed"], seed);
            let changes = [
                format!("learn.learning_rate={}", [0.1, 0.01][index / 2]),
                format!("privacy.epsilon={}", [5, 20][index % 2]),
                format!("run.seed={seed}"),
                "run.threads=2".into(),
            ];
            let changes = changes.map(|change| Override::parse(&change).unwrap());
            let folder = place.path().join(format!("run-{index}-{seed}"));
            let data = data().remove(&Inputs::from(SYNTHETIC)).unwrap();
            let run = Run::create(experiment(&changes).unwrap(), data, &folder).unwrap();
            let outcome = run.execute(&mut |_| std::ops::ControlFlow::Continue(())).unwrap();
            let Outcome::Finished(summary) = outcome else { panic!("not finished") };
            let metrics = fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
            let lines: Vec<Value> =
                metrics.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            for (field, sum) in ["accuracy", "loss"].into_iter().zip(&mut sums) {
                let last = lines[5][field].as_f64().unwrap();
                let swept = cell["result"][format!("{field}_final")].as_f64().unwrap();
                assert_eq!(swept.to_bits(), last.to_bits());
                *sum += last;
            }
            assert_eq!(cell["result"]["accuracy_final"], summary.accuracy.unwrap());
            // Three evaluations of six rounds are no last five.
            assert!(cell["result"]["accuracy_last5"].is_null());
            assert_eq!(cell["result"]["uplink_bytes"], summary.uplink_bytes);
            assert_eq!(cell["result"]["epsilon_provable"], summary.privacy.epsilon_provable);
            worst = worst.max(summary.privacy.epsilon_provable);
        }
        let result = &point["result"];
        assert_eq!(result["accuracy_final"]["mean"], sums[0] / 2.0);
        assert_eq!(result["loss_final"]["mean"], sums[1] / 2.0);
        assert_eq!(result["epsilon_provable"], worst);
        assert_eq!(result["rounds"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn an_interrupted_sweep_goes_on_and_threads_make_no_difference() {
    let place = tempfile::tempdir().unwrap();
    let [whole, parts, threads] = ["whole", "parts", "threads"].map(|name| place.path().join(name));
    let sweep = sweep(&GRID, 2).unwrap();
    assert_eq!(execute(&sweep, &whole, 1, usize::MAX), 8);
    let begun = execute(&sweep, &parts, 1, 1);
    assert!(!parts.join("sweep.json").exists());
    let kept = fs::read_dir(parts.join("cells")).unwrap().count();
    assert!(kept >= 1 && kept <= begun, "{kept} of {begun}");
    assert_eq!(execute(&sweep, &parts, 1, usize::MAX), 8 - kept);
    assert_eq!(execute(&sweep, &threads, 3, usize::MAX), 8);
    for file in ["sweep.json", "sweep.parquet"] {
        let bytes = |folder: &Path| fs::read(folder.join(file)).unwrap();
        assert!(bytes(&whole) == bytes(&parts), "{file} after an interruption");
        assert!(bytes(&whole) == bytes(&threads), "{file} with three threads");
    }
}

#[test]
fn a_failed_cell_does_not_lose_the_others() {
    let place = tempfile::tempdir().unwrap();
    let grid = format!("{TOO_MANY},[60,120]");
    let sweep = sweep(&[&grid, "learn.momentum=0,0.5"], 2).unwrap();
    execute(&sweep, place.path(), 2, usize::MAX);
    let swept = read(place.path());
    let points = swept["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    for point in &points[..2] {
        assert_eq!(point["values"]["partition.mix.iid_samples"], serde_json::json!([5000, 6000]));
        assert!(point["result"].is_null());
        let cells = point["cells"].as_array().unwrap();
        assert!(cells.iter().all(|cell| cell["error"].as_str().unwrap().contains("samples")));
    }
    for point in &points[2..] {
        assert!(point["result"]["accuracy_final"]["mean"].as_f64().unwrap() > 0.1);
        assert!(point["cells"].as_array().unwrap().iter().all(|cell| cell["error"].is_null()));
    }
}

#[test]
fn differences_are_paired_by_seed() {
    let place = tempfile::tempdir().unwrap();
    let sweep = sweep(&["learn.momentum=0,0.5"], 2).unwrap();
    execute(&sweep, place.path(), 2, usize::MAX);
    let swept = read(place.path());
    let [first, second] = [0, 1].map(|at| swept["points"][at].clone());
    assert!(first["over_first"].is_null());
    let of = |point: &Value, seed: usize| {
        point["cells"][seed]["result"]["accuracy_final"].as_f64().unwrap()
    };
    let differences: Vec<f64> = (0..2).map(|seed| of(&second, seed) - of(&first, seed)).collect();
    let gain = &second["over_first"];
    assert_eq!(gain["values"], serde_json::json!(differences));
    assert_eq!(gain["seeds"], swept["seeds"]);
    let mean = (differences[0] + differences[1]) / 2.0;
    assert!((gain["mean"]["mean"].as_f64().unwrap() - mean).abs() < 1e-15);
}

#[test]
fn plots_are_by_key_and_of_one_key_over_the_rounds() {
    let place = tempfile::tempdir().unwrap();
    let plots = |flags: &[&str], folder: &str| {
        let sweep = sweep(flags, 1).unwrap();
        let store = Store::open(place.path()).unwrap();
        let (executed, _) = run(&sweep.cells(), &store, 2, usize::MAX);
        let folder = place.path().join(folder);
        fs::create_dir(&folder).unwrap();
        let plots = SweepResults::new(&sweep, &executed).plot(&folder).unwrap();
        let name = |path: &std::path::PathBuf| path.file_name().unwrap().to_owned();
        let names: Vec<_> =
            plots.files.iter().map(|path| name(path).into_string().unwrap()).collect();
        (names.join(" "), plots.left_out)
    };
    let (names, left_out) = plots(&["learn.learning_rate=0.1,0.01"], "one");
    assert_eq!(
        names,
        "accuracy-by-learn-learning_rate.svg accuracy-by-learn-learning_rate.png \
         accuracy-by-round.svg accuracy-by-round.png"
    );
    assert_eq!(left_out, [] as [String; 0]);
    let rates = "learn.learning_rate=0.1,0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.11";
    let (names, left_out) = plots(&["privacy.allocator=uniform,arb", rates], "two");
    assert_eq!(
        names,
        "accuracy-by-privacy-allocator.svg accuracy-by-privacy-allocator.png \
         accuracy-by-learn-learning_rate.svg accuracy-by-learn-learning_rate.png"
    );
    let [left_out] = &left_out[..] else { panic!("{left_out:?}") };
    assert!(left_out.contains("accuracy-by-privacy-allocator shows the first 10 of 11"));
}
