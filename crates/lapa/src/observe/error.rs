//! Errors of a run's files.

use std::io;
use std::path::{Path, PathBuf};

/// A metrics file that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The file system refused.
    #[error("{}: cannot {action} the file", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The action.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("{}, line {line}: not a valid record", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The mistake.
        source: serde_json::Error,
    },
    /// A line that no run writes, or a record that cannot be of this run.
    #[error("{}, line {line}: {what}", path.display())]
    Impossible {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The value, and what is allowed.
        what: String,
    },
    /// A record holds NaN.
    #[error(
        "{}: cannot record round {round}: a value is not a number, so training has diverged",
        path.display()
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// The round.
        round: u32,
        /// The refused value.
        source: serde_json::Error,
    },
    /// The file to resume lost its end.
    #[error("{}: the file has {found} bytes but the checkpoint expects at least {wanted}", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// The length it must have.
        wanted: u64,
    },
    /// The file to resume is not the one that the checkpoint was made with.
    #[error("{}: byte {len}, where the checkpoint continues, is not the start of a line", path.display())]
    InsideLine {
        /// The file.
        path: PathBuf,
        /// The expected length.
        len: u64,
    },
}

impl ObserveError {
    /// A line that would fill the memory.
    pub(super) fn long(path: &Path, line: usize) -> Self {
        let what = format!(
            "longer than {} bytes, the limit for a round; with very many devices use \
             observe.devices = \"summary\"",
            super::metrics::MOST_BYTES
        );
        Self::Impossible { path: path.into(), line, what }
    }

    pub(super) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.into(), action, source }
    }
}

/// A listener broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;
