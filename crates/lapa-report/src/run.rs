//! A run that leaves metrics.parquet and plots/ in its folder.

use std::ops::ControlFlow;
use std::path::Path;

use lapa::blame::{Blame, Kind};
use lapa::config::ConfigError;
use lapa::files::FileError;
use lapa::files::Folder;
use lapa::observe::read_metrics;
use lapa::run::{Outcome, Run, RunError, RunEvent, Summary, read_experiment};

use crate::plot::{PlotError, plot_classes, plot_devices, plot_run};
use crate::table::{TableError, write_parquet};

/// A run that failed, or whose table or plots cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// The run failed, or its folder is damaged.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A plot cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ShowError {
    fn of_run(&self) -> Option<&RunError> {
        if let Self::Run(error) = self { Some(error) } else { None }
    }
}

impl Blame for ShowError {
    fn is_usage(&self) -> bool {
        self.of_run().is_some_and(Blame::is_usage)
    }

    fn kind(&self) -> Kind {
        self.of_run().map_or(Kind::Other, Blame::kind)
    }

    fn config(&self) -> Option<&ConfigError> {
        self.of_run()?.config()
    }
}

/// Runs the rounds that are left as [`Run::execute`] does, and shows them in the folder. A kill at
/// any moment leaves a whole folder or one to resume: summary.json still comes last.
pub fn execute(
    run: Run,
    on_event: &mut dyn FnMut(RunEvent<'_>) -> ControlFlow<()>,
) -> Result<Outcome, ShowError> {
    let folder = run.folder().to_path_buf();
    let mut shown = Ok(());
    let outcome = run.execute(&mut |event| {
        let summary = if let RunEvent::Finishing(summary) = event { Some(summary) } else { None };
        let flow = on_event(event);
        if let Some(summary) = summary {
            shown = show(&folder, summary);
        }
        flow
    })?;
    shown.and(Ok(outcome))
}

/// Writes metrics.parquet and plots/ of the run in `folder`, all of whose rounds come to `summary`. The
/// caller keeps other processes out of the folder: the run or its base station still lives.
pub fn show(folder: &Path, summary: &Summary) -> Result<(), ShowError> {
    let metrics = folder.join("metrics.jsonl");
    write_parquet(&metrics, &folder.join("metrics.parquet"))?;
    let plots = Folder::open(folder).and_then(|folder| folder.subfolder("plots"));
    let plots = plots.map_err(FileError::on("write plots to", folder)).map_err(RunError::from)?;
    let records = read_metrics(&metrics).map_err(RunError::from)?;
    let initial_sigma = read_experiment(folder)?.initial_sigma();
    plot_run(&records, initial_sigma, &plots)?;
    if let Some(matrix) = &summary.confusion {
        plot_classes(matrix, &plots)?;
    }
    if let Some(devices) = &summary.device_accuracy {
        plot_devices(devices, &plots)?;
    }
    Ok(())
}
