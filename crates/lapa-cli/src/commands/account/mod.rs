//! `lapa account`: ε from σ, or σ from ε, by every accountant.

mod calculator;
mod devices;
mod ledger;

use std::path::PathBuf;

use clap::Args;

use crate::failure::{CommandResult, Failure};
use crate::output::Formatted;

/// Compute ε from σ or σ from ε with six accountants, or the ε spent in a ledger
///
/// σ is in units of the sensitivity: σ = 1 is noise as large as the largest change by one record.
/// With --sampling-rate, each record joins a batch independently with that probability (Poisson
/// sampling), and the sensitivity is the largest contribution of one record to a batch. Without it
/// there is no amplification, and all adjacencies have the same cost in these units.
///
/// The accountants naive and advanced apply --delta to each round, as the paper does, and report
/// their total δ; all others apply it to the whole. A dash (null in JSON) means that the accountant
/// does not support the mechanism.
///
/// Examples:
///   lapa account --sigma 5 --rounds 100 --delta 1e-5
///   lapa account --sigma 1 --rounds 100 --sampling-rate 0.1 --delta 1e-5
///   lapa account --target-epsilon 8 --rounds 200 --sampling-rate 0.1 --delta 1e-5
///   lapa account --ledger runs/quickstart-1
#[derive(Args)]
#[command(verbatim_doc_comment, allow_negative_numbers = true)]
#[command(group(
    clap::ArgGroup::new("question").required(true).args(["sigma", "target_epsilon", "ledger"])
))]
pub struct Arguments {
    /// Standard deviation of the noise, in units of the sensitivity.
    #[arg(long, value_name = "S", requires_all = ["rounds", "delta"], value_parser = sigma)]
    sigma: Option<f64>,
    /// Find the smallest σ for this ε.
    #[arg(long, value_name = "E", requires_all = ["rounds", "delta"], value_parser = epsilon)]
    target_epsilon: Option<f64>,
    /// Number of releases with this noise.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Probability that a record joins a batch (Poisson sampling).
    #[arg(long, value_name = "Q", value_parser = rate)]
    sampling_rate: Option<f64>,
    /// Adjacency of data sets [default: zero-out].
    #[arg(long, value_enum)]
    adjacency: Option<Adjacency>,
    /// Probability δ with which the guarantee may fail.
    #[arg(long, value_name = "D", value_parser = delta)]
    delta: Option<f64>,
    /// Ledger whose releases are accounted, per device and on both bases.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["rounds", "sampling_rate", "adjacency", "delta"]
    )]
    ledger: Option<PathBuf>,
    /// List all devices of the ledger, also those without releases; else, of more than 60 (1,000 as
    /// JSON), those with the largest and the smallest ε, and quantiles.
    #[arg(long, conflicts_with_all = ["sigma", "target_epsilon"])]
    all: bool,
    #[command(flatten)]
    formatted: Formatted,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Adjacency {
    /// One record is replaced by a record with zero gradient.
    ZeroOut,
    /// One record is added or removed.
    AddRemove,
    /// One record is replaced by any other.
    ReplaceOne,
}

impl From<Adjacency> for lapa_privacy::Adjacency {
    fn from(adjacency: Adjacency) -> Self {
        match adjacency {
            Adjacency::ZeroOut => Self::ZeroOut,
            Adjacency::AddRemove => Self::AddRemove,
            Adjacency::ReplaceOne => Self::ReplaceOne,
        }
    }
}

fn number(text: &str, fits: impl Fn(f64) -> bool, allowed: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if fits(value) => Ok(value),
        _ => Err(format!("expected {allowed}")),
    }
}

fn sigma(text: &str) -> Result<f64, String> {
    number(text, |s| (1e-6..=1e9).contains(&s), "a number from 1e-6 to 1e9")
}

fn epsilon(text: &str) -> Result<f64, String> {
    number(text, |e| (1e-3..=1e6).contains(&e), "a number from 1e-3 to 1e6")
}

fn rate(text: &str) -> Result<f64, String> {
    number(text, |q| q > 0.0 && q <= 1.0, "a number above 0 and at most 1")
}

fn delta(text: &str) -> Result<f64, String> {
    number(text, |d| (1e-18..1.0).contains(&d), "a number from 1e-18 to below 1")
}

pub fn execute(arguments: Arguments) -> CommandResult {
    if let Some(path) = &arguments.ledger {
        return ledger::execute(path, arguments.all, arguments.formatted.format);
    }
    let (Some(rounds), Some(delta)) = (arguments.rounds, arguments.delta) else {
        return Err(Failure::usage("--rounds and --delta are required"));
    };
    calculator::execute(&calculator::Query {
        sigma: arguments.sigma,
        target_epsilon: arguments.target_epsilon,
        rounds,
        rate: arguments.sampling_rate,
        adjacency: arguments.adjacency.unwrap_or(Adjacency::ZeroOut).into(),
        delta,
        format: arguments.formatted.format,
    })
}
