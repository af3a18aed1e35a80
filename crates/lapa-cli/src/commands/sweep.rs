//! `lapa sweep`: one experiment over a grid of keys and several seeds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lapa::config::{Experiment, Override};
use lapa::privatize::round_up;
use lapa_study::statistics::Estimate;
use lapa_study::sweep::{Grid, Outcome as Swept, Plots, Point, PointResult, Sweep};
use serde_json::{Value, json};

use super::study::run_loaded;
use super::{configuration, create_folder, overrides, sets};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, table};
use crate::progress::Mode;

/// Run an experiment over a grid of values and several seeds, and compare.
///
/// Each --grid is a key with its values; all combinations run, each with --seeds seeds, which count
/// from run.seed. Values are written as in -c: TOML, where a bare word is a string; commas within
/// brackets and quotes belong to a value.
///
/// Prints the mean accuracy of every combination after the last round, as `lapa run` has it, its
/// 95 % interval over the seeds, and the ε that is proved for the worst device and seed. Where the
/// last five evaluations lie in the last fifth of the rounds, their mean is printed beside it, as
/// "last five". The folder then has sweep.json, sweep.parquet and plots by each key.
///
/// Every finished run is kept in DIR/cells. After Ctrl-C the same command goes on; a larger grid in
/// the same folder runs only what is new. Runs are simulations in memory, each on one thread: they
/// leave no ledger. The ε of one combination does not cover the choice among them.
///
/// Examples:
///   lapa sweep --grid privacy.epsilon=1,2,4,8 --seeds 5
///   lapa sweep my.toml --grid privacy.allocator=lapa,uniform --grid learn.learning_rate=0.1,0.5
///   lapa sweep my.toml --grid partition.mix.iid_samples=[100,300],[200,600] -c run.rounds=50 --out s
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    /// A key and its values; may be given several times.
    #[arg(long, value_name = "KEY=A,B,C", required = true)]
    grid: Vec<String>,
    /// Seeds of every combination; intervals need two or more.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Runs at once, 0 for one per core (the default). Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: Option<u32>,
    /// The folder of runs and results; finished runs in it are not run again [default:
    /// runs/NAME-sweep].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print no progress.
    #[arg(long)]
    quiet: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(arguments.quiet);
    let source = &arguments.source;
    let mut sweep = sweep(&arguments)?;
    let changes: Vec<String> = source.changes().chain(arguments.grid.iter().cloned()).collect();
    let data = source.load(sweep.experiments_mut(), &changes, mode)?;
    let name = format!("runs/{}-sweep", source.name());
    let out = arguments.out.clone().unwrap_or_else(|| name.into());
    let threads = arguments.threads.filter(|&threads| threads > 0);
    let cells = sweep.cells();
    let executed = run_loaded(&cells, &data, &out, threads, mode)?;
    if executed.stopped {
        let done = cells.iter().filter(|cell| executed.results.get(cell).is_some()).count();
        stopped(done, cells.len(), &out, arguments.format)?;
        return Ok(ExitCode::FAILURE);
    }
    let swept = Swept::new(&sweep, &executed);
    swept.write(&out)?;
    let plots = out.join("plots");
    create_folder(&plots)?;
    let plots = swept.plot(&plots)?;
    match arguments.format {
        Format::Json => {
            let mut value = serde_json::to_value(&swept).map_err(Failure::failed)?;
            value["folder"] = json!(out);
            output::json(&value)?;
        }
        Format::Text => output::text_out(&text(&swept, &plots, &out))?,
    }
    Ok(match swept.failures().next() {
        Some(_) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

/// The grid and its experiments.
fn sweep(arguments: &Arguments) -> Result<Sweep, Failure> {
    let grid = Grid::parse(arguments.grid.iter().map(String::as_str))?;
    let changes: Vec<String> = arguments.source.changes().collect();
    if let Some(key) = grid.keys().iter().map(|key| key.name()).find(|key| sets(&changes, key)) {
        return Err(Failure::usage(format!("`{key}` is set by -c and by --grid: use one of them")));
    }
    let (text, name) = configuration(arguments.source.config.as_deref())?;
    let changes = overrides(&changes)?;
    let make = |point: &[Override]| {
        Experiment::from_toml(&text, &name, &[changes.as_slice(), point].concat())
    };
    Ok(Sweep::new(grid, arguments.seeds, make)?)
}

fn stopped(done: usize, of: usize, out: &Path, format: Format) -> Result<(), Failure> {
    let folder = out.display().to_string();
    match format {
        Format::Json => output::json(
            &json!({ "stopped": true, "finished": done, "cells": of, "folder": folder }),
        ),
        Format::Text => output::text_out(&format!(
            "\nstopped; {done} of {of} cells are finished and kept in {folder}; go on with the same \
             command\n"
        )),
    }
}

/// The table, what failed, and where all is.
fn text(swept: &Swept, plots: &Plots, out: &Path) -> String {
    let mut header: Vec<&str> = swept.grid.keys().iter().map(|key| key.name()).collect();
    let results = || swept.points.iter().filter_map(|point| point.result.as_ref());
    let settled = results().any(|result| result.accuracy_last5.is_some());
    header.push(">final accuracy");
    if settled {
        header.push(">last five");
    }
    header.extend([">final loss", ">ε provable"]);
    let row = |(settings, point): (Vec<&lapa_study::sweep::Setting>, &Point)| {
        let shown = |of: fn(&PointResult) -> Option<String>| {
            point.result.as_ref().and_then(of).unwrap_or_else(|| "–".into())
        };
        let mut row: Vec<String> = settings.iter().map(|s| s.text().to_owned()).collect();
        row.push(shown(|result| Some(with_interval(result.accuracy_final, 100.0, 2, " %"))));
        if settled {
            row.push(shown(|result| Some(with_interval(result.accuracy_last5?, 100.0, 2, " %"))));
        }
        row.push(shown(|result| Some(with_interval(result.loss_final, 1.0, 4, ""))));
        row.push(shown(|result| Some(round_up(result.epsilon_provable))));
        row
    };
    let rows: Vec<Vec<String>> = swept.grid.points().zip(&swept.points).map(row).collect();
    let seeds = match swept.seeds.len() {
        1 => "one seed, so no interval".to_owned(),
        seeds => format!("mean of {seeds} seeds [95 % interval]"),
    };
    let settled = match settled {
        true => "; last five: mean accuracy of the last five evaluations",
        false => "",
    };
    let mut text =
        format!("\n{}final: after the last round; {seeds}{settled}\n", table(&header, &rows));
    let mut failures = swept.failures().peekable();
    if failures.peek().is_some() {
        text += "failed:\n";
    }
    for (point, cell) in failures {
        let why = cell.error.as_deref().unwrap_or("not run");
        text += &format!("  {}, seed {}: {why}\n", values(point), cell.seed);
    }
    for sentence in &plots.left_out {
        text += &format!("plot {sentence}\n");
    }
    let plots = match plots.files.is_empty() {
        true => "",
        false => ", plots",
    };
    text + &format!("everything is in {}: sweep.json, sweep.parquet{plots}, cells\n", out.display())
}

/// `key=value` for each key.
fn values(point: &Point) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = point.values.iter().map(|(key, value)| format!("{key}={}", text(value)));
    values.collect::<Vec<_>>().join(" ")
}

/// A mean and its interval.
fn with_interval(estimate: Estimate, scale: f64, digits: usize, unit: &str) -> String {
    let mean = format!("{:.digits$}{unit}", scale * estimate.mean);
    match estimate.interval.map(|ends| ends.map(|end| scale * end)) {
        Some([low, high]) => format!("{mean} [{low:.digits$}, {high:.digits$}]"),
        None => mean,
    }
}
