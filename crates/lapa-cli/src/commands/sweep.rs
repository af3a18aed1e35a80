//! `lapa sweep`: one experiment over a grid of keys and several seeds.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use lapa::budget::round_up;
use lapa::config::{Experiment, Override};
use lapa_study::statistics::Estimate;
use lapa_study::sweep::{Grid, Plots, Point, Setting, Sweep, SweepResults};
use serde_json::{Value, json};

use super::study::run_loaded;
use super::{configuration, create_folder, overrides, sets};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Format, Printing, table};
use crate::progress::Mode;

/// Run an experiment over a grid of values and several seeds
///
/// Each --grid names a key and its values. All combinations run, each with --seeds seeds counted
/// from run.seed. Values are written as in -c: TOML, where a bare word is a string; commas inside
/// brackets and quotes belong to the value.
///
/// Prints, for every combination, the mean test accuracy after the last round, its 95 % interval
/// over the seeds, and the proven ε of the worst device and seed. If the last five evaluations lie
/// in the last fifth of the rounds, their mean is printed as "last five". The folder receives
/// sweep.json, sweep.parquet and a plot per key.
///
/// Finished runs are cached in DIR/cells. After Ctrl-C the same command continues; a larger grid in
/// the same folder runs only the new combinations. The runs are simulations in memory on one thread
/// each and write no ledger. The ε of a combination does not cover the choice among combinations.
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
    /// Key and its values; repeatable.
    #[arg(long, value_name = "KEY=A,B,C", required = true)]
    grid: Vec<String>,
    /// Seeds per combination; intervals need two or more.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Runs in parallel, 0 for one per core (the default). Results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: Option<u32>,
    /// Folder of runs and results; finished runs in it are not repeated [default: runs/NAME-sweep].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(arguments.printing.quiet);
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
        return stopped(done, cells.len(), &out, arguments.printing.format);
    }
    let swept = SweepResults::new(&sweep, &executed);
    swept.write(&out)?;
    let plots = out.join("plots");
    create_folder(&plots)?;
    let plots = swept.plot(&plots)?;
    let mut value = serde_json::to_value(&swept)?;
    value["folder"] = json!(out);
    output::print(arguments.printing.format, &value, || text(&swept, &plots, &out))?;
    let any_failed = swept.failures().next().is_some();
    Ok(if any_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The grid and its experiments.
fn sweep(arguments: &Arguments) -> Result<Sweep, Failure> {
    let grid = Grid::parse(arguments.grid.iter().map(String::as_str))?;
    let changes: Vec<String> = arguments.source.changes().collect();
    if let Some(key) = grid.keys().iter().map(|key| key.name()).find(|key| sets(&changes, key)) {
        return Err(Failure::usage(format!(
            "`{key}` is set by both -c and --grid: use one of them"
        )));
    }
    let (text, name) = configuration(arguments.source.config.as_deref())?;
    let changes = overrides(&changes)?;
    let make = |point: &[Override]| {
        Experiment::from_toml(&text, &name, &[changes.as_slice(), point].concat())
    };
    Ok(Sweep::new(grid, arguments.seeds, make)?)
}

fn stopped(done: usize, of: usize, out: &Path, format: Format) -> CommandResult {
    let folder = out.display().to_string();
    let value = json!({ "stopped": true, "finished": done, "cells": of, "folder": folder });
    output::print(format, &value, || {
        format!(
            "\nstopped; {done} of {of} runs are finished and kept in {folder}; repeat the command \
             to continue\n"
        )
    })?;
    Ok(ExitCode::FAILURE)
}

/// Heading of the paired differences.
const OVER_FIRST: &str = ">over the first (points)";

/// The table, what failed, and where all is.
fn text(swept: &SweepResults, plots: &Plots, out: &Path) -> String {
    let mut results = swept.points.iter().filter_map(|point| point.result.as_ref());
    let settled = results.any(|result| result.accuracy_last5.is_some());
    type Column = (&'static str, fn(&Point) -> Option<String>);
    let mut columns: Vec<Column> = vec![
        (">final accuracy", |p| {
            Some(with_interval(p.result.as_ref()?.accuracy_final, 100.0, 2, " %"))
        }),
        (">last five", |p| Some(with_interval(p.result.as_ref()?.accuracy_last5?, 100.0, 2, " %"))),
        (OVER_FIRST, |p| Some(with_interval(p.over_first.as_ref()?.mean, 100.0, 2, ""))),
        (">final loss", |p| Some(with_interval(p.result.as_ref()?.loss_final, 1.0, 4, ""))),
        (">ε proven", |p| Some(round_up(p.result.as_ref()?.epsilon_provable))),
        ("seeds", |p| {
            let finished = p.cells.iter().filter(|cell| cell.result.is_some()).count();
            Some(format!("{finished} of {}", p.cells.len()))
        }),
    ];
    let any_failed = swept.failures().next().is_some();
    columns.retain(|(name, _)| match *name {
        ">last five" => settled,
        OVER_FIRST => swept.points.len() > 1,
        "seeds" => any_failed,
        _ => true,
    });
    let keys = swept.grid.keys().iter().map(|key| key.name());
    let header: Vec<&str> = keys.chain(columns.iter().map(|(name, _)| *name)).collect();
    let row = |(settings, point): (Vec<&Setting>, &Point)| {
        let keys = settings.iter().map(|setting| setting.text().to_owned());
        let cell = |(_, cell): &Column| cell(point).unwrap_or_else(|| "–".into());
        keys.chain(columns.iter().map(cell)).collect()
    };
    let rows: Vec<Vec<String>> = swept.grid.points().zip(&swept.points).map(row).collect();
    let seeds = match swept.seeds.len() {
        1 => "one seed, no interval".to_owned(),
        seeds => format!("mean over {seeds} seeds [95 % confidence interval]"),
    };
    let settled =
        if settled { "; last five: mean accuracy of the last five evaluations" } else { "" };
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
    let plots = if plots.files.is_empty() { "" } else { ", plots" };
    text + &format!("Results: {} (sweep.json, sweep.parquet{plots}, cells)\n", out.display())
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
