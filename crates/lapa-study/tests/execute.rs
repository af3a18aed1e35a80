//! Many cells: what runs, what is kept, what fails.

mod common;

use std::fs;

use common::{TOO_MANY, experiment, run};
use lapa::config::Override;
use lapa_study::cell::Cell;
use lapa_study::store::Store;

fn cell(changes: &[&str]) -> Cell {
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Cell::new(experiment(&changes).unwrap())
}

#[test]
fn equal_cells_run_once_and_finished_ones_never_again() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    // Threads are no difference.
    let cells = [cell(&[]), cell(&["run.seed=4"]), cell(&["run.threads=2"]), cell(&[])];
    let (executed, heard) = run(&cells, &store, 2, usize::MAX);
    assert_eq!((heard.started.len(), heard.finished.len()), (2, 2));
    assert!(!executed.stopped && executed.failures.is_empty());
    let [first, _, third, fourth] = executed.results.all(&cells).unwrap()[..] else {
        panic!("four cells")
    };
    assert!(first == third && first == fourth);
    let (again, heard) = run(&cells, &store, 2, usize::MAX);
    assert_eq!(heard.started, [] as [usize; 0]);
    // Cells read back as they were written, to the bit and with the times.
    assert_eq!(again.results.all(&cells), executed.results.all(&cells));
}

#[test]
fn a_cell_whose_file_is_damaged_runs_again() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    let cells = [cell(&[]), cell(&["run.seed=4"])];
    let (whole, _) = run(&cells, &store, 1, usize::MAX);
    let file = place.path().join("cells").join(cells[1].id()).with_extension("json");
    let text = fs::read_to_string(&file).unwrap();
    let other = place.path().join("cells").join(cells[0].id()).with_extension("json");
    let other = fs::read_to_string(other).unwrap();
    // A digit of a number, as a flipped bit would leave it.
    let at = text.find("\"accuracy\":0.").unwrap() + "\"accuracy\":0.".len();
    let digit = if &text[at..=at] == "1" { "5" } else { "1" };
    let flipped = [&text[..at], digit, &text[at + 1..]].concat();
    for damaged in ["", "{}", &text[..text.len() / 2], &flipped, &other] {
        fs::write(&file, damaged).unwrap();
        let (executed, heard) = run(&cells, &store, 1, usize::MAX);
        assert_eq!(heard.started, [1]);
        let [why] = executed.results.unusable() else { panic!("{damaged}") };
        assert!(why.contains(&file.display().to_string()), "{why}");
        let [before, after] = [&whole, &executed].map(|e| e.results.get(&cells[1]).unwrap());
        assert_eq!(before.rounds, after.rounds);
    }
}

#[test]
#[cfg(unix)]
fn links_and_pipes_among_cells_are_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let cells = [cell(&[])];
    let store = Store::open(place.path()).unwrap();
    let file = place.path().join("cells").join(cells[0].id()).with_extension("json");
    std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    let (executed, heard) = run(&cells, &store, 1, usize::MAX);
    assert_eq!((heard.finished, executed.results.unusable().len()), (vec![0], 1));
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    std::os::unix::fs::symlink(place.path(), out.join("cells")).unwrap();
    let error = Store::open(&out).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("cannot create") && error.contains("cells: it is a symbolic link"),
        "{error}"
    );
}

#[test]
fn a_failure_costs_one_cell() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    let (seed, other) = ("run.seed=4", "run.seed=5");
    let cells = [cell(&[TOO_MANY]), cell(&[seed]), cell(&[TOO_MANY, other]), cell(&[other])];
    let (executed, heard) = run(&cells, &store, 2, usize::MAX);
    let failed: Vec<usize> = executed.failures.iter().map(|(cell, _)| *cell).collect();
    assert_eq!(failed, [0, 2]);
    for (_, why) in &executed.failures {
        assert!(why.contains("samples"), "{why}");
    }
    assert_eq!((heard.started.len(), heard.finished.len(), heard.failed.len()), (4, 2, 2));
    assert!(!executed.stopped);
    assert!(executed.results.get(&cells[1]).is_some() && executed.results.get(&cells[3]).is_some());
    // A failure is not kept: it is tried again.
    assert_eq!(run(&cells, &store, 1, usize::MAX).1.started, [0, 2]);
}

#[test]
fn late_evaluations_are_those_of_all() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    let all = cell(&["run.rounds=33", "run.evaluate_every=3"]);
    let cells = [all.clone(), all.evaluated_late()];
    let (executed, _) = run(&cells, &store, 2, usize::MAX);
    let [all, late] = executed.results.all(&cells).unwrap()[..] else { panic!("two cells") };
    let [of_all, of_late] = [all, late].map(|cell| cell.evaluations().collect::<Vec<_>>());
    assert_eq!((of_all.len(), of_late.len()), (11, 5));
    assert_eq!(of_all[6..], of_late);
    assert_eq!(all.accuracy().to_bits(), late.accuracy().to_bits());
    // Five evaluations are all there are.
    let short = cell(&["run.rounds=25", "run.evaluate_every=5"]);
    assert_eq!(short.clone().evaluated_late(), short);
}

/// Updates that are not finite end a run early; its later evaluations count as guesses.
#[test]
fn a_run_that_diverges_is_a_result() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    let cells = [cell(&["profile=paper", "learn.learning_rate=1e38", "run.rounds=60"])];
    let (executed, _) = run(&cells, &store, 1, usize::MAX);
    assert!(executed.failures.is_empty(), "{:?}", executed.failures);
    let finished = executed.results.get(&cells[0]).unwrap();
    assert!(finished.diverged.unwrap() < 60, "{:?}", finished.diverged);
    assert_eq!(finished.evaluations().last(), Some((60, 0.1)));
}

#[test]
fn a_pilot_on_private_data_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    let cells = [cell(&[
        "transmit.uplink=analog",
        "control.power=closed-form",
        "control.pilot=private",
        "control.private.budget_fraction=0.2",
    ])];
    let (executed, _) = run(&cells, &store, 1, usize::MAX);
    let [(0, why)] = &executed.failures[..] else { panic!("{:?}", executed.failures) };
    assert!(why.contains("control.pilot = \"private\" needs a ledger"), "{why}");
}

/// Warnings of runs in memory were lost once.
#[test]
fn a_warning_of_several_cells_is_heard_once() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path()).unwrap();
    let analog = ["transmit.uplink=analog", "transmit.perfect_sic=false"];
    let cells = [cell(&analog), cell(&[&analog[..], &["run.seed=4"]].concat())];
    let (_, heard) = run(&cells, &store, 2, usize::MAX);
    assert_eq!(heard.warnings.len(), 1, "{:?}", heard.warnings);
    assert!(heard.warnings[0].contains("transmit.perfect_sic = false"), "{:?}", heard.warnings);
}
