//! `lapa run`: train, show progress, leave a run folder.

mod report;
mod screen;
mod stages;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use lapa::config::Experiment;
use lapa::data::Dataset;
use lapa::run::{Outcome as RunOutcome, Run, RunError, RunFolder, is_free};
use lapa_control::phases::{PhaseOutcome, interrupted, notes, pilot_folder};
use lapa_control::pilot_and_run;

use crate::failure::{Failure, Outcome};
use crate::output::{Printing, say};
use crate::progress::{Mode, patiently};
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

pub fn execute(arguments: Arguments) -> Outcome {
    let Printing { quiet, format } = arguments.printing;
    let mode = Mode::choose(quiet);
    let ready = match &arguments.resume {
        Some(folder) => resume(folder, &arguments, mode)?,
        None => create(&arguments, mode)?,
    };
    stop_on_interrupt("stopping after this round (Ctrl-C again stops at once)")?;
    let mut screen = Screen::new(mode);
    let (folder, end) = match ready {
        Ready::Run(run) => {
            let folder = run.folder().to_path_buf();
            let outcome = lapa_report::run::execute(*run, &mut |event| screen.show(event))?;
            let end = match outcome {
                RunOutcome::Finished(summary) => PhaseOutcome::Finished(summary),
                RunOutcome::Stopped { round } => PhaseOutcome::Stopped { round },
            };
            (folder, end)
        }
        Ready::Staged { experiment, data, out } => {
            notes(&experiment).iter().for_each(|note| mode.notice(&format!("notice: {note}")));
            let mut stages = stages::Stages::new(mode, &experiment.control);
            let end = pilot_and_run(*experiment, *data, &out, &mut |event| {
                stages.show(event, &mut screen)
            })?;
            stages.finish();
            (out, end)
        }
    };
    screen.finish();
    match end {
        PhaseOutcome::Finished(summary) => report::finished(&summary, &screen, &folder, format),
        PhaseOutcome::Stopped { round } => {
            report::stopped(&format!("stopped after round {round}"), &folder, format)
        }
        PhaseOutcome::StoppedBefore { .. } => {
            report::stopped("stopped before the run", &folder, format)
        }
    }
}

/// A run that can start.
enum Ready {
    /// Rounds.
    Run(Box<Run>),
    /// A pilot, a choice of powers, then rounds.
    Staged { experiment: Box<Experiment>, data: Box<Dataset>, out: PathBuf },
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

fn create(arguments: &Arguments, mode: Mode) -> Result<Ready, Failure> {
    // Before anything takes time.
    if let Some(out) = arguments.out.as_deref().filter(|out| !lapa::run::is_free(out)) {
        return Err(RunError::Exists(out.into()).into());
    }
    let threads = arguments.threads.map(|threads| format!("run.threads={threads}"));
    let (experiment, data) = arguments.source.prepare(threads, mode)?;
    let numbered = Path::new("runs").join(arguments.source.name());
    if experiment.control.power.needs_pilot() {
        let free = |out: &PathBuf| is_free(out) && is_free(&pilot_folder(out));
        let out = arguments.out.clone().or_else(|| {
            let name = |n: u32| format!("{}-{n}", numbered.display()).into();
            (1..).map(name).find(free)
        });
        let out = out.unwrap_or(numbered);
        return Ok(Ready::Staged { experiment: experiment.into(), data: data.into(), out });
    }
    let run = patiently(mode, "preparing the run", || match &arguments.out {
        Some(out) => Run::create(experiment, data, out),
        None => Run::create_numbered(experiment, data, &numbered),
    });
    Ok(Ready::Run(run?.into()))
}

fn resume(path: &Path, arguments: &Arguments, mode: Mode) -> Result<Ready, Failure> {
    let (mut experiment, folder) = match interrupted(path)? {
        Some(experiment) => (experiment, None),
        None => {
            let folder = RunFolder::open(path)?;
            (folder.experiment()?, Some(folder))
        }
    };
    if let Some(threads) = arguments.threads {
        experiment.run.threads = threads as usize;
    }
    let data = super::load_data(&experiment.data, mode)?;
    let Some(folder) = folder else {
        let (experiment, data, out) = (experiment.into(), data.into(), path.into());
        return Ok(Ready::Staged { experiment, data, out });
    };
    let run = patiently(mode, "preparing the run", || Run::resume(folder, experiment, data));
    Ok(Ready::Run(run?.into()))
}
