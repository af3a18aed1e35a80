//! Rounds over radio links: what arrives, who sends, what it costs, and what it proves.

#[path = "../common/mod.rs"]
mod common;

mod channel;
mod costs;
mod histograms;
mod noise_control;
mod power;
mod printed;
mod runs;
mod selection;
mod uplinks;
mod weights;

use std::ops::ControlFlow;

use common::{data, devices, experiment, federation};
use lapa::error::FederationError;
use lapa::observe::RoundRecord;
use lapa::simulation::{Event, Setup, Simulation};
use lapa_privacy::ledger::{DataKey, DeclaredBudget, Entry, Ledger, Recorded, Repeat, Request};
use tempfile::TempDir;

/// Parameters of the logistic model: 784 pixels and a bias, for ten classes.
const COORDINATES: usize = 7850;

/// A federation that records in a file, and the file.
struct Recording {
    federation: Simulation,
    place: TempDir,
    warnings: Vec<String>,
}

impl Recording {
    fn new(changes: &[&str]) -> Self {
        let place = TempDir::new().unwrap();
        let ledger = Ledger::open(&place.path().join("ledger.db")).unwrap();
        let setup = Setup::new(experiment(changes), data()).unwrap();
        let federation = setup.record_in(ledger, "run").unwrap();
        Self { federation, place, warnings: Vec::new() }
    }

    fn rounds(&mut self, count: u32) -> Vec<RoundRecord> {
        let records = rounds(&mut self.federation, count, &mut self.warnings);
        assert_eq!(records.len() as u32, count);
        records
    }

    fn history(&self, device: u32) -> Vec<Entry> {
        let ledger = Ledger::open_read_only(&self.place.path().join("ledger.db")).unwrap();
        ledger.history("run", device).unwrap()
    }
}

/// The next rounds of a simulation, with its warnings.
fn rounds(simulation: &mut Simulation, count: u32, warnings: &mut Vec<String>) -> Vec<RoundRecord> {
    let mut records = Vec::new();
    let run = simulation.run(&mut |_, event| {
        match event {
            Event::Warning(warning) => warnings.push(warning.into()),
            Event::Round(record) => records.push(record.clone()),
        }
        match records.len() < count as usize {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    assert!(matches!(run, Ok(()) | Err(FederationError::Cancelled(_))), "{run:?}");
    records
}

/// Proof of a release of a device without noise.
fn bare(device: u32) -> Recorded {
    let mut ledger = Ledger::in_memory().unwrap();
    let data = DataKey { data: "data".into(), partition: "partition".into() };
    let (epsilon, capacity) = (f64::INFINITY, f64::INFINITY);
    let budget = DeclaredBudget { kind: "none".into(), epsilon, delta: 0.5, capacity };
    ledger.begin_run("run", &data, &[(device, budget)]).unwrap();
    let request = [Request { device, cost: f64::INFINITY }];
    let offers = ledger.offer("run", 1, Repeat::Replay, 0.0, &request).unwrap();
    let event = lapa_privacy::Event::NonPrivate { what: "an update without noise".into() };
    offers.record([(event, f64::INFINITY)]).unwrap().remove(0).unwrap()
}

/// The ratio that a number of decibels stands for.
fn ratio(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

fn assert_close(found: f64, expected: f64, relative: f64) {
    assert!((found / expected - 1.0).abs() < relative, "{found} instead of {expected}");
}

/// Simpson's rule.
fn integral(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    let steps = 20_000;
    let width = (to - from) / f64::from(steps);
    let weight = |i: u32| match i {
        0 => 1.0,
        i if i == steps => 1.0,
        i if i % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=steps).map(|i| weight(i) * f(from + width * f64::from(i))).sum::<f64>() * width / 3.0
}

fn normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// P(Z > x) of a standard normal Z.
fn tail(x: f64) -> f64 {
    integral(x, x.max(0.0) + 12.0, normal_density)
}

/// True if n sums to what squares of n standard normals do, α = 10⁻⁶ on either side (Laurent &
/// Massart 2000, Lemma 1).
fn assert_chi_square(squares: f64, n: usize, what: &str) {
    let (n, t) = (n as f64, 1e6f64.ln());
    assert!(squares < n + 2.0 * (n * t).sqrt() + 2.0 * t, "{what}: {squares} of {n}");
    assert!(squares > n - 2.0 * (n * t).sqrt(), "{what}: {squares} of {n}");
}
