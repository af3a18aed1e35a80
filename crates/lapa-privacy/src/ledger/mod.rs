//! A durable record of releases: what was released is known before its noise is drawn, whatever
//! happens to the process afterwards.
//!
//! One SQLite file holds the spending of any number of runs. Spending is kept by data set and
//! device, so that a second run on the same data starts from what the first has left, and two
//! processes on one ledger cannot overspend together. A budget is in the currency of the device's
//! filter, which the ledger does not know: it adds up costs, rounded up, and compares.
//!
//! ```
//! use lapa_privacy::Event;
//! use lapa_privacy::ledger::{DataKey, Grant, Ledger, LedgerError, Repeat, Request, Terms};
//!
//! let mut ledger = Ledger::in_memory()?;
//! let data = DataKey { data: "hash of the data".into(), partition: "hash of the deal".into() };
//! let terms = Terms { kind: "\"none\"".into(), epsilon: 8.0, delta: 1e-5, capacity: f64::INFINITY };
//! ledger.begin_run("run", &data, &[(0, terms)])?;
//! let requests = [Request { device: 0, share: f64::INFINITY }];
//! let grants = ledger.record_round("run", 1, Repeat::Replay, 0.0, &requests, &mut |_, _| {
//!     Ok::<_, LedgerError>((Event::NonPrivate { what: "labels".into() }, f64::INFINITY))
//! })?;
//! assert!(matches!(grants[0], Grant::Released { cost: f64::INFINITY, .. }));
//! # Ok::<_, LedgerError>(())
//! ```

mod begin;
mod error;
mod query;
mod record;
mod schema;
mod sum;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use crate::rounding::add_up;
pub use error::LedgerError;
pub use query::{Declared, Recorded};

use crate::Event;
use error::At;

/// How long a process waits for another one's round.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between attempts where SQLite does not wait by itself.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// What SQLite calls a database without a file.
const MEMORY: &str = ":memory:";

/// A record of releases in a file.
#[derive(Debug)]
pub struct Ledger {
    conn: Connection,
    path: PathBuf,
}

/// The data that budgets are for. Both are opaque here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataKey {
    /// Hash of the data set.
    pub data: String,
    /// Hash of who holds which records.
    pub partition: String,
}

/// What a device's filter was declared with, before the run's first release.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The kind of filter, as JSON; opaque here. Costs of different kinds do not add up.
    pub kind: String,
    /// ε
    pub epsilon: f64,
    /// δ
    pub delta: f64,
    /// The most that may be spent on the device's data over all runs, in the filter's currency; ∞
    /// enforces nothing.
    pub capacity: f64,
}

/// What it means to record a round again, after a crash. Fixed for a run by its first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A seeded simulation makes the same release again, which costs nothing more. The run's name
    /// must then stand for all that decides a release: seed, data, configuration, program.
    Replay,
    /// Noise from the operating system makes a new release, which is charged again.
    ChargeAgain,
}

/// What a device asks for in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The device.
    pub device: u32,
    /// The share of its budget, in the filter's currency.
    pub share: f64,
}

/// What a device got.
#[derive(Clone, Debug, PartialEq)]
pub enum Grant {
    /// The device may release `event`.
    Released {
        /// What was granted: what was asked for, or what is left.
        share: f64,
        /// What was charged.
        cost: f64,
        /// The release.
        event: Event,
        /// Whether less was granted than asked for.
        truncated: bool,
    },
    /// Less than the floor is left: the device must release nothing.
    Refused,
}

impl Ledger {
    /// Opens a ledger, or makes one where there is no file.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut ledger = Self::connect(path, flags)?;
        // SQLite opens a file that it may not write for reading only.
        if ledger.conn.is_readonly("main").at(path)? {
            return Err(LedgerError::ReadOnly { path: path.to_path_buf() });
        }
        schema::prepare(&mut ledger.conn, path)?;
        Ok(ledger)
    }

    /// Opens a ledger to read what was spent.
    pub fn open_read_only(path: &Path) -> Result<Self, LedgerError> {
        if !path.exists() {
            return Err(LedgerError::Missing { path: path.to_path_buf() });
        }
        let ledger = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::check(&ledger.conn, path)?;
        Ok(ledger)
    }

    /// A ledger that is gone with the process, for simulations without files.
    pub fn in_memory() -> Result<Self, LedgerError> {
        let path = Path::new(MEMORY);
        let mut ledger = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::create(&mut ledger.conn, path)?;
        Ok(ledger)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, LedgerError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags).at(path)?;
        conn.busy_timeout(BUSY_TIMEOUT).at(path)?;
        for (pragma, value) in [
            ("synchronous", "FULL"),
            // On macOS a plain sync stops at the drive's cache.
            ("fullfsync", "ON"),
            ("checkpoint_fullfsync", "ON"),
            ("foreign_keys", "ON"),
        ] {
            conn.pragma_update(None, pragma, value).at(path)?;
        }
        Ok(Self { conn, path: path.to_path_buf() })
    }

    /// Whether the ledger is gone with the process.
    pub fn is_in_memory(&self) -> bool {
        self.path == Path::new(MEMORY)
    }

    /// Where the ledger is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Repeat {
    fn from_name(name: &str) -> Option<Self> {
        [Self::Replay, Self::ChargeAgain].into_iter().find(|repeat| repeat.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::ChargeAgain => "charge-again",
        }
    }
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, epsilon, delta, capacity } = self;
        write!(f, "kind {kind}, epsilon {epsilon}, delta {delta:e} and capacity {capacity}")
    }
}
