//! `lapa report`: a finished run on one page.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use lapa_study::report::run::FinishedRun;
use serde_json::json;

use crate::failure::Outcome;
use crate::output::{self, Format};

/// Put a finished run on one page, and its curves into TensorBoard.
///
/// The page is one HTML file: accuracy, provable beside claimed ε, figures, cost, devices, and the
/// whole configuration. It needs no network and runs no scripts, so it can be mailed or archived as
/// it is. It is made from the run's folder alone, as often as wanted; a run that was stopped must be
/// finished first (`lapa run --resume DIR`).
///
/// Examples:
///   lapa report runs/quickstart-1
///   lapa report runs/quickstart-1 --out today.html
///   lapa report runs/quickstart-1 --tensorboard && tensorboard --logdir runs
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The folder of a finished run.
    dir: PathBuf,
    /// Also write the curves to DIR/tensorboard, as an event file.
    #[arg(long)]
    tensorboard: bool,
    /// The page's file, replaced if it is there [default: DIR/report.html].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn execute(arguments: Arguments) -> Outcome {
    let run = FinishedRun::open(&arguments.dir)?;
    let page = run.write_page(arguments.out.as_deref())?;
    let events = arguments.tensorboard.then(|| run.write_tensorboard()).transpose()?;
    match arguments.format {
        Format::Json => output::json(&json!({ "report": page, "tensorboard": events }))?,
        Format::Text => {
            let mut text = format!("the report is in {}: open it in a browser\n", page.display());
            if let Some(events) = events.as_deref().and_then(|file| file.parent()) {
                text +=
                    &format!("the curves are in {0}: tensorboard --logdir {0}\n", events.display());
            }
            output::text_out(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
