//! A process that is killed at any moment: what it released is in the ledger.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lapa_privacy::ledger::add_up;

use super::*;

const DEVICES: u32 = 3;
/// More than a process gets through.
const ROUNDS: u32 = 1_000_000;
/// Rounds that a resumed run goes back, as if to its last checkpoint.
const BACK: u32 = 4;

fn paths(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("ledger"), folder.join("releases"))
}

/// Round, device and σ of what was released. A line is one write, which a kill does not split.
fn released(path: &Path) -> Vec<(u32, u32, f64)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let [round, device, sigma] = words[..] else { panic!("{line}") };
        (round.parse().unwrap(), device.parse().unwrap(), sigma.parse().unwrap())
    };
    text.lines().map(line).collect()
}

fn uniform(state: &mut u64) -> f64 {
    // Knuth's MMIX generator; any would do for moments to kill at.
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 11) as f64 / 2f64.powi(53)
}

#[test]
fn no_kill_loses_a_release() {
    let kills = if std::env::var_os("LAPA_TEST_LONG").is_some() { 200 } else { 20 };
    for mode in ["replay", "charge-again"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, release_file) = paths(folder.path());
        let argument = format!("{mode} {}", folder.path().display());
        let mut state = 20;
        let mut last = vec![0.0; DEVICES as usize];
        for kill in 0..kills {
            let lines = released(&release_file).len();
            let mut child = child("crash::releaser", &argument).spawn().unwrap();
            // Every other kill may hit the start; the rest wait for the first release.
            while kill % 2 == 1 && released(&release_file).len() == lines {
                assert_eq!(child.try_wait().unwrap(), None, "the child ended by itself");
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_secs_f64(0.1 * uniform(&mut state)));
            assert_eq!(child.try_wait().unwrap(), None, "the child ended by itself");
            child.kill().unwrap();
            child.wait().unwrap();
            verify(&path, &release_file, mode == "replay", &mut last, kill);
        }
    }
}

/// The ledger is whole, has not forgotten, and knows all that was released. It may be new, if the
/// first child was killed before it made one.
fn verify(path: &Path, release_file: &Path, replay: bool, last: &mut [f64], kill: u32) {
    let ledger = Ledger::open(path).unwrap();
    let database = rusqlite::Connection::open(path).unwrap();
    let state: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "ok");

    let releases = ledger.releases().unwrap();
    let mut known: HashMap<(u32, u32), Vec<f64>> = HashMap::new();
    for release in &releases {
        let key = (release.round, release.device);
        known.entry(key).or_default().push(sigma(&release.event));
    }
    let mut drawn: HashMap<(u32, u32), Vec<f64>> = HashMap::new();
    for (round, device, sigma) in released(release_file) {
        drawn.entry((round, device)).or_default().push(sigma);
    }
    for (key, sigmas) in &drawn {
        let recorded =
            known.get(key).unwrap_or_else(|| panic!("kill {kill}: no record of {key:?}"));
        if replay {
            // However often it was repeated, it was one release.
            assert_eq!(recorded.len(), 1);
            assert!(sigmas.iter().all(|sigma| *sigma == recorded[0]), "kill {kill}: {key:?}");
        } else {
            // As many charges as releases, or more where a kill came between the two.
            let mut rest = recorded.iter();
            assert!(sigmas.iter().all(|sigma| rest.any(|known| known == sigma)), "{key:?}");
        }
    }
    for (device, last) in last.iter_mut().enumerate() {
        let device = device as u32;
        let spent = ledger.spent("data", device).unwrap();
        assert!(spent >= *last, "kill {kill}: {spent} after {last}");
        *last = spent;
        let costs = releases.iter().filter(|r| r.device == device).map(|r| r.cost);
        assert_eq!(costs.fold(0.0, add_up), spent);
    }
}

/// Work of a child: releases round by round, until it is killed. By itself, nothing.
#[test]
fn releaser() {
    let Ok(argument) = std::env::var(CHILD) else { return };
    let (mode, folder) = argument.split_once(' ').unwrap();
    let repeat = if mode == "replay" { Repeat::Replay } else { Repeat::ChargeAgain };
    let (path, release_file) = paths(Path::new(folder));
    let mut ledger = Ledger::open(&path).unwrap();
    let devices: Vec<_> = (0..DEVICES).map(|device| (device, budget(1.0))).collect();
    let left = ledger.begin_run("run", &data(), &devices).unwrap();

    let done = released(&release_file);
    let mut file = OpenOptions::new().create(true).append(true).open(&release_file).unwrap();
    let first = done.last().map_or(1, |(round, ..)| round.saturating_sub(BACK).max(1));
    // A replay repeats what the run knew then; fresh noise has to live with all that was spent.
    let before = (repeat == Repeat::Replay).then_some(first);
    let mut own: Vec<f64> =
        (0..DEVICES).map(|device| ledger.own_spent("run", device, before).unwrap()).collect();
    for at in first.. {
        let requests: Vec<_> = (0..DEVICES)
            .map(|device| {
                let k = device as usize;
                let weight = f64::from(1 + (at + device) % 3);
                request(device, weight * (left[k] - own[k]) / f64::from(ROUNDS - at))
            })
            .collect();
        let grants = round(&mut ledger, ("run", at), repeat, &requests).unwrap();
        for (device, grant) in grants.iter().enumerate() {
            let Grant::Released { event, cost, .. } = grant else { continue };
            own[device] = add_up(own[device], *cost);
            let line = format!("{at} {device} {:?}\n", sigma(event));
            file.write_all(line.as_bytes()).unwrap();
        }
    }
}
