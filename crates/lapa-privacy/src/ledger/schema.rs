//! The tables, and how a file is known to be a ledger.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior};

use super::error::{At, LedgerError};
use super::{BUSY_TIMEOUT, RETRY_PAUSE};

/// "lapa" in ASCII: tells a ledger from other SQLite files.
const APPLICATION_ID: i64 = 0x6c61_7061;

/// Version of the tables below.
const VERSION: i64 = 2;

/// `account.spent` is the sum of the costs in `record` over all runs, rounded up at every step.
/// The triggers hold what the ledger promises even against a mistake in this program.
const TABLES: &str = "
CREATE TABLE data (
    data      TEXT NOT NULL PRIMARY KEY,
    partition TEXT NOT NULL
) STRICT;

CREATE TABLE account (
    data   TEXT    NOT NULL REFERENCES data,
    device INTEGER NOT NULL,
    kind   TEXT    NOT NULL,
    delta  REAL    NOT NULL,
    spent  REAL    NOT NULL CHECK (spent >= 0),
    PRIMARY KEY (data, device)
) STRICT;

CREATE TABLE run (
    run    TEXT NOT NULL PRIMARY KEY,
    data   TEXT NOT NULL REFERENCES data,
    repeat TEXT CHECK (repeat IN ('replay', 'charge-again'))
) STRICT;

CREATE TABLE declared (
    run        TEXT    NOT NULL REFERENCES run,
    device     INTEGER NOT NULL,
    data       TEXT    NOT NULL,
    epsilon    REAL    NOT NULL,
    capacity   REAL    NOT NULL,
    start_left REAL    NOT NULL CHECK (start_left >= 0),
    PRIMARY KEY (run, device),
    FOREIGN KEY (data, device) REFERENCES account
) STRICT;

CREATE TABLE record (
    id      INTEGER PRIMARY KEY,
    run     TEXT    NOT NULL,
    device  INTEGER NOT NULL,
    round   INTEGER NOT NULL CHECK (round >= 0),
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    asked   REAL    NOT NULL CHECK (asked >= 0),
    share   REAL    CHECK (share > 0 AND share <= asked),
    cost    REAL    CHECK (cost >= 0),
    event   TEXT,
    UNIQUE (run, device, round, attempt),
    FOREIGN KEY (run, device) REFERENCES declared,
    CHECK ((share IS NULL) = (event IS NULL) AND (cost IS NULL) = (event IS NULL))
) STRICT;

CREATE TRIGGER spent_never_falls BEFORE UPDATE ON account WHEN NEW.spent < OLD.spent
BEGIN SELECT RAISE(ABORT, 'what was spent cannot fall'); END;
CREATE TRIGGER accounts_are_kept BEFORE DELETE ON account
BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;
CREATE TRIGGER records_are_kept BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'records are never deleted'); END;
CREATE TRIGGER records_do_not_change BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'records never change'); END;
";

/// What a file is.
#[derive(PartialEq)]
enum Identity {
    Ledger,
    /// A database without tables: new, or left by a crash before the tables were made.
    Empty,
}

/// Makes the tables in an empty file and turns the write-ahead log on; refuses anything else that
/// is not a ledger, before writing to it.
pub(super) fn prepare(conn: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    identify_at_once(conn, path)?;
    let mode = write_ahead(conn).at(path)?;
    if mode != "wal" {
        return Err(LedgerError::NotDurable { path: path.to_path_buf(), mode });
    }
    create(conn, path)?;
    check(conn, path)
}

/// Makes the tables unless they are there.
pub(super) fn create(conn: &mut Connection, path: &Path) -> Result<(), LedgerError> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).at(path)?;
    if identify(&tx, path)? == Identity::Empty {
        tx.execute_batch(TABLES).at(path)?;
        tx.pragma_update(None, "application_id", APPLICATION_ID).at(path)?;
        tx.pragma_update(None, "user_version", VERSION).at(path)?;
    }
    tx.commit().at(path)
}

/// Refuses anything but a whole ledger.
pub(super) fn check(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    if identify_at_once(conn, path)? == Identity::Empty {
        return Err(LedgerError::NotALedger { path: path.to_path_buf() });
    }
    let state: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).at(path)?;
    match state.as_str() {
        "ok" => Ok(()),
        _ => Err(LedgerError::Corrupt { path: path.to_path_buf(), detail: state }),
    }
}

/// [`identify`] in one transaction: another process may be making the ledger between two reads.
fn identify_at_once(conn: &Connection, path: &Path) -> Result<Identity, LedgerError> {
    let tx = conn.unchecked_transaction().at(path)?;
    let identity = identify(&tx, path)?;
    tx.commit().at(path)?;
    Ok(identity)
}

fn identify(conn: &Connection, path: &Path) -> Result<Identity, LedgerError> {
    let number = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).at(path);
    let id = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let path = PathBuf::from(path);
    if id == APPLICATION_ID {
        return match found == VERSION {
            true => Ok(Identity::Ledger),
            false => Err(LedgerError::Version { path, found, known: VERSION }),
        };
    }
    if id == 0 && found == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0 {
        return Ok(Identity::Empty);
    }
    Err(LedgerError::NotALedger { path })
}

/// Turns the write-ahead log on. SQLite does not wait for a lock here, so that two processes that
/// make one ledger at the same time would fail: waits instead of it.
fn write_ahead(conn: &Connection) -> rusqlite::Result<String> {
    let begun = Instant::now();
    loop {
        match conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(RETRY_PAUSE);
            }
            done => return done,
        }
    }
}
