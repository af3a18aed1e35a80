//! Content that was changed by accident, or by another program.

use std::fs;
use std::path::Path;

use lapa_privacy::ledger::{Declaration, Entry};
use rusqlite::Connection;

use super::*;

/// Two runs of three devices on one data set, with refusals and releases that differ.
fn write(path: &Path) -> (Vec<Entry>, Vec<Declaration>) {
    let mut ledger = Ledger::open(path).unwrap();
    for run in ["first", "second"] {
        let devices = [0, 1, 2].map(|device| (device, budget(1.0)));
        ledger.begin_run(run, &data(), &devices).unwrap();
        for at in 1..=20 {
            let requests =
                [0, 1, 2].map(|device| request(device, 0.09 / f64::from(1 + (at + device) % 7)));
            round(&mut ledger, (run, at), Repeat::ChargeAgain, &requests).unwrap();
        }
    }
    (ledger.releases().unwrap(), ledger.declarations().unwrap())
}

/// A generator for places to damage; any would do.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) as usize
}

#[test]
fn a_flipped_bit_is_refused_or_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let written = write(&path);
    let whole = fs::read(&path).unwrap();
    let used: Vec<usize> = (0..whole.len()).filter(|&at| whole[at] != 0).collect();
    let flips = if std::env::var_os("LAPA_TEST_LONG").is_some() { 20_000 } else { 400 };
    let (mut state, mut refused) = (1, 0);
    for _ in 0..flips {
        let (at, bit) = (used[next(&mut state) % used.len()], next(&mut state) % 8);
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        fs::write(&path, bytes).unwrap();
        match Ledger::open_read_only(&path) {
            Err(error) => {
                assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
                refused += 1;
            }
            Ok(ledger) => {
                let read = (ledger.releases().unwrap(), ledger.declarations().unwrap());
                assert!(read == written, "byte {at}, bit {bit}");
            }
        }
        for name in ["ledger-wal", "ledger-shm"] {
            let _ = fs::remove_file(folder.path().join(name));
        }
    }
    // The rest is in free space, or in numbers that SQLite does not need.
    assert!(refused > flips / 2, "{refused} of {flips}");
}

#[test]
fn other_hands_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    write(&path);
    let whole = fs::read(&path).unwrap();
    let free = "DROP TRIGGER spent_never_falls; DROP TRIGGER records_are_kept;
                DROP TRIGGER records_do_not_change; DROP TRIGGER accounts_are_kept;
                DROP TRIGGER records_are_declared;";
    let triggers: String = {
        let database = Connection::open(&path).unwrap();
        let sql = "SELECT group_concat(sql, ';') FROM sqlite_schema WHERE type = 'trigger'";
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let edited = |sql: &str| format!("{free} {sql}; {triggers}");
    let forever = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) ";
    let view = format!(
        "{free} ALTER TABLE record RENAME TO kept; CREATE VIEW record AS {forever}
         SELECT x AS id, '' AS run, 0 AS device, 1 AS round, 1 AS attempt, 1 AS asked, 1 AS granted,
         1 AS cost, '' AS event FROM n"
    );
    for sql in [
        "DROP TRIGGER spent_never_falls",
        "CREATE TRIGGER forget AFTER INSERT ON record BEGIN UPDATE declared SET delta = 0.5; END",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON record (cost)",
        &view,
        &edited("UPDATE account SET spent = spent / 2 WHERE device = 1"),
        &edited("DELETE FROM account WHERE device = 1"),
        &edited("UPDATE declared SET delta = 0.5"),
        &edited("UPDATE declared SET last = 1"),
        &edited("INSERT INTO account VALUES ('data', 9, 0.5)"),
        &edited("UPDATE record SET cost = 0 WHERE round = 7; UPDATE account SET spent = 0"),
        &edited("UPDATE record SET event = replace(event, '1.0', '9.0') WHERE device = 2"),
        &edited("UPDATE run SET earlier = 0"),
        &edited("UPDATE declared SET epsilon = 1"),
        &edited("UPDATE run SET repeat = 'replay'"),
        &edited("UPDATE secret SET key = zeroblob(32)"),
        &edited("UPDATE seal SET digest = zeroblob(32)"),
        &edited("DELETE FROM seal"),
        &edited("DELETE FROM record WHERE round = 20"),
        &edited("DELETE FROM record WHERE id = 1"),
        &edited("INSERT INTO data VALUES ('more', 'more')"),
    ] {
        fs::write(&path, &whole).unwrap();
        let database = Connection::open(&path).unwrap();
        database.execute_batch(sql).unwrap();
        drop(database);
        for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
            let error = opened.map(|_| sql).unwrap_err();
            assert!(matches!(error, LedgerError::Corrupt { .. }), "{sql}: {error}");
            let text = error.to_string();
            assert!(text.contains(path.to_str().unwrap()), "{text}");
            assert!(text.contains("restore its newest intact copy"), "{text}");
        }
    }
    fs::write(&path, &whole).unwrap();
    Ledger::open(&path).unwrap();
}
