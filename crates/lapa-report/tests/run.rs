//! Runs that are shown in their folders: whole, the same after any interruption, and private.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use lapa::config::{Experiment, Override};
use lapa::data::{Dataset, digits};
use lapa::run::{CheckedRun, Outcome, Run, RunEvent, RunFolder, read_summary};
use lapa_report::run::{ShowError, execute, show};
use tempfile::TempDir;

fn data() -> Dataset {
    digits(600, 60)
}

fn begin(path: &Path, changes: &[&str]) -> Run {
    let text = "
        data.name = 'synthetic'
        model.name = 'logistic'
        run = { rounds = 4, seed = 5, threads = 1, evaluate_every = 2, checkpoint_every = 3 }
        partition.mix = { iid = 2, non_iid = 1, iid_samples = 60, non_iid_samples = 30 }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    let experiment = Experiment::from_toml(text, "test", &changes).unwrap();
    Run::create(experiment, data(), path).unwrap()
}

fn resume(path: &Path) -> Run {
    let folder = RunFolder::open(path).unwrap();
    let experiment = folder.experiment().unwrap();
    Run::resume(folder, experiment, data()).unwrap()
}

fn finish(run: Run) -> Result<Outcome, ShowError> {
    execute(run, &mut |_| ControlFlow::Continue(()))
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The names in a run's folder, and its plots with their bytes.
fn shown(folder: &Path) -> (Vec<String>, Vec<(String, Vec<u8>)>) {
    let plots = folder.join("plots");
    let bytes = |name: String| (name.clone(), fs::read(plots.join(name)).unwrap());
    (names(folder), names(&plots).into_iter().map(bytes).collect())
}

#[test]
fn a_resumed_run_has_the_files_and_plots_of_an_undisturbed_one() {
    for kind in [&[][..], &["privacy.epsilon=8"], &["profile=paper", "observe.devices=summary"]] {
        let place = TempDir::new().unwrap();
        let (whole, stopped) = (place.path().join("whole"), place.path().join("stopped"));
        finish(begin(&whole, kind)).unwrap();
        let expected = shown(&whole);
        assert!(expected.0.contains(&"metrics.parquet".into()), "{:?}", expected.0);
        let plots: Vec<_> = expected.1.iter().map(|(name, _)| name.as_str()).collect();
        assert!(plots.contains(&"accuracy.svg") && plots.contains(&"loss.png"), "{plots:?}");
        execute(begin(&stopped, kind), &mut |event| match event {
            RunEvent::Round(record) if record.round == 2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .unwrap();
        assert!(!stopped.join("plots").exists() && !stopped.join("metrics.parquet").exists());
        for _ in 0..2 {
            finish(resume(&stopped)).unwrap();
            assert_eq!(shown(&stopped), expected, "{kind:?}");
        }
    }
}

#[test]
fn a_kill_after_the_plots_leaves_a_run_to_resume() {
    let place = TempDir::new().unwrap();
    let (path, killed) = (place.path().join("run"), place.path().join("killed"));
    let run = begin(&path, &[]);
    run.execute(&mut |event| {
        if let RunEvent::Finishing(summary) = event {
            show(&path, summary).unwrap();
            fs::create_dir(&killed).unwrap();
            for entry in fs::read_dir(&path).unwrap().map(Result::unwrap) {
                if entry.path().is_file() {
                    fs::copy(entry.path(), killed.join(entry.file_name())).unwrap();
                }
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(killed.join("metrics.parquet").is_file() && path.join("plots/loss.svg").is_file());
    assert_eq!(read_summary(&killed).unwrap(), None);
    finish(resume(&killed)).unwrap();
    assert!(CheckedRun::read(&killed).unwrap().is_some());
    assert_eq!(shown(&killed), shown(&path));
}

#[test]
fn plots_that_cannot_be_written_are_an_error_and_come_with_the_next_resume() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    let run = begin(&path, &[]);
    fs::write(path.join("plots"), "in the way").unwrap();
    let error = finish(run).unwrap_err().to_string();
    assert!(error.contains("cannot write plots to") && error.contains("plots"), "{error}");
    fs::remove_file(path.join("plots")).unwrap();
    finish(resume(&path)).unwrap();
    assert_eq!(names(&path.join("plots")).len(), 10);
}

#[cfg(unix)]
#[test]
fn tables_and_plots_are_their_owner_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = TempDir::new().unwrap();
    let path = place.path().join("run");
    finish(begin(&path, &[])).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("plots"))), (0o700, 0o700));
    for entry in fs::read_dir(&path).unwrap().chain(fs::read_dir(path.join("plots")).unwrap()) {
        let (name, path) = entry.map(|entry| (entry.file_name(), entry.path())).unwrap();
        if path.is_file() && !name.to_string_lossy().starts_with("ledger.db") {
            assert_eq!(mode(&path), 0o600, "{name:?}");
        }
    }
}
