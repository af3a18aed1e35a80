//! Files: reopening, other files, damage.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use super::*;

fn write(path: &Path) {
    let mut ledger = Ledger::open(path).unwrap();
    ledger.begin_run("run", &data(), &[(0, budget(1.0)), (1, budget(1.0))]).unwrap();
    for at in 1..=20 {
        let requests = [request(0, 1.0 / 3.0 / f64::from(at)), request(1, 0.01)];
        round(&mut ledger, ("run", at), Repeat::Replay, &requests).unwrap();
    }
}

#[test]
fn a_ledger_is_the_same_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    write(&path);
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.path(), path);
    let before = (ledger.releases().unwrap(), ledger.declarations().unwrap());
    assert_eq!(before.0.len(), 20 + 11); // 1/3·(1 + 1/2 + … + 1/11) > 1
    drop(ledger);
    write(&path); // All of it replayed.
    for ledger in [Ledger::open(&path).unwrap(), Ledger::open_read_only(&path).unwrap()] {
        assert_eq!((ledger.releases().unwrap(), ledger.declarations().unwrap()), before);
    }
    assert_eq!(before.0[0].granted, 1.0 / 3.0);
}

#[test]
fn a_read_only_ledger_reads_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let missing = Ledger::open_read_only(&path).unwrap_err();
    assert!(matches!(missing, LedgerError::Missing { .. }), "{missing}");
    assert!(!path.exists());

    // While another process writes, too.
    let mut writer = Ledger::open(&path).unwrap();
    writer.begin_run("run", &data(), &[(0, budget(1.0))]).unwrap();
    let mut reader = Ledger::open_read_only(&path).unwrap();
    round(&mut writer, ("run", 1), Repeat::Replay, &[request(0, 0.5)]).unwrap();
    assert_eq!(reader.spent("data", 0).unwrap(), 0.5);
    let error = reader.begin_run("other", &data(), &[(0, budget(1.0))]).unwrap_err();
    assert!(matches!(error, LedgerError::ReadOnly { path: at } if at == path));
    drop((writer, reader));
    assert_eq!(Ledger::open_read_only(&path).unwrap().releases().unwrap().len(), 1);
}

#[test]
fn several_may_make_a_ledger_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..5 {
        let path = folder.path().join(file.to_string());
        let gate = Barrier::new(8);
        thread::scope(|scope| {
            for run in 0..8 {
                let (path, gate) = (&path, &gate);
                scope.spawn(move || {
                    gate.wait();
                    let mut ledger = Ledger::open(path).unwrap();
                    ledger.begin_run(&run.to_string(), &data(), &[(0, budget(1.0))]).unwrap();
                });
            }
        });
        assert_eq!(Ledger::open_read_only(&path).unwrap().declarations().unwrap().len(), 8);
    }
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "what I spent this year\n".repeat(500)).unwrap();
    let made = |name: &str, sql: &str| {
        let path = folder.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        path
    };
    let database = made("other.sqlite", "CREATE TABLE t (x)");
    let marked = made("marked.sqlite", "PRAGMA application_id = 7");
    for path in [text, database, marked] {
        let before = fs::read(&path).unwrap();
        for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(&error, LedgerError::NotALedger { path: at } if *at == path));
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_ledger_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    write(&path);
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 4).unwrap();
    drop(other);
    for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
        let error = opened.unwrap_err();
        assert!(matches!(error, LedgerError::Version { found: 4, known: 5, .. }));
        assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
        assert!(error.to_string().contains("use the program that wrote it"), "{error}");
    }
}

#[test]
fn damage_is_noticed_on_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    write(&path);
    let whole = fs::read(&path).unwrap();
    let page = 4096;
    assert!(whole.len() > 8 * page);
    // Every page but the first, which has the identity, overwritten in turn; and the end cut off.
    let damaged = (1..whole.len() / page).map(|at| {
        let mut bytes = whole.clone();
        bytes[at * page..(at + 1) * page].fill(0xa5);
        bytes
    });
    for bytes in damaged.chain([whole[..whole.len() - page].to_vec()]) {
        fs::write(&path, bytes).unwrap();
        for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
            let error = opened.unwrap_err();
            assert!(
                matches!(&error, LedgerError::Corrupt { path: at, .. } if *at == path),
                "{error}"
            );
        }
    }
    // Cut off within the first page.
    for bytes in [2, 50, 511, 512, 4095] {
        fs::write(&path, &whole[..bytes]).unwrap();
        let error = Ledger::open(&path).unwrap_err();
        let refused = matches!(error, LedgerError::Corrupt { .. } | LedgerError::NotALedger { .. });
        assert!(refused, "{bytes}: {error}");
    }
}

#[test]
fn what_would_not_last_is_refused() {
    // SQLite takes these names for databases in memory and in a temporary file.
    for name in [":memory:", ""] {
        let error = Ledger::open(Path::new(name)).unwrap_err();
        assert!(matches!(error, LedgerError::NotDurable { .. }), "{name}: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), &folder.path().join("missing").join("ledger")] {
        let error = Ledger::open(path).unwrap_err();
        assert!(matches!(error, LedgerError::NotAFile { .. } | LedgerError::Io { .. }), "{error}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
}
