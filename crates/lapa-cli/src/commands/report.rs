//! `lapa report`: a finished run on one page.

use std::path::PathBuf;

use clap::Args;
use lapa_study::report::run::FinishedRun;
use serde_json::json;

use crate::failure::CommandResult;
use crate::output::{self, Formatted};

/// Write a finished run as one HTML page, and its curves for TensorBoard
///
/// The page is one HTML file: accuracy, proven and claimed ε, plots, cost, devices, and the whole
/// configuration. It needs no network and runs no scripts, so it can be mailed or archived. It is
/// made from the run folder alone. Finish a stopped run first (`lapa run --resume DIR`).
///
/// Examples:
///   lapa report runs/quickstart-1
///   lapa report runs/quickstart-1 --out today.html
///   lapa report runs/quickstart-1 --tensorboard && tensorboard --logdir runs
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Folder of a finished run.
    dir: PathBuf,
    /// Also write a TensorBoard event file to DIR/tensorboard.
    #[arg(long)]
    tensorboard: bool,
    /// File of the page, overwritten if it exists [default: DIR/report.html].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    formatted: Formatted,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let run = FinishedRun::open(&arguments.dir)?;
    let page = run.write_page(arguments.out.as_deref())?;
    let events = arguments.tensorboard.then(|| run.write_tensorboard()).transpose()?;
    output::print(
        arguments.formatted.format,
        &json!({ "report": page, "tensorboard": events }),
        || {
            let mut text = format!("Report: {} (open it in a browser)\n", page.display());
            if let Some(events) = events.as_deref().and_then(|file| file.parent()) {
                text += &format!("Curves: {0} (tensorboard --logdir {0})\n", events.display());
            }
            text
        },
    )
}
