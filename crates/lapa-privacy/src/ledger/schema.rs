//! The tables, and how a file is known to be a ledger.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::Connection;

use super::error::{At, LedgerError};
use super::seal::{KEY_BYTES, Seal};
use super::{BUSY_TIMEOUT, RETRY_PAUSE};

/// "lapa" in ASCII: tells a ledger from other SQLite files.
const APPLICATION_ID: i64 = 0x6c61_7061;

/// Version of the tables below.
const VERSION: i64 = 5;

/// `account.spent` is the sum of the costs in `record` over all runs, rounded up at every step; a
/// device without a release has no row there. `run.earlier` is the last record of the time before the
/// run. A row of `declared` is for all devices from `first` to `last`, so that a million equal budgets
/// are one. The triggers hold what the ledger promises even against a mistake in this program.
const TABLES: &str = "
CREATE TABLE secret (
    key BLOB NOT NULL CHECK (length(key) = 32)
) STRICT;

CREATE TABLE seal (
    digest BLOB NOT NULL CHECK (length(digest) = 32)
) STRICT;

CREATE TABLE data (
    data      TEXT NOT NULL PRIMARY KEY,
    partition TEXT NOT NULL
) STRICT;

CREATE TABLE account (
    data   TEXT    NOT NULL REFERENCES data,
    device INTEGER NOT NULL,
    spent  REAL    NOT NULL CHECK (spent >= 0),
    PRIMARY KEY (data, device)
) STRICT;

CREATE TABLE run (
    run     TEXT    NOT NULL PRIMARY KEY,
    data    TEXT    NOT NULL REFERENCES data,
    earlier INTEGER NOT NULL,
    repeat  TEXT    CHECK (repeat IN ('replay', 'charge-again'))
) STRICT;

CREATE TABLE declared (
    run      TEXT    NOT NULL REFERENCES run,
    first    INTEGER NOT NULL CHECK (first >= 0),
    last     INTEGER NOT NULL CHECK (last >= first),
    kind     TEXT    NOT NULL,
    epsilon  REAL    NOT NULL,
    delta    REAL    NOT NULL,
    capacity REAL    NOT NULL,
    PRIMARY KEY (run, first)
) STRICT;

CREATE TABLE record (
    id      INTEGER PRIMARY KEY,
    run     TEXT    NOT NULL REFERENCES run,
    device  INTEGER NOT NULL,
    round   INTEGER NOT NULL CHECK (round >= 0),
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    asked   REAL    NOT NULL CHECK (asked >= 0),
    granted REAL    CHECK (granted > 0 AND granted <= asked),
    cost    REAL    CHECK (cost >= 0),
    event   TEXT,
    UNIQUE (run, device, round, attempt),
    CHECK ((granted IS NULL) = (event IS NULL) AND (cost IS NULL) = (event IS NULL))
) STRICT;

CREATE TRIGGER records_are_declared BEFORE INSERT ON record WHEN NOT coalesce(
    (SELECT last FROM declared WHERE run = NEW.run AND first <= NEW.device
     ORDER BY first DESC LIMIT 1) >= NEW.device, FALSE)
BEGIN SELECT RAISE(ABORT, 'only declared devices have records'); END;
CREATE TRIGGER spent_never_falls BEFORE UPDATE ON account WHEN NEW.spent < OLD.spent
BEGIN SELECT RAISE(ABORT, 'what was spent cannot fall'); END;
CREATE TRIGGER accounts_are_kept BEFORE DELETE ON account
BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;
CREATE TRIGGER records_are_kept BEFORE DELETE ON record
BEGIN SELECT RAISE(ABORT, 'records are never deleted'); END;
CREATE TRIGGER records_do_not_change BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'records never change'); END;
";

/// Makes the tables of a new ledger, with its key.
pub(super) fn create(
    conn: &mut Connection,
    path: &Path,
    key: [u8; KEY_BYTES],
) -> Result<(), LedgerError> {
    let tx = conn.transaction().at(path)?;
    tx.execute_batch(TABLES).at(path)?;
    tx.pragma_update(None, "application_id", APPLICATION_ID).at(path)?;
    tx.pragma_update(None, "user_version", VERSION).at(path)?;
    Seal::create(&tx, key).at(path)?;
    tx.commit().at(path)
}

/// Refuses anything but a ledger of this version, by the tables and triggers that it has. Nothing of
/// the file is executed before this.
pub(super) fn identify(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let number = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).at(path);
    if number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(LedgerError::NotALedger { path: path.into() });
    }
    let found = number("PRAGMA user_version")?;
    if found != VERSION {
        return Err(LedgerError::Version { path: path.into(), found, known: VERSION });
    }
    let model = Connection::open_in_memory().at(path)?;
    model.execute_batch(TABLES).at(path)?;
    let (known, found) = (parts(&model).at(path)?, parts(conn).at(path)?);
    match known.symmetric_difference(&found).next() {
        None => Ok(()),
        Some(part) => {
            let [kind, name, ..] = part;
            let what = if known.contains(part) { "lacks" } else { "has an unknown" };
            let detail = format!("it {what} {kind} {name}, so another program may have changed it");
            Err(LedgerError::Corrupt { path: PathBuf::from(path), detail })
        }
    }
}

/// Type, name, table and definition of all that a database is made of.
fn parts(conn: &Connection) -> rusqlite::Result<BTreeSet<[String; 4]>> {
    let sql = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema";
    let mut statement = conn.prepare(sql)?;
    let rows =
        statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))?;
    rows.collect()
}

/// Turns the write-ahead log on. SQLite does not wait for a lock here, so that two processes that
/// make one ledger at the same time would fail: waits instead of it.
#[expect(clippy::disallowed_methods, reason = "the wait for a lock has an end")]
pub(super) fn write_ahead(conn: &Connection, path: &Path) -> Result<(), LedgerError> {
    let begun = Instant::now();
    let mode: String = loop {
        match conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && begun.elapsed() < BUSY_TIMEOUT =>
            {
                std::thread::sleep(RETRY_PAUSE);
            }
            done => break done.at(path)?,
        }
    };
    match mode.as_str() {
        "wal" => Ok(()),
        _ => Err(LedgerError::NotDurable { path: path.to_path_buf(), mode }),
    }
}
