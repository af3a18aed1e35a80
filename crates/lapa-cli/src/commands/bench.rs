//! `lapa bench`: how fast the engine is on this machine.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use lapa::config::{Experiment, Norm, Override};
use lapa::data::{DataName, Dataset};
use lapa::model::{Batch, Network, Shape, Worker, cnn};
use lapa::round::Federation;
use lapa::seed::{Purpose, stream};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::Mode;

/// Measure the engine's speed on this machine.
///
/// Gradients: the paper's CNN, batches of 400, one core. Rounds: 15 devices of 3000–5000 samples,
/// batch 10 %, without evaluation and checkpoints. Every figure is a median over repetitions that
/// take turns. Compare figures only within one run: machines and their load differ.
#[derive(Args)]
pub struct Arguments {
    /// Threads of the rounds, 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Measure only this.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Seconds per figure.
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// How the figures are printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Gradients and the matrix product they are compared with.
    Gradient,
    /// Whole rounds.
    Round,
    /// Start-up, loading, memory.
    Process,
}

/// Samples of a gradient.
const BATCH: usize = 400;
/// Multiply-adds per sample of the CNN's forward and backward pass, if done densely.
const DENSE_MACS: f64 = 1.2975e6;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.05..=600.0).contains(&value) => Ok(value),
        _ => Err("allowed: a number from 0.05 to 600".into()),
    }
}

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(arguments.format == Format::Json);
    let started = Instant::now();
    let (data, loading) = match super::load_data(&DataName::Mnist, mode) {
        Ok(data) => (data, Some(started.elapsed().as_secs_f64())),
        Err(_) => (super::load_data(&DataName::Synthetic, mode)?, None),
    };
    let mut figures = Map::new();
    figures.insert("data".into(), String::from(data.name.clone()).into());
    let wanted = |part| arguments.only.is_none_or(|only| only == part);
    let budget = Duration::from_secs_f64(arguments.seconds);
    if wanted(Part::Gradient) {
        mode.notice("measuring gradients …");
        gradients(&data, budget, &mut figures);
    }
    if wanted(Part::Round) {
        mode.notice("measuring rounds …");
        rounds(&data, arguments.threads, budget, &mut figures)?;
    }
    if wanted(Part::Process) {
        mode.notice("measuring start-up and memory …");
        figures.insert("load_mnist_seconds".into(), json!(loading));
        process(&data.name, &mut figures)?;
    }
    match arguments.format {
        Format::Json => output::json(&figures)?,
        Format::Text => output::text_out(&text(&figures))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the `tasks` in turns until the budget of each is used, at least 7 times; median seconds.
fn medians<const N: usize>(budget: Duration, mut tasks: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    tasks.iter_mut().for_each(|task| task());
    let start = Instant::now();
    while times[0].len() < 7 || start.elapsed() < budget * N as u32 {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let start = Instant::now();
            task();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    })
}

fn worker(norm: Norm, data: &Dataset) -> Result<(Worker, Vec<f32>), Failure> {
    let shape = Shape::new(1, data.train.rows, data.train.cols);
    let network = Network::new(shape, &cnn(norm, data.classes)).map_err(Failure::failed)?;
    let parameters = network.initial_parameters(&mut stream(0, Purpose::ModelInit, 0, 0));
    Ok((Worker::new(Arc::new(network)), parameters))
}
