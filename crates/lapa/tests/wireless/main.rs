//! Rounds over radio links: what arrives, who sends, what it costs, and what it proves.

mod channel;
mod costs;
mod histograms;
mod power;
mod runs;
mod selection;
mod uplinks;
mod weights;

use std::sync::OnceLock;

use lapa::config::{Experiment, Override};
use lapa::data::{DataName, Dataset, Split};
use lapa::federation::Federation;
use lapa::observe::{DeviceRecord, DeviceRecords, RoundRecord};
use lapa_privacy::ledger::{Ledger, Recorded};
use tempfile::TempDir;

/// Parameters of the logistic model: 784 pixels and a bias, for ten classes.
const COORDINATES: usize = 7850;

/// The first few hundred synthetic digits.
fn data() -> Dataset {
    static DATA: OnceLock<Dataset> = OnceLock::new();
    let data = DATA.get_or_init(|| {
        let mut data = lapa::data::load(&DataName::Synthetic, &mut |_| {}).unwrap();
        let shorten = |split: &mut Split, len: usize| {
            split.images.truncate(len * split.rows * split.cols);
            split.labels.truncate(len);
        };
        shorten(&mut data.train, 600);
        shorten(&mut data.test, 100);
        data
    });
    data.clone()
}

/// Four devices and a small model; `changes` win.
fn experiment(changes: &[&str]) -> Experiment {
    let text = "
        data.name = 'synthetic'
        run = { rounds = 6, seed = 3, threads = 1, evaluate_every = 6, checkpoint_every = 4 }
        model.name = 'logistic'
        learn = { batch_fraction = 0.25, momentum = 0 }
        partition = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
    ";
    let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
    Experiment::from_toml(text, "test", &changes).unwrap()
}

fn federation(changes: &[&str]) -> Federation {
    Federation::new(experiment(changes), data()).unwrap()
}

fn devices(record: &RoundRecord) -> &[DeviceRecord] {
    match &record.devices {
        DeviceRecords::List(list) => list,
        DeviceRecords::Summary(_) => panic!("a list was asked for"),
    }
}

/// A federation that records in a file, and the file.
struct Recording {
    federation: Federation,
    place: TempDir,
}

impl Recording {
    fn new(changes: &[&str]) -> Self {
        let (mut federation, place) = (federation(changes), TempDir::new().unwrap());
        let ledger = Ledger::open(&place.path().join("ledger.db")).unwrap();
        federation.record_in(ledger, "run").unwrap();
        Self { federation, place }
    }

    fn rounds(&mut self, count: u32) -> Vec<RoundRecord> {
        (0..count).map(|_| self.federation.next_round().unwrap()).collect()
    }

    fn history(&self, device: u32) -> Vec<Recorded> {
        let ledger = Ledger::open_read_only(&self.place.path().join("ledger.db")).unwrap();
        ledger.history("run", device).unwrap()
    }
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

/// Whether n sums to what squares of n standard normals do, α = 10⁻⁶ on either side (Laurent &
/// Massart 2000, Lemma 1).
fn assert_chi_square(squares: f64, n: usize, what: &str) {
    let (n, t) = (n as f64, 1e6f64.ln());
    assert!(squares < n + 2.0 * (n * t).sqrt() + 2.0 * t, "{what}: {squares} of {n}");
    assert!(squares > n - 2.0 * (n * t).sqrt(), "{what}: {squares} of {n}");
}
