//! `cargo xtask bench-peers --accounting`: our accountants and dp-accounting, measured in turns.

use std::process::ExitCode;

use lapa_privacy::accountant::{Accountant, Pld, Rdp};
use lapa_privacy::{Adjacency, Mechanism};
use serde_json::json;

use crate::bench_peers::{Format, Worker, number, pinned_core};
use crate::table::{self, Row};
use crate::{TaskResult, peers_env, process};

/// The grid on both sides.
const INTERVAL: f64 = 1e-4;
const DELTA: f64 = 1e-5;

/// Orders of the Rényi rows, on both sides.
const ORDERS: std::ops::RangeInclusive<u32> = 2..=64;

/// A question to both sides: its name, the accountant, sampling rate, noise and rounds.
type Case = (&'static str, &'static str, f64, f64, u32);

const CASES: [Case; 5] = [
    ("PLD, q 0.1, z 1, T 100", "pld", 0.1, 1.0, 100),
    ("PLD, q 0.01, z 1, T 1000", "pld", 0.01, 1.0, 1000),
    ("PLD, q 0.01, z 0.8, T 10000", "pld", 0.01, 0.8, 10_000),
    ("RDP, q 0.1, z 1, T 100", "rdp", 0.1, 1.0, 100),
    ("RDP, q 0.01, z 1, T 1000", "rdp", 0.01, 1.0, 1000),
];

/// Shortest measurement of our side in seconds; it is repeated until then.
const SHORTEST: f64 = 0.2;

/// Runs the comparison and prints it: runs per second on one thread.
pub fn run(pairs: u32, format: Format) -> TaskResult {
    if cfg!(debug_assertions) {
        let mut command = process::cargo();
        command.args(["run", "--release", "--quiet", "--package", "xtask", "--", "bench-peers"]);
        let format = if matches!(format, Format::Json) { "json" } else { "text" };
        command.args(["--accounting", "--pairs", &pairs.to_string(), "--format", format]);
        return process::run(&mut command).map(process::exit_code);
    }

    let python = peers_env::python("accounting.txt")?;
    let mut worker = Worker::start(&python, "accounting.py", &[], pinned_core())?;
    let about = worker.ask("about")?;
    let mut rows = Vec::new();
    let mut answers = Vec::new();
    for case in CASES {
        let (name, accountant, rate, z, count) = case;
        let mut row = Row { name, pairs: Vec::new() };
        let command = format!("{accountant} {rate} {z} {count} {DELTA} {INTERVAL}");
        // Once for the caches of both sides.
        let theirs = number(&worker.ask(&command)?, "epsilon")?;
        let ours = epsilon(&case)?;
        answers.push(json!({ "name": name, "ours": ours, "other": theirs }));
        for pair in 0..pairs {
            eprintln!("{name}: pair {} of {pairs}", pair + 1);
            let seconds = number(&worker.ask(&command)?, "seconds")?;
            row.pairs.push((runs_per_second(&case)?, 1.0 / seconds));
        }
        rows.push(row);
    }

    let version = about["dp_accounting"].as_str().unwrap_or("?");
    let title =
        format!("dp-accounting {version}, {pairs} pairs, interval {INTERVAL}, delta {DELTA}");
    let conditions = json!({
        "dp_accounting": about["dp_accounting"], "pairs": pairs, "interval": INTERVAL,
        "delta": DELTA, "rows": null, "epsilon": answers,
    });
    table::print(format, &title, &rows, conditions);
    if matches!(format, Format::Text) {
        for answer in &answers {
            let name = answer["name"].as_str().unwrap_or_default();
            println!("epsilon, {name}: {} (other: {})", answer["ours"], answer["other"]);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn epsilon(&(_, accountant, rate, z, count): &Case) -> Result<f64, String> {
    let answer = || -> Result<f64, lapa_privacy::AccountError> {
        let mut accountant: Box<dyn Accountant> = match accountant {
            "pld" => Box::new(Pld::with_interval(INTERVAL)?),
            _ => Box::new(Rdp::with_orders(ORDERS.map(f64::from).collect())?),
        };
        accountant.compose(&Mechanism::poisson(rate, z, Adjacency::AddRemove), count)?;
        accountant.epsilon(DELTA)
    };
    answer().map_err(|error| error.to_string())
}

fn runs_per_second(case: &Case) -> Result<f64, String> {
    let start = process::now();
    let mut runs = 0;
    while start.elapsed().as_secs_f64() < SHORTEST {
        std::hint::black_box(epsilon(case)?);
        runs += 1;
    }
    Ok(f64::from(runs) / start.elapsed().as_secs_f64())
}
