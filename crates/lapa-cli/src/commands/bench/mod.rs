//! `lapa bench`: how fast the engine is on this machine.

mod control;
mod links;
mod models;
mod scale;

use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lapa::config::{Data, Experiment, Norm};
use lapa::data::{DataName, Dataset};
use lapa::model::{BLOCK, Batch, Blocks, Network, SampleClip, Worker, cnn};
use lapa::seed::{Purpose, stream};
use lapa::simulation::Simulation;
use lapa_privacy::sampler::add_gaussian;
use serde_json::{Map, Value, json};

use crate::failure::{CommandResult, Failure};
use crate::output::{self, Format, Formatted};
use crate::progress::Mode;

/// Measure the engine's speed on this machine.
///
/// Gradients and evaluation: the paper's CNN, batches of 400, one core. Models: cifar-cnn and resnet-8,
/// batches of 100 color images, one core. Rounds: 15 devices of
/// 3000–5000 samples, batch 10 %, without evaluation and checkpoints; and the share of evaluations in the
/// time of the quickstart. Links: cost of sending the updates of these devices relative to such a round,
/// and of computing the links of 100,000 devices. Control: time to judge powers over 200 rounds, and DDPG
/// steps (an action and an update each) with hidden layers and batches of 64 and 256. Scale (only if
/// asked for): private runs over the air with up to a million devices, each in a process of its own:
/// seconds of start and end (all of the process but its rounds), seconds of a round, peak memory in
/// megabytes, and the time of a round for each of its devices over that of 15. Speeds are medians over interleaved repetitions. Compare figures of
/// the same run only: machines and their load differ.
#[derive(Args)]
pub struct Arguments {
    /// Threads for the rounds, 0 for one per core.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: u32,
    /// Measure only this part.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Seconds per figure.
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    #[command(flatten)]
    formatted: Formatted,
}

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Gradients, compared with a matrix product.
    Gradient,
    /// Gradients of the networks for color images.
    Models,
    /// Whole rounds, and evaluation beside them.
    Round,
    /// Transmission over radio links, and the links themselves.
    Links,
    /// Transmit power optimization.
    Control,
    /// Start-up time, loading time, memory.
    Process,
    /// Fifteen to a million devices. Not part of the whole: it takes a minute or two.
    Scale,
}

/// Samples of a gradient.
const BATCH: usize = 400;
/// Multiply-adds per sample of the CNN's forward and backward pass, if done densely.
const DENSE_MACS: f64 = 1.2975e6;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.05..=600.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0.05 to 600".into()),
    }
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(arguments.formatted.format == Format::Json);
    let started = lapa::clock::now();
    let mnist = Data::named(DataName::Mnist);
    let (data, loading) = match super::load_data(&mnist.into(), mode) {
        Ok(data) => (data, Some(started.elapsed().as_secs_f64())),
        Err(_) => (super::load_data(&super::SYNTHETIC.into(), mode)?, None),
    };
    let (budget, threads) = (Duration::from_secs_f64(arguments.seconds), arguments.threads);
    let mut bench = Bench { data: &data, budget, threads, loading, figures: Map::new() };
    bench.add("data", String::from(data.name.clone()));
    type Measure = fn(&mut Bench<'_>) -> Result<(), Failure>;
    let parts: [(Part, &str, Measure); 7] = [
        (Part::Gradient, "gradients", gradients),
        (Part::Models, "networks for color images", models::measure),
        (Part::Round, "rounds", rounds),
        (Part::Links, "links", links::measure),
        (Part::Control, "power optimization", control::measure),
        (Part::Process, "start-up and memory", process),
        (Part::Scale, "many devices", scale::measure),
    ];
    for (part, name, measure) in parts {
        if arguments.only.map_or(part != Part::Scale, |only| only == part) {
            mode.notice(&format!("measuring {name} …"));
            measure(&mut bench)?;
        }
    }
    output::print(arguments.formatted.format, &bench.figures, || text(&bench.figures))
}

/// Conditions of the measurements, and the figures so far.
struct Bench<'a> {
    data: &'a Dataset,
    budget: Duration,
    threads: u32,
    /// Seconds in which MNIST was loaded.
    loading: Option<f64>,
    figures: Map<String, Value>,
}

impl Bench<'_> {
    fn add(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.figures.insert(name.into(), value.into());
    }
}

