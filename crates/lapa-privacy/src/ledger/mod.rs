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
//! use lapa_privacy::ledger::{DataKey, DeclaredBudget, Ledger, LedgerError, Repeat, Request};
//!
//! let mut ledger = Ledger::in_memory()?;
//! let data = DataKey { data: "hash of the data".into(), partition: "hash of the deal".into() };
//! let (epsilon, capacity) = (8.0, f64::INFINITY);
//! let budget = DeclaredBudget { kind: "\"none\"".into(), epsilon, delta: 1e-5, capacity };
//! ledger.begin_run("run", &data, &[(0, budget)])?;
//! let requests = [Request { device: 0, cost: f64::INFINITY }];
//! let offers = ledger.offer("run", 1, Repeat::Replay, 0.0, &requests)?;
//! let releases = [(Event::NonPrivate { what: "labels".into() }, f64::INFINITY)];
//! let recorded = offers.record(releases)?;
//! assert_eq!(recorded[0].as_ref().map(|recorded| recorded.cost()), Some(f64::INFINITY));
//! # Ok::<_, LedgerError>(())
//! ```

mod begin;
mod check;
mod error;
mod place;
mod query;
mod record;
mod schema;
mod seal;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::Rng;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tempfile::TempDir;

pub use crate::filter::left_of;
pub use crate::rounding::add_up;
pub use error::LedgerError;
pub use query::{Declaration, Entry};
pub use record::{Offers, Recorded};

use crate::sampler::os_stream;
use error::At;
use place::Place;
use seal::KEY_BYTES;

/// Time that a process waits for another one's round.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between attempts where SQLite does not wait by itself.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// SQLite's name of a database without a file.
const MEMORY: &str = ":memory:";

/// A record of releases in a file.
#[derive(Debug)]
pub struct Ledger {
    conn: Connection,
    path: PathBuf,
    /// The place it must stay in; `None` in memory and for reading.
    place: Option<Place>,
    /// The copy that is read, where the ledger itself cannot be.
    _copy: Option<TempDir>,
}

/// The data that budgets are for. Both are opaque here; names that follow from private data are made
/// by [`Ledger::keyed_digest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataKey {
    /// Name of the data set.
    pub data: String,
    /// Name of who holds which records.
    pub partition: String,
}

/// A device's budget, declared before the run's first release.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredBudget {
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

/// Rule for recording a round again, after a crash. Fixed for a run by its first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A seeded simulation makes the same release again, which costs nothing more. The run's name
    /// must then stand for all that decides a release: seed, data, configuration, program.
    Replay,
    /// Noise from the operating system makes a new release, which is charged again.
    ChargeAgain,
}

/// A device's request in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The device.
    pub device: u32,
    /// The part of its budget, in the filter's currency.
    pub cost: f64,
}

impl Ledger {
    /// Opens a ledger, or makes one where there is no file. All that it holds is verified, and
    /// damage is refused.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        if path == Path::new(MEMORY) || path == Path::new("") {
            return Err(LedgerError::NotDurable { path: path.into(), mode: "memory".into() });
        }
        if !place::is_there(path)? {
            place::create(path, |partial| {
                let mut new = Self::connect(path, partial, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                schema::create(&mut new.conn, path, new_key(path)?)?;
                schema::write_ahead(&new.conn, path)
            })?;
        }
        let mut ledger = Self::connect(path, path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // SQLite opens a file that it may not write for reading only.
        if ledger.conn.is_readonly("main").at(path)? {
            return Err(LedgerError::ReadOnly { path: path.to_path_buf() });
        }
        schema::identify(&ledger.conn, path)?;
        schema::write_ahead(&ledger.conn, path)?;
        ledger.place = Some(Place::of(path)?);
        check::check(&ledger.conn, path)?;
        ledger.expect_in_place()?;
        Ok(ledger)
    }

    /// Opens a ledger to read what was spent, also where nothing can be written.
    pub fn open_read_only(path: &Path) -> Result<Self, LedgerError> {
        if !place::is_there(path)? {
            return Err(LedgerError::Missing(path.to_path_buf()));
        }
        let read = |from: &Path| {
            let ledger = Self::connect(path, from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            check::check(&ledger.conn, path)?;
            Ok(ledger)
        };
        match read(path) {
            Err(error) if cannot_write_beside(&error) => {
                let (folder, copy) = place::copy(path)?;
                Ok(Self { _copy: Some(folder), ..read(&copy)? })
            }
            opened => opened,
        }
    }

    /// A ledger that is gone with the process, for simulations without files.
    pub fn in_memory() -> Result<Self, LedgerError> {
        let path = Path::new(MEMORY);
        let mut ledger = Self::connect(path, path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::create(&mut ledger.conn, path, new_key(path)?)?;
        Ok(ledger)
    }

    /// The ledger that is called `path`, read from the file `from`.
    fn connect(path: &Path, from: &Path, flags: OpenFlags) -> Result<Self, LedgerError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(from, flags).at(path)?;
        conn.busy_timeout(BUSY_TIMEOUT).at(path)?;
        conn.set_prepared_statement_cache_capacity(32);
        for (pragma, value) in [
            ("synchronous", "FULL"),
            // On macOS a plain sync stops at the drive's cache.
            ("fullfsync", "ON"),
            ("checkpoint_fullfsync", "ON"),
            ("foreign_keys", "ON"),
            ("trusted_schema", "OFF"),
        ] {
            conn.pragma_update(None, pragma, value).at(path)?;
        }
        Ok(Self { conn, path: path.to_path_buf(), place: None, _copy: None })
    }

    /// Refuses when the file was moved, removed, emptied or replaced since it was opened.
    fn expect_in_place(&self) -> Result<(), LedgerError> {
        self.place.as_ref().map_or(Ok(()), |place| place.expect(&self.path))
    }

    /// A digest under the ledger's key (HMAC-SHA256), in hexadecimal: the same for the same bytes on
    /// this ledger, and without the ledger no test of a guess at them.
    pub fn keyed_digest(&self, bytes: &[u8]) -> Result<String, LedgerError> {
        let key: [u8; KEY_BYTES] =
            self.conn.query_row("SELECT key FROM secret", [], |row| row.get(0)).at(&self.path)?;
        Ok(seal::hmac(&key, bytes))
    }

    /// True if the ledger is gone with the process.
    pub fn is_in_memory(&self) -> bool {
        self.path == Path::new(MEMORY)
    }

    /// Path of the ledger.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn new_key(path: &Path) -> Result<[u8; KEY_BYTES], LedgerError> {
    let mut key = [0; KEY_BYTES];
    let refused = |source| LedgerError::Entropy { path: path.to_path_buf(), source };
    os_stream().map_err(refused)?.fill_bytes(&mut key);
    Ok(key)
}

/// SQLite wants to write beside a ledger even to read it.
fn cannot_write_beside(error: &LedgerError) -> bool {
    match error {
        LedgerError::ReadOnly { .. } => true,
        LedgerError::Sqlite { source, .. } => {
            source.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        }
        _ => false,
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

impl fmt::Display for DeclaredBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, epsilon, delta, capacity } = self;
        write!(f, "kind {kind}, epsilon {epsilon}, delta {delta:e} and capacity {capacity}")
    }
}
