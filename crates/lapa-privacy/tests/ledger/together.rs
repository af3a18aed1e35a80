//! Two processes on one ledger.

use std::path::Path;
use std::time::Duration;

use super::*;

const DEVICES: u32 = 3;
const CAPACITY: f64 = 1.0;

/// Cost that each process asks for in a round. Not a fraction of two, so that sums are rounded.
fn asked(process: u32, round: u32) -> f64 {
    0.01 / f64::from(1 + (process * 5 + round * 3) % 7)
}

#[test]
fn two_processes_cannot_overspend_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    // Both make the file, too.
    let children: Vec<_> = (0..2)
        .map(|process| {
            let argument = format!("{process} {}", path.display());
            child("together::spender", &argument).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }

    let ledger = Ledger::open_read_only(&path).unwrap();
    let releases = ledger.releases().unwrap();
    for device in 0..DEVICES {
        // In integers of 2⁻⁹⁰, which do not round: the costs are above 2⁻¹⁰.
        let costs = releases.iter().filter(|r| r.device == device);
        let exact: i128 = costs.map(|r| (r.cost * 2f64.powi(90)) as i128).sum();
        assert!(exact <= (CAPACITY * 2f64.powi(90)) as i128);
        // Everything was given out, but for rounding up.
        let spent = ledger.spent("data", device).unwrap();
        assert_eq!(spent, CAPACITY);
        assert!(exact as f64 / 2f64.powi(90) > CAPACITY - 1e-12);
        for run in ["run 0", "run 1"] {
            assert!(ledger.own_spent(run, device, None).unwrap() > 0.0);
        }
    }
}

/// Work of a child: spends until nothing is left. By itself, nothing.
#[test]
fn spender() {
    let Ok(argument) = std::env::var(CHILD) else { return };
    let (process, path) = argument.split_once(' ').unwrap();
    let run = format!("run {process}");
    let process = process.parse().unwrap();
    let mut ledger = Ledger::open(Path::new(path)).unwrap();
    let devices: Vec<_> = (0..DEVICES).map(|device| (device, budget(CAPACITY))).collect();
    ledger.begin_run(&run, &data(), &devices).unwrap();
    for at in 1.. {
        let requests: Vec<_> =
            (0..DEVICES).map(|device| request(device, asked(process, at))).collect();
        let grants = round(&mut ledger, (&run, at), Repeat::ChargeAgain, &requests).unwrap();
        if grants.iter().all(|grant| *grant == Grant::Refused) {
            break;
        }
        // The moment in which noise is drawn, and the other process has its turn.
        std::thread::sleep(Duration::from_micros(500));
        // Neither may be done before the other has begun.
        while at == 1 && ledger.releases().unwrap().len() < 2 * DEVICES as usize {
            std::thread::yield_now();
        }
    }
}
