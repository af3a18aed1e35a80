//! `lapa run`: train, show progress, leave a run folder.

mod phases;
mod report;
mod screen;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use lapa::run::{Outcome, RunError};
use lapa_control::phases::{Destination, Job, Unfinished, notes};

use crate::failure::{CommandResult, Failure};
use crate::output::{Printing, say};
use crate::progress::{Mode, patiently};
use phases::Phases;
pub(super) use screen::Screen;

/// Train a model across devices and write a run folder
///
/// Without CONFIG this trains the built-in quickstart: the paper's CNN on MNIST with 15 devices, or
/// on synthetic digits if MNIST is not available. Ctrl-C stops after the current round; --resume
/// continues. With control.power = "ddpg", "cma-es" or "closed-form", a pilot run (in DIR-pilot) and
/// the optimization of transmit powers come first.
///
/// The run folder holds metrics.jsonl and metrics.parquet, the model, plots, the resolved
/// configuration and the privacy ledger. `lapa report DIR` turns it into one page, `lapa explain DIR`
/// explains its ε.
///
/// Examples:
///   lapa run
///   lapa run my.toml -c learn.learning_rate=0.05 --seed 3
///   lapa run -c data.name=fashion-mnist --out runs/fashion
///   lapa run --resume runs/fashion
///   lapa run experiments/control/config.toml -c control.power=cma-es
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    /// Worker threads, 0 for one per core; same as -c run.threads=N. Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: Option<u32>,
    /// Folder of the run; must be new or empty [default: runs/NAME-N].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue an interrupted run.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["config", "change", "seed", "out"])]
    resume: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// Set by Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub fn execute(arguments: Arguments) -> CommandResult {
    let Printing { quiet, format } = arguments.printing;
    let mode = Mode::choose(quiet);
    let job = match &arguments.resume {
        Some(folder) => resume(folder, &arguments, mode)?,
        None => create(&arguments, mode)?,
    };
    stop_on_interrupt("stopping after this round (Ctrl-C again stops at once)")?;
    let mut screen = Screen::new(mode);
    let folder = job.folder().to_path_buf();
    let mut phases = match &job {
        Job::Phases { experiment, .. } => {
            notes(experiment).iter().for_each(|note| mode.notice(&format!("notice: {note}")));
            Phases::new(mode, &experiment.control)
        }
        Job::Run(..) => Phases::last(mode),
    };
    let end = job.execute(&mut |event| phases.show(event, &mut screen))?;
    phases.finish();
    screen.finish();
    match end {
        Outcome::Finished(summary) => report::finished(&summary, &screen, &folder, format),
        Outcome::Stopped { round: 0 } => {
            report::stopped("stopped before the first round", &folder, format)
        }
        Outcome::Stopped { round } => {
            report::stopped(&format!("stopped after round {round}"), &folder, format)
        }
    }
}

/// A break if Ctrl-C was pressed.
pub(super) fn flow() -> ControlFlow<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return ControlFlow::Break(());
    }
    ControlFlow::Continue(())
}

/// Lets Ctrl-C end the work soon, after saying `words`.
pub(super) fn stop_on_interrupt(words: &'static str) -> Result<(), Failure> {
    ctrlc::set_handler(move || {
        // A second Ctrl-C does not wait for the round.
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
        say(&format!("\n{words}"));
    })
    .map_err(Failure::failed)
}

fn create(arguments: &Arguments, mode: Mode) -> Result<Job, Failure> {
    // Before anything takes time.
    if let Some(out) = arguments.out.as_deref().filter(|out| !lapa::run::is_free(out)) {
        return Err(RunError::Exists(out.into()).into());
    }
    let threads = arguments.threads.map(|threads| format!("run.threads={threads}"));
    let (experiment, data) = arguments.source.prepare(threads, mode)?;
    let numbered = Path::new("runs").join(arguments.source.name());
    let place =
        arguments.out.as_deref().map_or(Destination::Numbered(&numbered), Destination::Folder);
    Ok(patiently(mode, "preparing the run", || Job::create(experiment, data, place))?)
}

fn resume(path: &Path, arguments: &Arguments, mode: Mode) -> Result<Job, Failure> {
    let mut unfinished = Unfinished::open(path)?;
    if let Some(threads) = arguments.threads {
        unfinished.experiment.run.threads = threads as usize;
    }
    let data = super::load_data(&unfinished.experiment.inputs(), mode)?;
    Ok(patiently(mode, "preparing the run", || unfinished.resume(data))?)
}
