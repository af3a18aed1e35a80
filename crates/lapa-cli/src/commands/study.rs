//! Parts that commands of many runs share: the plan, the data, the cells.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;

use lapa_study::cell::Cell;
use lapa_study::execute::{Datasets, Event, Executed, execute};
use lapa_study::store::{Results, Store};

use super::run::{flow, stop_on_interrupt};
use super::{create_folder, load_data};
use crate::failure::{CommandResult, Failure};
use crate::output::{count, say};
use crate::progress::{Mode, StudyProgress, duration};

/// Samples that one core trains or evaluates in a second; only to say beforehand how long it takes.
const SAMPLES_PER_SECOND: f64 = 45_000.0;

/// Loads the data and runs the cells that the folder `out` does not have yet, with a plan first and
/// progress.
pub fn run_cells(
    cells: &[Cell],
    out: &Path,
    threads: Option<u32>,
    mode: Mode,
) -> Result<Executed, Failure> {
    let mut data = Datasets::new();
    for cell in cells {
        if let Entry::Vacant(place) = data.entry(cell.experiment().inputs()) {
            let loaded = load_data(place.key(), mode)?;
            place.insert(loaded);
        }
    }
    run_loaded(cells, &data, out, threads, mode)
}

/// The same with data that are loaded.
pub fn run_loaded(
    cells: &[Cell],
    data: &Datasets,
    out: &Path,
    threads: Option<u32>,
    mode: Mode,
) -> Result<Executed, Failure> {
    create_folder(out)?;
    let store = Store::open(out)?;
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = threads.map_or(cores, |threads| threads as usize);
    let works: Vec<f64> =
        cells.iter().map(|cell| cell.work(&data[&cell.experiment().inputs()])).collect();
    let open: BTreeMap<&str, f64> = {
        let done = Results::read(&store, cells);
        for unusable in done.unusable() {
            mode.notice(&format!("notice: {unusable}; the run is repeated"));
        }
        let open = cells.iter().zip(&works).filter(|(cell, _)| done.get(cell).is_none());
        open.map(|(cell, work)| (cell.id(), *work)).collect()
    };
    let work: f64 = open.values().sum();
    let distinct = cells.iter().map(Cell::id).collect::<BTreeSet<_>>().len();
    let threads = threads.min(open.len().max(1));
    let mut plan =
        format!("{} ({} already finished)", count(distinct, "run"), distinct - open.len());
    if !open.is_empty() {
        let time = duration(work / SAMPLES_PER_SECOND / threads as f64);
        plan += &format!(", {threads} in parallel, about {time}");
    }
    mode.notice(&plan);
    stop_on_interrupt("stopping; finished runs are kept")?;
    let mut progress = StudyProgress::new(mode, open.len(), work);
    let executed = execute(cells, &store, data, threads, &mut |event| {
        match event {
            Event::Started { .. } => {}
            Event::Round { cell, round } => {
                let rounds = cells[cell].experiment().run.rounds;
                progress.moved(cell, works[cell] * f64::from(round) / f64::from(rounds));
            }
            Event::Warning { warning, .. } => progress.say(&format!("warning: {warning}")),
            Event::Finished { cell, .. } => progress.finished(cell, works[cell]),
            Event::Failed { cell, error } => {
                progress.finished(cell, works[cell]);
                progress.say(&format!("run {} failed: {error}", cells[cell].id()));
            }
        }
        flow()
    })?;
    progress.end();
    Ok(executed)
}

/// Results that the folder `out` has of some cells.
pub fn results(cells: &[Cell], out: &Path) -> Result<Results, Failure> {
    Ok(Results::read(&Store::open(out)?, cells))
}

/// The exit code, with a word on what is missing.
pub fn finish(executed: &Executed, out: &Path) -> CommandResult {
    let out = out.display();
    say(&match (executed.stopped, executed.failures.len()) {
        (true, _) => format!("stopped; finished runs are in {out}; repeat the command to continue"),
        (false, 0) => return Ok(ExitCode::SUCCESS),
        (false, failed) => {
            let runs = count(failed, "run");
            format!("{runs} failed (see above); the results that need them are left out")
        }
    });
    Ok(ExitCode::FAILURE)
}
