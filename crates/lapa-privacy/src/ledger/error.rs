//! Errors of the ledger.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Error, ErrorCode};

use super::{BUSY_TIMEOUT, Repeat};
use crate::sampler::EntropyError;

/// Error of the ledger. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// There is no such file.
    #[error("{}: no such ledger", .0.display())]
    Missing(PathBuf),
    /// The file is something else.
    #[error("{}: not a ledger", path.display())]
    NotALedger {
        /// The file.
        path: PathBuf,
    },
    /// A folder, a pipe or the like.
    #[error("{}: not a regular file, so it cannot be a ledger", .0.display())]
    NotAFile(PathBuf),
    /// The file is empty, which a ledger never is.
    #[error(
        "{}: the file is empty, so the spent budget is unknown: restore the newest copy of the \
         ledger, or remove the file if it never was one",
        path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A write-ahead log without its ledger.
    #[error(
        "{}: the ledger is missing, but its log {} is still there: restore the ledger, or move its \
         log away",
        path.display(),
        log.display()
    )]
    OnlyLog {
        /// The file that is missing.
        path: PathBuf,
        /// Its log.
        log: PathBuf,
    },
    /// The file is no longer the one that was opened.
    #[error(
        "{}: the ledger was moved, removed, emptied or replaced during use, so nothing more is \
         released: restore it with its log, then continue",
        path.display()
    )]
    Moved {
        /// The file.
        path: PathBuf,
    },
    /// The ledger was written by another version of this program.
    #[error(
        "{}: the ledger has version {found}, but this program reads version {known}: use the program \
         that wrote it",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that can be read.
        known: i64,
    },
    /// The file is damaged, or something else has written to it.
    #[error(
        "{}: the ledger is damaged: {detail}. The spent budget cannot be read from it: restore its \
         newest intact copy",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        detail: String,
    },
    /// Another process kept the ledger locked.
    #[error(
        "{}: another process locked the ledger for more than {} seconds",
        path.display(),
        BUSY_TIMEOUT.as_secs()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The file may not be written.
    #[error("{}: the ledger is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The place cannot hold a write-ahead log, so a crash could lose a release.
    #[error(
        "{}: a ledger needs a file system with write-ahead logs; here only mode \"{mode}\" works",
        path.display()
    )]
    NotDurable {
        /// The file.
        path: PathBuf,
        /// The journal mode SQLite fell back to.
        mode: String,
    },
    /// SQLite failed otherwise, for example because the disk is full.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The operating system gave no randomness for the key of a new ledger.
    #[error("{}: {source}", path.display())]
    Entropy {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: EntropyError,
    },
    /// A number is out of its range.
    #[error("{name} = {value}: expected {allowed}")]
    Parameter {
        /// Name of the number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Allowed values.
        allowed: &'static str,
    },
    /// A device is named twice in one call.
    #[error("device {device} is listed twice: expected once per call")]
    Twice {
        /// The device.
        device: u32,
    },
    /// The data set is recorded with another partition, so that budgets per device would no longer
    /// cover the records they were declared for.
    #[error(
        "data {data} is recorded with partition {recorded}, not {given}: a device's budget holds only \
         for the records that the device had"
    )]
    Partition {
        /// The data set.
        data: String,
        /// The partition in the ledger.
        recorded: String,
        /// The partition of this run.
        given: String,
    },
    /// The spending of a device was counted in another way.
    #[error(
        "device {device} of data {data} was declared with {recorded}, but this run declares {given}: \
         the kind of filter and delta must stay the same (they follow from privacy.delta, \
         allocator, sampling, adjacency and noise)"
    )]
    OtherFilter {
        /// The data set.
        data: String,
        /// The device.
        device: u32,
        /// Filter kind and δ in the ledger.
        recorded: String,
        /// Filter kind and δ of this run.
        given: String,
    },
    /// A resumed run is not the run that was begun.
    #[error("run {run} began with {recorded}, not with {given}: a resumed run must not change")]
    Resumed {
        /// The run.
        run: String,
        /// Its declaration at its begin.
        recorded: String,
        /// Its declaration at its resumption.
        given: String,
    },
    /// The run was never begun.
    #[error("run {0} is not in this ledger: begin the run before its first round")]
    NotBegun(String),
    /// The run was begun without this device.
    #[error("run {run} began without device {device}")]
    UnknownDevice {
        /// The run.
        run: String,
        /// The device.
        device: u32,
    },
    /// The run's noise cannot change its source.
    #[error("run {run} began with {recorded} for repeated rounds, not with {given}")]
    Repeat {
        /// The run.
        run: String,
        /// Rule at its begin.
        recorded: Repeat,
        /// The requested rule.
        given: Repeat,
    },
    /// A repeated round would release something else under the same key.
    #[error(
        "round {round} of run {run}, device {device}: recorded with {recorded} but repeated with \
         {given}: a repeated release must be identical"
    )]
    Conflict {
        /// The run.
        run: String,
        /// The round.
        round: u32,
        /// The device.
        device: u32,
        /// The request in the ledger, and what came of it.
        recorded: String,
        /// The request of the repeat.
        given: String,
    },
    /// A release costs more than is left.
    #[error(
        "round {round} of run {run}, device {device}: the release costs {cost}, but only {left} is left"
    )]
    Overspent {
        /// The run.
        run: String,
        /// The round.
        round: u32,
        /// The device.
        device: u32,
        /// Its cost.
        cost: f64,
        /// Rest of the budget.
        left: f64,
    },
    /// Something without noise was given a finite cost.
    #[error("{what} has no noise, so its cost must be infinite, not {cost}")]
    NonPrivate {
        /// Description of the release.
        what: String,
        /// Its cost.
        cost: f64,
    },
    /// The event has a number that is not finite.
    #[error("the event cannot be recorded because it has a number that is not finite: {0}")]
    Unrecordable(String),
}

/// Gives SQLite's errors the path of the ledger, and names to those a user can do something about.
pub(super) trait At<T> {
    fn at(self, path: &Path) -> Result<T, LedgerError>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Result<T, LedgerError> {
        self.map_err(|source| {
            let path = path.to_path_buf();
            match source.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => LedgerError::NotALedger { path },
                Some(ErrorCode::DatabaseBusy) => LedgerError::Busy { path },
                Some(ErrorCode::ReadOnly) => LedgerError::ReadOnly { path },
                code if code == Some(ErrorCode::DatabaseCorrupt) || is_strange(&source) => {
                    LedgerError::Corrupt { path, detail: source.to_string() }
                }
                _ => LedgerError::Sqlite { path, source },
            }
        })
    }
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, LedgerError> {
        self.map_err(|source| LedgerError::Io { path: path.to_path_buf(), source })
    }
}

/// A value of a type or size that no ledger has.
fn is_strange(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..)
            | Error::QueryReturnedNoRows
    )
}