/// Runs the `tasks` in turns until the budget of each is used, at least 7 times; the seconds of
/// each task in each turn.
fn turns<const N: usize>(budget: Duration, mut tasks: [&mut dyn FnMut(); N]) -> [Vec<f64>; N] {
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    tasks.iter_mut().for_each(|task| task());
    let start = lapa::clock::now();
    while times[0].len() < 7 || start.elapsed() < budget * N as u32 {
        for (task, times) in tasks.iter_mut().zip(&mut times) {
            let start = lapa::clock::now();
            task();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median over the turns of a/b: what slows both for a while cancels.
fn median_ratio(a: &[f64], b: &[f64]) -> f64 {
    median(a.iter().zip(b).map(|(a, b)| a / b))
}

fn worker(norm: Norm, data: &Dataset) -> Result<(Worker, Vec<f32>), Failure> {
    let network = Network::new(data.train.shape, &cnn(norm, data.classes))?;
    let parameters = network.initial_parameters(&mut stream(0, Purpose::ModelInit, 0, 0));
    Ok((Worker::new(Arc::new(network)), parameters))
}

/// Samples per second of the three gradients and of an evaluation, and a large matrix product for
/// scale.
fn gradients(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let data = bench.data;
    let samples: Vec<u32> = (0..BATCH as u32).collect();
    let batch = Batch { data: &data.train, samples: &samples };
    let (mut batch_norm, p) = worker(Norm::Batch, data)?;
    let (mut group_norm, q) = worker(Norm::Group, data)?;
    let (mut per_sample, r) = worker(Norm::Group, data)?;
    let (mut g, mut h, mut i) = (vec![0.0; p.len()], vec![0.0; q.len()], vec![0.0; r.len()]);
    let clip = SampleClip { norm: 1.0, denominator: BATCH as f64, blocks: Blocks::Each(BLOCK) };
    const SIDE: usize = 512;
    let (a, b) = (vec![0.5f32; SIDE * SIDE], vec![0.25f32; SIDE * SIDE]);
    let mut c = vec![0f32; SIDE * SIDE];
    let (mut evaluated, s) = worker(Norm::Group, data)?;
    let [batch_norm, group_norm, per_sample, evaluation, product] = turns(
        bench.budget,
        [
            &mut || {
                black_box(batch_norm.gradient(&p, batch, &mut g));
            },
            &mut || {
                black_box(group_norm.gradient(&q, batch, &mut h));
            },
            &mut || {
                black_box(per_sample.clipped_gradient(&r, batch, clip, &mut i));
            },
            &mut || {
                black_box(evaluated.evaluate(&s, &[], batch));
            },
            &mut || lapa::model::matrix_product(SIDE, &a, &b, black_box(&mut c)),
        ],
    );
    let per_second = |seconds: &[f64]| BATCH as f64 / median(seconds.iter().copied());
    let product_flops = 2.0 * (SIDE as f64).powi(3);
    let batch_flops = 2.0 * DENSE_MACS * BATCH as f64;
    for (name, value) in [
        ("gradient_batch_norm_samples_per_s", per_second(&batch_norm)),
        ("gradient_group_norm_samples_per_s", per_second(&group_norm)),
        ("gradient_per_sample_samples_per_s", per_second(&per_sample)),
        ("evaluation_samples_per_s", per_second(&evaluation)),
        ("per_sample_cost", median_ratio(&per_sample, &group_norm)),
        ("gemm_gflops", product_flops / median(product.iter().copied()) / 1e9),
        ("gemm_share", median_ratio(&product, &batch_norm) * batch_flops / product_flops),
    ] {
        bench.add(name, value);
    }
    Ok(())
}

/// A run of default rounds, without evaluation.
fn federation(data: &Dataset, threads: u32) -> Result<Simulation, Failure> {
    // As many samples per device as the data allow, so that synthetic digits work too.
    let most = (data.train.len() / 12).min(5000);
    let sizes = format!("[{},{most}]", most * 3 / 5);
    let flags = [
        "profile=paper".into(),
        "run.rounds=1000000".into(),
        "run.evaluate_every=1000000".into(),
        format!("run.threads={threads}"),
        format!("partition.mix.iid_samples={sizes}"),
        format!("partition.mix.non_iid_samples={sizes}"),
    ];
    let experiment = Experiment::from_toml("", "bench", &super::overrides(&flags)?)?;
    Ok(Simulation::new(experiment, data.clone())?)
}

/// Rounds on one thread and on `threads`, beside the bare gradients of the same batches.
fn rounds(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let data = bench.data;
    let (mut one, mut many) = (federation(data, 1)?, federation(data, bench.threads)?);
    let records = one.records();
    let batch = |device| records.of(device).iter().copied().step_by(10).collect();
    let batches: Vec<Vec<u32>> = (0..records.devices() as u32).map(batch).collect();
    let (mut worker, p) = worker(Norm::Batch, data)?;
    let mut gradient = vec![0.0; p.len()];
    let failed = std::cell::RefCell::new(None);
    let round = |federation: &mut Simulation| {
        if let Err(error) = federation.next_round() {
            failed.replace(Some(error));
        }
    };
    let mut noisy = vec![0.0; p.len()];
    let [bare, noise, one_thread, all_threads] = turns(
        bench.budget,
        [
            &mut || {
                for samples in &batches {
                    let batch = Batch { data: &data.train, samples };
                    black_box(worker.gradient(&p, batch, &mut gradient));
                }
            },
            &mut || {
                for device in 0..batches.len() as u64 {
                    let mut rng = stream(0, Purpose::Noise, 1, device);
                    // A constant that is allowed.
                    let _ = add_gaussian(&mut noisy, 1e-3, &mut rng);
                }
                black_box(&noisy);
            },
            &mut || round(&mut one),
            &mut || round(&mut many),
        ],
    );
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    let samples: usize = batches.iter().map(Vec::len).sum();
    for (name, value) in [
        ("round_seconds", median(all_threads.iter().copied())),
        ("round_threads", many.threads() as f64),
        ("round_samples", samples as f64),
        ("round_seconds_one_thread", median(one_thread.iter().copied())),
        ("round_speedup", median_ratio(&one_thread, &all_threads)),
        ("round_overhead_share", 1.0 - median_ratio(&bare, &one_thread)),
        ("noise_share", median_ratio(&noise, &one_thread)),
    ] {
        bench.add(name, value);
    }
    evaluation(bench)
}

/// Part of the quickstart's time that evaluations take, beside its rounds; checkpoints apart.
fn evaluation(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let quickstart = |flags: &[String]| {
        Experiment::from_toml(super::QUICKSTART, "quickstart", &super::overrides(flags)?)
            .map_err(Failure::from)
    };
    let every = quickstart(&[])?.run.evaluate_every;
    // As much noise in a round, and rounds without an end.
    let experiment = quickstart(&[
        format!("data.name={}", String::from(bench.data.name.clone())),
        "run.rounds=100000".into(),
        "run.evaluate_every=100000".into(),
        "privacy.epsilon=200".into(),
        format!("run.threads={}", bench.threads),
    ])?;
    let simulation = std::cell::RefCell::new(Simulation::new(experiment, bench.data.clone())?);
    let mut failed = None;
    let [rounds, evaluations] = turns(
        bench.budget,
        [
            &mut || {
                if let Err(error) = simulation.borrow_mut().next_round() {
                    failed = Some(error);
                }
            },
            &mut || {
                black_box(simulation.borrow_mut().evaluate());
            },
        ],
    );
    if let Some(error) = failed {
        return Err(error.into());
    }
    let per_round = median_ratio(&evaluations, &rounds) / f64::from(every);
    bench.add("evaluation_seconds", median(evaluations));
    bench.add("evaluation_share", per_round / (1.0 + per_round));
    Ok(())
}

/// Costs that a user notices: loading, start-up, and the memory of a run.
fn process(bench: &mut Bench<'_>) -> Result<(), Failure> {
    bench.add("load_mnist_seconds", json!(bench.loading));
    let lapa = std::env::current_exe()?;
    let help = || Command::new(&lapa).arg("--help").output();
    let [seconds] = turns(
        Duration::ZERO,
        [&mut || {
            // Only its time counts here; tests check that it works.
            let _ = black_box(help());
        }],
    );
    bench.add("help_seconds", median(seconds));
    let data = format!("data.name={}", String::from(bench.data.name.clone()));
    // Memory peaks in the first rounds.
    let run = short_run(&["run.rounds=5".into(), data])?;
    bench.add("run_peak_memory_mb", run["peak_memory_mb"].clone());
    Ok(())
}

/// The summary of a run with these changes of the quickstart, in a process of its own.
fn short_run(changes: &[String]) -> Result<Value, Failure> {
    let lapa = std::env::current_exe()?;
    let folder = std::env::temp_dir().join(format!("lapa-bench-{}", std::process::id()));
    let mut run = Command::new(lapa);
    run.args(["run", "--quiet", "--format", "json", "--out"]).arg(&folder);
    changes.iter().for_each(|change| _ = run.args(["-c", change]));
    let output = run.output();
    // Only our own temporary folder; nothing depends on whether it goes.
    let _ = std::fs::remove_dir_all(&folder);
    let output = output?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(std::io::Error::other(reason).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn text(figures: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in figures {
        let value = match value.as_f64() {
            Some(number) if number.abs() >= 100.0 => format!("{number:.0}"),
            Some(number) => format!("{number:.4}"),
            None => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        };
        text += &format!("{name:<36} {value}\n");
    }
    text
}
