//! Inside of the ledger: settings of the connection, guards of the tables, exact sums.

use std::time::Duration;

use proptest::prelude::*;
use rusqlite::Connection;

use super::*;
use crate::Event;
use crate::filter::left_of;

fn number(conn: &Connection, pragma: &str) -> i64 {
    conn.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
}

fn begun(ledger: &mut Ledger) {
    let data = DataKey { data: "data".into(), partition: "partition".into() };
    let budget =
        DeclaredBudget { kind: "\"gdp\"".into(), epsilon: 1.0, delta: 1e-5, capacity: 1.0 };
    ledger.begin_run("run", &data, &[(0, budget)]).unwrap();
}

#[test]
fn a_commit_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    for _ in 0..2 {
        let ledger = Ledger::open(&path).unwrap();
        let mode: String =
            ledger.conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        assert_eq!(number(&ledger.conn, "synchronous"), 2);
        assert_eq!(number(&ledger.conn, "foreign_keys"), 1);
        assert_eq!(number(&ledger.conn, "busy_timeout"), 10_000);
        assert_eq!(number(&ledger.conn, "application_id"), i64::from(u32::from_be_bytes(*b"lapa")));
        assert_eq!(number(&ledger.conn, "user_version"), 5);
        let loose: i64 = ledger
            .conn
            .query_row(
                "SELECT count(*) FROM pragma_table_list
                 WHERE schema = 'main' AND name NOT LIKE 'sqlite%' AND NOT strict",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(loose, 0);
    }
}

#[test]
fn a_locked_ledger_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    begun(&mut ledger);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    ledger.conn.busy_timeout(Duration::from_millis(1)).unwrap();
    let error = ledger.offer("run", 1, Repeat::Replay, 0.0, &[]).err().unwrap();
    assert!(matches!(&error, LedgerError::Busy { path: at } if *at == path), "{error:?}");
    assert!(error.to_string().contains("locked the ledger for more than 10 seconds"), "{error}");
    // Reading goes on meanwhile.
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.0);
}

/// Records that are only on the log count, or the figure would be too small.
#[test]
fn a_copy_has_what_is_on_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    begun(&mut ledger);
    let request = [Request { device: 0, cost: 0.5 }];
    let what = || Event::NonPrivate { what: String::new() };
    let sql = "UPDATE declared SET capacity = 9e999";
    assert!(ledger.conn.execute_batch(sql).is_ok());
    let offers = ledger.offer("run", 1, Repeat::Replay, 0.0, &request).unwrap();
    offers.record([(what(), f64::INFINITY)]).unwrap();
    let (_folder, copy) = place::copy(&path).unwrap();
    let copied = Ledger::connect(&path, &copy, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    assert_eq!(copied.spent("data", 0).unwrap(), f64::INFINITY);
    // As long as the copy has no log, it knows nothing of it.
    let (_folder, copy) = place::copy(&path).unwrap();
    std::fs::remove_file(copy.with_file_name("ledger-wal")).unwrap();
    let stale = Ledger::connect(&path, &copy, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    assert_eq!(stale.spent("data", 0).unwrap(), 0.0);
}

#[test]
fn the_tables_refuse_to_forget() {
    let mut ledger = Ledger::in_memory().unwrap();
    begun(&mut ledger);
    let conn = &ledger.conn;
    conn.execute_batch(
        "INSERT INTO account VALUES ('data', 0, 0.5);
         INSERT INTO record VALUES (NULL, 'run', 0, 1, 1, 0.5, 0.5, 0.5, '{}')",
    )
    .unwrap();
    for (sql, why) in [
        ("UPDATE account SET spent = 0.25", "cannot fall"),
        ("DELETE FROM account", "never deleted"),
        ("DELETE FROM record", "never deleted"),
        ("UPDATE record SET cost = 0", "never change"),
        ("INSERT INTO record VALUES (NULL, 'run', 9, 1, 1, 1, 1, 1, '{}')", "only declared"),
        ("INSERT INTO record VALUES (NULL, 'run', 0, 1, 1, 1, 1, 1, '{}')", "UNIQUE"),
        ("INSERT INTO record VALUES (NULL, 'run', 0, 2, 1, 1, 2, 1, '{}')", "CHECK"),
        ("INSERT INTO record VALUES (NULL, 'run', 0, 2, 1, 1, 1, NULL, '{}')", "CHECK"),
    ] {
        let error = conn.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains(why), "{sql}: {error}");
    }
}

#[test]
fn a_damaged_event_is_an_error() {
    let mut ledger = Ledger::in_memory().unwrap();
    begun(&mut ledger);
    let sql = "INSERT INTO record VALUES (NULL, 'run', 0, 1, 1, 0.5, 0.5, 0.5, '{}')";
    ledger.conn.execute_batch(sql).unwrap();
    assert!(matches!(ledger.releases(), Err(LedgerError::Corrupt { .. })));
    let request = [Request { device: 0, cost: 0.5 }];
    let again = ledger.offer("run", 1, Repeat::Replay, 0.0, &request);
    assert!(matches!(again, Err(LedgerError::Corrupt { .. })));
}

/// The exact value as a multiple of 2⁻⁹⁰.
fn exact(x: f64) -> i128 {
    let scaled = x * 2f64.powi(90);
    assert!(scaled.fract() == 0.0 && scaled.abs() < 2f64.powi(126));
    scaled as i128
}

#[test]
fn infinities_stay() {
    let inf = f64::INFINITY;
    assert_eq!(add_up(inf, inf), inf);
    assert_eq!(add_up(f64::MAX, f64::MAX), inf);
    for (capacity, spent, left) in
        [(inf, inf, inf), (inf, 1.0, inf), (1.0, inf, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0)]
    {
        assert_eq!(left_of(capacity, spent).to_bits(), f64::to_bits(left));
    }
}

proptest! {
    /// Against integers, which do not round.
    #[test]
    fn sums_are_rounded_up_by_less_than_one_place(
        a in 1e-9..1e3, b in 1e-9..1e3, capacity in 1e-9..1e3
    ) {
        let sum = add_up(a, b);
        prop_assert!(exact(sum) >= exact(a) + exact(b));
        prop_assert!(exact(sum.next_down()) < exact(a) + exact(b));

        let left = left_of(capacity, a);
        if a < capacity {
            prop_assert!(exact(left) <= exact(capacity) - exact(a));
            prop_assert!(exact(left.next_up()) > exact(capacity) - exact(a));
            prop_assert!(add_up(a, left) <= capacity);
        } else {
            prop_assert_eq!(left, 0.0);
        }
    }
}
