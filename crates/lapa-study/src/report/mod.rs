//! Pages that stand alone: text, tables and figures in one HTML file.
//!
//! [`run`] is the page of a finished run, made with [`lapa_report::page`]. [`tensorboard`] writes a run's
//! curves for TensorBoard.

pub mod accuracy;
mod crc32c;
mod markdown;
pub mod privacy;
pub mod run;
pub mod tensorboard;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lapa::atomic::write_atomically;
use lapa::blame::Blame;
use lapa::config::ConfigError;
use lapa::files::FileError;
use lapa::observe::ObserveError;
use lapa::run::RunError;
use lapa_report::plot::PlotError;

pub use lapa_report::page::{Badge, Entry, Page, Table};
pub use markdown::markdown;

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder is not that of a run, or damaged.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The metrics cannot be read.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A report is about a whole run.
    #[error(
        "{folder}: the run is not finished; finish it with `lapa run --resume {folder}` first",
        folder = .0.display()
    )]
    Unfinished(PathBuf),
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Blame for ReportError {
    fn is_usage(&self) -> bool {
        match self {
            Self::Run(error) => error.is_usage(),
            Self::Unfinished(_) => true,
            _ => false,
        }
    }

    fn config(&self) -> Option<&ConfigError> {
        match self {
            Self::Run(error) => error.config(),
            _ => None,
        }
    }
}

impl ReportError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| FileError::on(action, path)(source).into()
    }
}

/// Writes a whole file, or leaves what was there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    write_atomically(path, |file| file.write_all(bytes)).map_err(ReportError::io("write", path))
}
