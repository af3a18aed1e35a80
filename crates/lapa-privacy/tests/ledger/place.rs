//! Place of the file: its creation, that it stays there, and its permissions.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn begun(path: &Path) -> Ledger {
    let mut ledger = Ledger::open(path).unwrap();
    ledger.begin_run("run", &data(), &[(0, budget(1.0))]).unwrap();
    round(&mut ledger, ("run", 1), Repeat::Replay, &[request(0, 0.25)]).unwrap();
    ledger
}

/// Whoever has a file open can go on writing to it, and nobody else finds what is written.
#[cfg(unix)]
#[test]
fn a_ledger_that_does_not_stay_in_place_is_missed() {
    let away = |path: &Path, name: &str| fs::rename(path, path.with_file_name(name)).unwrap();
    type Move<'a> = &'a dyn Fn(&Path, &Path);
    let moves: [Move<'_>; 7] = [
        &|file, log| {
            away(file, "away");
            away(log, "away-wal");
        },
        &|file, _| away(file, "away"),
        &|file, _| fs::remove_file(file).unwrap(),
        &|file, _| fs::write(file, "").unwrap(),
        &|_, log| fs::remove_file(log).unwrap(),
        // A copy in its place, of the same bytes.
        &|file, _| {
            fs::copy(file, file.with_file_name("copy")).unwrap();
            fs::rename(file.with_file_name("copy"), file).unwrap();
        },
        &|file, log| {
            away(file, "away");
            away(log, "away-wal");
            begun(file);
        },
    ];
    for (which, act) in moves.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("ledger"), folder.path().join("ledger-wal"));
        let mut ledger = begun(&path);
        act(&path, &log);
        let mut drawn = false;
        let refused = record_round(
            &mut ledger,
            "run",
            2,
            Repeat::Replay,
            0.0,
            &[request(0, 0.25)],
            &mut |_, cost| {
                drawn = true;
                Ok::<_, LedgerError>((event(cost), cost))
            },
        );
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, LedgerError::Moved { path: at } if *at == path),
            "{which}: {error}"
        );
        assert!(!drawn, "{which}");
        let again = ledger.begin_run("other", &data(), &[(0, budget(1.0))]).unwrap_err();
        assert!(matches!(again, LedgerError::Moved { .. }), "{which}: {again}");
    }
}

/// SQLite keeps its files beside what a link leads to.
#[cfg(unix)]
#[test]
fn a_ledger_may_be_a_link_that_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [real, other, link] = ["real", "other", "link"].map(|name| folder.path().join(name));
    drop((begun(&real), begun(&other)));
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut ledger = Ledger::open(&link).unwrap();
    let mut ask = |at| round(&mut ledger, ("run", at), Repeat::Replay, &[request(0, 0.25)]);
    ask(2).unwrap();
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(matches!(ask(3), Err(LedgerError::Moved { .. })));
}

/// Moved in the very moment of the round: what was recorded is where nobody looks for it.
#[cfg(unix)]
#[test]
fn a_ledger_that_moves_during_a_round_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let mut ledger = begun(&path);
    let requests = [request(0, 0.25)];
    let granted =
        record_round(&mut ledger, "run", 2, Repeat::Replay, 0.0, &requests, &mut |_, cost| {
            fs::rename(&path, folder.path().join("away")).unwrap();
            Ok::<_, LedgerError>((event(cost), cost))
        });
    assert!(matches!(granted, Err(LedgerError::Moved { .. })), "{granted:?}");
    // Put back, it is as good as before.
    fs::rename(folder.path().join("away"), &path).unwrap();
    let again = round(&mut ledger, ("run", 3), Repeat::Replay, &requests).unwrap();
    assert_eq!(cost(&again[0]), 0.25);
}

#[cfg(unix)]
#[test]
fn a_new_ledger_is_whole_and_its_owner_s() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let ledger = begun(&path);
    assert_eq!(names(folder.path()), ["ledger", "ledger-shm", "ledger-wal"]);
    for name in names(folder.path()) {
        let mode = fs::metadata(folder.path().join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(ledger);
    assert_eq!(names(folder.path()), ["ledger"]);
}

#[test]
fn what_is_left_of_a_ledger_does_not_become_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    drop(begun(&path));
    fs::write(&path, "").unwrap();
    for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
        let error = opened.unwrap_err();
        assert!(matches!(&error, LedgerError::Empty { path: at } if *at == path), "{error}");
    }
    assert_eq!(fs::metadata(&path).unwrap().len(), 0);

    // Its log alone would be taken for that of the next file of this name.
    fs::remove_file(&path).unwrap();
    fs::write(folder.path().join("ledger-wal"), "frames").unwrap();
    let error = Ledger::open(&path).unwrap_err();
    assert!(matches!(error, LedgerError::OnlyLog { .. }), "{error}");
    assert_eq!(names(folder.path()), ["ledger-wal"]);
}

/// Opened like a file, a pipe without a writer keeps its reader for ever.
#[cfg(unix)]
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = |name: &str| -> PathBuf {
        let path = folder.path().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    };
    let path = pipe("pipe");
    let beside = folder.path().join("ledger");
    drop(begun(&beside));
    pipe("ledger-wal");
    for path in [path, beside] {
        for opened in [Ledger::open(&path), Ledger::open_read_only(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, LedgerError::NotAFile { .. }), "{error}");
        }
    }
}

/// A name tells nothing without the ledger, and is the same as long as the ledger is.
#[test]
fn names_are_those_of_one_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let name = |path: &Path, bytes: &[u8]| Ledger::open(path).unwrap().keyed_digest(bytes).unwrap();
    let first = name(&one, b"records");
    assert_eq!(first.len(), 64);
    assert_eq!(name(&one, b"records"), first);
    assert_ne!(name(&one, b"recordt"), first);
    assert_ne!(name(&two, b"records"), first);
}
