//! The ledger as its users see it.

mod crash;
mod damage;
mod files;
mod place;
mod property;
mod rounds;
mod together;

use std::process::{Command, Stdio};

use lapa_privacy::ledger::{
    DataKey, DeclaredBudget, Ledger, LedgerError, Recorded, Repeat, Request,
};
use lapa_privacy::{Adjacency, ClipUnit, Event, Histogram, NoiseKind, Release, Sampling};

fn data() -> DataKey {
    DataKey { data: "data".into(), partition: "partition".into() }
}

fn budget(capacity: f64) -> DeclaredBudget {
    DeclaredBudget { kind: r#"{"filter":"gdp"}"#.into(), epsilon: 8.0, delta: 1e-5, capacity }
}

fn request(device: u32, cost: f64) -> Request {
    Request { device, cost }
}

/// A release whose ρ = μ²/2 = Δ²/2σ² is about the cost: Δ = 1, so σ = 1/√(2·cost).
fn event(cost: f64) -> Event {
    Event::Release(Release {
        clip: ClipUnit::Sample,
        clip_norm: 1.0,
        denominator: 2.0,
        records: 2,
        learning_rate: 0.1,
        adjacency: Adjacency::ReplaceOne,
        sampling: Sampling::Full,
        noise: NoiseKind::Gaussian,
        sigma_artificial: 1.0 / (2.0 * cost).sqrt(),
        sigma_channel: 0.0,
        kappa: 0.0,
        shared_channel: false,
    })
}

fn sigma(event: &Event) -> f64 {
    match event {
        Event::Release(release) => release.sigma(),
        Event::Histogram(histogram) => histogram.sigma,
        Event::NonPrivate { .. } => 0.0,
    }
}

/// The outcome of a request, as tests compare it.
#[derive(Clone, Debug, PartialEq)]
enum Grant {
    Released { granted: f64, cost: f64, event: Event },
    Refused,
}

impl Grant {
    fn new(recorded: Option<Recorded>) -> Self {
        recorded.map_or(Self::Refused, |recorded| Self::Released {
            granted: recorded.granted(),
            cost: recorded.cost(),
            event: recorded.event().clone(),
        })
    }
}

/// A round whose releases `release` makes of the granted costs.
fn record_round<E: From<LedgerError>>(
    ledger: &mut Ledger,
    run: &str,
    round: u32,
    repeat: Repeat,
    floor: f64,
    requests: &[Request],
    release: &mut dyn FnMut(u32, f64) -> Result<(Event, f64), E>,
) -> Result<Vec<Grant>, E> {
    let offers = ledger.offer(run, round, repeat, floor, requests)?;
    let granted = requests.iter().zip(offers.granted());
    let releases = granted.filter_map(|(request, cost)| Some(release(request.device, cost?)));
    let releases: Vec<_> = releases.collect::<Result<_, _>>()?;
    Ok(offers.record(releases)?.into_iter().map(Grant::new).collect())
}

/// One round in which every release costs what is granted.
fn round(
    ledger: &mut Ledger,
    (run, round): (&str, u32),
    repeat: Repeat,
    requests: &[Request],
) -> Result<Vec<Grant>, LedgerError> {
    record_round(ledger, run, round, repeat, 0.0, requests, &mut |_, cost| Ok((event(cost), cost)))
}

fn cost(grant: &Grant) -> f64 {
    match grant {
        Grant::Released { cost, .. } => *cost,
        Grant::Refused => 0.0,
    }
}

/// This program again, to run only the test `name`, which finds `argument` in its environment.
fn child(name: &str, argument: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(CHILD, argument).stdout(Stdio::null());
    command
}

/// Variable in which a child finds its argument.
const CHILD: &str = "LAPA_TEST_LEDGER_CHILD";
