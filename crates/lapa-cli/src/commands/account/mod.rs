//! `lapa account`: what noise is worth, by every accountant.

mod calculator;
mod ledger;

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Failure, Outcome};
use crate::output::Format;

/// What noise is worth: ε for σ, or σ for ε, by every accountant; or what a ledger has spent.
///
/// σ is in units of the sensitivity: 1 means noise of the size of the most that one record can
/// change. With --sampling-rate each record joins a batch by itself with that probability, and the
/// sensitivity is the most that one record adds to a batch; without it nothing is amplified and
/// all adjacencies cost the same in these units.
///
/// naive and advanced read --delta as that of each round, as the paper does, and say what their
/// total is; all others read it as that of the whole. A dash (null in JSON) means that the accountant
/// has no theorem for the question.
///
/// Examples:
///   lapa account --sigma 5 --rounds 100 --delta 1e-5
///   lapa account --sigma 1 --rounds 100 --sampling-rate 0.1 --delta 1e-5
///   lapa account --target-epsilon 8 --rounds 200 --sampling-rate 0.1 --delta 1e-5
///   lapa account --ledger runs/quickstart-1/ledger.db
#[derive(Args)]
#[command(verbatim_doc_comment, allow_negative_numbers = true)]
#[command(group(
    clap::ArgGroup::new("question").required(true).args(["sigma", "target_epsilon", "ledger"])
))]
pub struct Arguments {
    /// Standard deviation of the noise, in units of the sensitivity.
    #[arg(long, value_name = "S", requires_all = ["rounds", "delta"], value_parser = sigma)]
    sigma: Option<f64>,
    /// Ask for the smallest σ that meets this ε instead.
    #[arg(long, value_name = "E", requires_all = ["rounds", "delta"], value_parser = epsilon)]
    target_epsilon: Option<f64>,
    /// Releases with that noise.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Probability that a record joins a batch (Poisson sampling).
    #[arg(long, value_name = "Q", value_parser = rate)]
    sampling_rate: Option<f64>,
    /// What neighboring data sets are [default: zero-out].
    #[arg(long, value_enum)]
    adjacency: Option<Adjacency>,
    /// Probability that the guarantee fails.
    #[arg(long, value_name = "D", value_parser = delta)]
    delta: Option<f64>,
    /// Cost the releases of a ledger, per device and on both bases.
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["rounds", "sampling_rate", "adjacency", "delta"]
    )]
    ledger: Option<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Adjacency {
    /// A record is replaced by one of zero gradient.
    ZeroOut,
    /// A record is added or removed.
    AddRemove,
    /// A record is replaced by any other.
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
        _ => Err(format!("allowed: {allowed}")),
    }
}

fn sigma(text: &str) -> Result<f64, String> {
    number(text, |s| (1e-6..=1e9).contains(&s), "a number from 1e-6 to 1e9")
}

fn epsilon(text: &str) -> Result<f64, String> {
    number(text, |e| (1e-3..=1e6).contains(&e), "a number from 1e-3 to 1e6")
}

fn rate(text: &str) -> Result<f64, String> {
    number(text, |q| q > 0.0 && q <= 1.0, "a number above 0, at most 1")
}

fn delta(text: &str) -> Result<f64, String> {
    number(text, |d| (1e-18..1.0).contains(&d), "a number from 1e-18, below 1")
}

pub fn execute(arguments: Arguments) -> Outcome {
    if let Some(path) = &arguments.ledger {
        return ledger::execute(path, arguments.format);
    }
    let (Some(rounds), Some(delta)) = (arguments.rounds, arguments.delta) else {
        return Err(Failure::usage("--rounds and --delta are needed"));
    };
    calculator::execute(&calculator::Question {
        sigma: arguments.sigma,
        target_epsilon: arguments.target_epsilon,
        rounds,
        rate: arguments.sampling_rate,
        adjacency: arguments.adjacency.unwrap_or(Adjacency::ZeroOut).into(),
        delta,
        format: arguments.format,
    })
}
