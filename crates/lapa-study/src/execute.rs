//! Many cells, several at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use lapa::data::{Dataset, Inputs};
use lapa::files::FileError;
use lapa_control::phases::PhaseError;

use crate::cell::{Cell, CellError, CellEvent, Finished};
use crate::store::{Results, Store};

/// The data sets of a study.
pub type Datasets = BTreeMap<Inputs, Dataset>;

/// An event of a running study. `cell` counts through the cells that were given.
pub enum Event<'a> {
    /// A cell begins.
    Started {
        /// Index of the cell.
        cell: usize,
    },
    /// A cell has come this far.
    Round {
        /// Index of the cell.
        cell: usize,
        /// Rounds done.
        round: u32,
    },
    /// A cell warns; each warning is heard once, from the first cell that gives it.
    Warning {
        /// Index of the cell.
        cell: usize,
        /// The warning.
        warning: &'a str,
    },
    /// A cell is done and kept.
    Finished {
        /// Index of the cell.
        cell: usize,
        /// Its result.
        finished: &'a Finished,
    },
    /// A cell failed; others go on.
    Failed {
        /// Index of the cell.
        cell: usize,
        /// Reason of the failure.
        error: &'a str,
    },
}

/// Outcome of a study.
#[derive(Debug, Default)]
pub struct Executed {
    /// Results of the finished cells, now or before.
    pub results: Results,
    /// Cells that failed, and why.
    pub failures: Vec<(usize, String)>,
    /// True if the listener broke off.
    pub stopped: bool,
}

impl Executed {
    /// Keeps the result of a cell and tells the listener.
    fn keep(
        &mut self,
        cells: &[Cell],
        cell: usize,
        result: Result<Finished, CellError>,
        store: &Store,
        on_event: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, FileError> {
        Ok(match result {
            Ok(finished) => {
                store.write(&cells[cell], &finished)?;
                let flow = on_event(Event::Finished { cell, finished: &finished });
                self.results.insert(&cells[cell], finished);
                flow
            }
            Err(error) => {
                let error = error.to_string();
                let flow = on_event(Event::Failed { cell, error: &error });
                self.failures.push((cell, error));
                flow
            }
        })
    }
}

/// Message of a worker.
enum Message {
    Started(usize),
    Round(usize, u32),
    Warning(usize, String),
    Done(usize, Box<Result<Finished, CellError>>),
}

/// Runs the cells that the store does not have, each on one thread, `threads` at once. Cells that
/// are the same run once. `on_event` may break off: cells under way are then lost, finished ones
/// are not.
///
/// # Panics
/// If `data` lacks a data set that a cell names.
pub fn execute(
    cells: &[Cell],
    store: &Store,
    data: &Datasets,
    threads: usize,
    on_event: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Executed, FileError> {
    let mut executed = Executed { results: Results::read(store, cells), ..Executed::default() };
    let mut seen = BTreeSet::new();
    let open: Vec<usize> = (0..cells.len())
        .filter(|&cell| executed.results.get(&cells[cell]).is_none())
        .filter(|&cell| seen.insert(cells[cell].id()))
        .collect();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, open.len().max(1)) {
            let sender = sender.clone();
            let (open, next, stop) = (&open, &next, &stop);
            scope.spawn(move || {
                while let Some(&cell) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    work(&cells[cell], cell, data, stop, &sender);
                }
            });
        }
        drop(sender);
        let mut warned = BTreeSet::new();
        for message in receiver {
            let flow = match message {
                Message::Started(cell) => on_event(Event::Started { cell }),
                Message::Round(cell, round) => on_event(Event::Round { cell, round }),
                Message::Warning(cell, warning) if warned.insert(warning.clone()) => {
                    on_event(Event::Warning { cell, warning: &warning })
                }
                Message::Warning(..) => ControlFlow::Continue(()),
                Message::Done(cell, result) => {
                    let done = executed.keep(cells, cell, *result, store, on_event);
                    done.inspect_err(|_| stop.store(true, Ordering::Relaxed))?
                }
            };
            if flow.is_break() {
                executed.stopped = true;
                stop.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    executed.failures.sort_by_key(|(cell, _)| *cell);
    Ok(executed)
}

/// Runs one cell in a worker. Who listens no more is not told.
fn work(cell: &Cell, index: usize, data: &Datasets, stop: &AtomicBool, sender: &Sender<Message>) {
    let _ = sender.send(Message::Started(index));
    let data = &data[&cell.experiment().inputs()];
    let run = catch_unwind(AssertUnwindSafe(|| {
        cell.run(data, &mut |event| {
            let _ = sender.send(match event {
                CellEvent::Warning(warning) => Message::Warning(index, warning.into()),
                CellEvent::Round(round) => Message::Round(index, round),
            });
            if stop.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
    }));
    let result = match run {
        Ok(Err(CellError::Run(PhaseError::Cancelled(_)))) => return,
        Ok(result) => result,
        Err(panic) => Err(CellError::Panic(words(&*panic))),
    };
    let _ = sender.send(Message::Done(index, Box::new(result)));
}

/// Message of a panic.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").into()
}
