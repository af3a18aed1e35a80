//! `lapa reproduce`: the paper's figures and claims.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use lapa_study::beyond::{Comparison, NoiseMode, Policy, Row};
use lapa_study::cell::Cell;
use lapa_study::execute::Executed;
use lapa_study::paper::{
    self, Evidence, FIGURES, FIRST_SEED, Reading, Selection, Settings, Verdict, reading,
};
use serde_json::json;

use super::run::flow;
use super::study::{finish, results, run_cells};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Column, Format, Printing, count, say};
use crate::progress::Mode;

/// Reproduce the paper's figures and test its claims
///
/// Each figure needs many runs: the configurations of experiments/paper, with several seeds, each
/// run on one thread. Finished runs are cached in the folder, so the same command continues after an
/// interruption. The figures are then drawn, and every claim of the paper is tested under every
/// reading of what the paper leaves open (experiments/paper/readings.toml) that bears on it: where
/// does it hold? Commands for different claims in the same folder add up to one map.
///
/// Figures: workflow, mechanism, layout, aggregation, beda, noise-levels, heterogeneity, ablation,
/// noise-control, total-power, complexity, overhead, learning-rate, as-printed. Separately: beyond,
/// which compares policies at equal proven privacy on devices of full size.
///
///   lapa reproduce --quick                  preview of every figure in a few minutes
///   lapa reproduce noise-levels --seeds 3   one figure, as near to the text as it trains
///   lapa reproduce --claims 3,4 --shard 1/4 a quarter of the runs for two claims, all readings
///   lapa reproduce                          all figures, all claims, all readings
///   lapa reproduce beyond --epsilon 2       policies at equal proven privacy
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Figures to make, or beyond [default: all figures].
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Claims to test, with their figures: 3 stands for 3a, 3b, … [default: those of the figures].
    #[arg(long, value_name = "C,…", value_delimiter = ',', conflicts_with = "figures")]
    claims: Vec<String>,
    /// Readings of what the paper leaves open, besides the main one; none for the main one alone
    /// [default: all; with a figure or --quick: none].
    #[arg(long, value_name = "R,…", value_delimiter = ',')]
    readings: Vec<String>,
    /// Run only part I of N of the runs, for several machines or sittings. The figures are drawn when
    /// the folder has all parts.
    #[arg(long, value_name = "I/N", value_parser = Shard::parse)]
    shard: Option<Shard>,
    /// Number of seeds, from 100 on (beyond: from 0); readings but the main one have 10 at most.
    /// Intervals need two or more [default: 15, beyond: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// One seed and fewer rounds: a preview of every figure in a few minutes, without verdicts.
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// Runs in parallel, one thread each [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// For beyond: budgets ε of every device [default: 1,2,8].
    #[arg(long, value_name = "E,…", value_delimiter = ',')]
    epsilon: Vec<f64>,
    /// For beyond: policies [default: uniform,lapa,best].
    #[arg(long, value_name = "P,…", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(Policy::ALL.map(Policy::name)))]
    policy: Vec<String>,
    /// For beyond: how artificial noise combines with channel noise [default: always,top-up].
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(NoiseMode::ALL.map(NoiseMode::name)))]
    noise: Vec<String>,
    /// Folder of runs, figures and verdicts [default: runs/reproduce, or runs/reproduce-quick].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// The figure that stands by itself.
const BEYOND: &str = "beyond";
/// The word for no reading but the main one.
const NO_READINGS: &str = "none";

/// Part of the runs.
#[derive(Clone, Copy)]
struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    /// `1/4`
    fn parse(text: &str) -> Result<Self, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(part, of)| Some(Self { part: part.parse().ok()?, of: of.parse().ok()? }));
        numbers
            .filter(|shard| (1..=1000).contains(&shard.of) && (1..=shard.of).contains(&shard.part))
            .ok_or_else(|| "use I/N with I from 1 to N and N up to 1000, such as 1/4".into())
    }
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(arguments.printing.quiet);
    let beyond = arguments.figures == [BEYOND];
    refuse_foreign_flags(&arguments, beyond)?;
    let default = if arguments.quick { "runs/reproduce-quick" } else { "runs/reproduce" };
    let first_seed = if beyond { 0 } else { FIRST_SEED };
    let settings = if arguments.quick {
        Settings::quick(first_seed)
    } else {
        Settings::new(first_seed, arguments.seeds.unwrap_or(if beyond { 3 } else { 15 }))
    };
    let out = arguments.out.clone().unwrap_or_else(|| default.into());
    if beyond {
        self::beyond(&arguments, settings, &out, mode)
    } else {
        figures(&arguments, settings, &out, mode)
    }
}

/// Refuses flags of `beyond` for figures, and the other way around.
fn refuse_foreign_flags(arguments: &Arguments, beyond: bool) -> Result<(), Failure> {
    let Arguments { figures, epsilon, policy, noise, claims, readings, shard, .. } = arguments;
    if !beyond && figures.iter().any(|name| name == BEYOND) {
        let message = "`beyond` runs alone: use one command for it and another for the figures";
        return Err(Failure::usage(message));
    }
    let given = [
        ("--epsilon", true, !epsilon.is_empty()),
        ("--policy", true, !policy.is_empty()),
        ("--noise", true, !noise.is_empty()),
        ("--claims", false, !claims.is_empty()),
        ("--readings", false, !readings.is_empty()),
        ("--shard", false, shard.is_some()),
    ];
    match given.iter().find(|(_, of_beyond, given)| *given && *of_beyond != beyond) {
        None => Ok(()),
        Some((flag, true, _)) => {
            Err(Failure::usage(format!("{flag} works with `lapa reproduce beyond` only")))
        }
        Some((flag, false, _)) => {
            Err(Failure::usage(format!("{flag} does not work with `lapa reproduce beyond`")))
        }
    }
}

fn figures(arguments: &Arguments, settings: Settings, out: &Path, mode: Mode) -> CommandResult {
    let selection = selection(arguments)?;
    let cells = selection.cells(settings)?;
    let part = match arguments.shard {
        None => cells.clone(),
        Some(shard) => part(&cells, shard),
    };
    let mut executed = run_cells(&part, out, arguments.threads, mode)?;
    if let (Some(shard), false) = (arguments.shard, executed.stopped) {
        executed.results = results(&cells, out)?;
        let left = cells.iter().filter(|cell| executed.results.get(cell).is_none());
        let left = left.map(Cell::id).collect::<BTreeSet<_>>().len();
        if left > executed.failures.len() {
            let Shard { part, of } = shard;
            let runs = count(left, "run");
            say(&format!("part {part} of {of} is done; {runs} of other parts still missing"));
            return finish(&executed, out);
        }
    }
    if !executed.stopped {
        let mut complexity = None;
        if selection.figures.iter().any(|figure| figure.name == "complexity") {
            mode.notice("timing DDPG steps …");
            complexity = paper::measure_complexity(&mut flow)?;
        }
        let evidence = Evidence { settings, results: &executed.results, complexity };
        let verdicts = paper::write_all(out, &selection, &evidence)?;
        report(&verdicts, &executed, out, arguments.printing.format)?;
    }
    finish(&executed, out)
}

/// Part of the distinct cells, dealt out in turns, so that all parts take about as long.
fn part(cells: &[Cell], Shard { part, of }: Shard) -> Vec<Cell> {
    let mut seen = BTreeSet::new();
    let distinct = cells.iter().filter(|cell| seen.insert(cell.id()));
    distinct.skip(part - 1).step_by(of).cloned().collect()
}

fn beyond(arguments: &Arguments, settings: Settings, out: &Path, mode: Mode) -> CommandResult {
    let mut comparison = Comparison::default();
    let Arguments { epsilon, policy, noise, .. } = arguments;
    if !epsilon.is_empty() {
        comparison.epsilons = epsilon.clone();
    }
    if !policy.is_empty() {
        comparison.policies =
            Policy::ALL.into_iter().filter(|one| policy.iter().any(|p| p == one.name())).collect();
    }
    if !noise.is_empty() {
        comparison.noises = NoiseMode::ALL
            .into_iter()
            .filter(|one| noise.iter().any(|n| n == one.name()))
            .collect();
    }
    let cells = comparison.cells(settings)?;
    let executed = run_cells(&cells, out, arguments.threads, mode)?;
    if !executed.stopped {
        let evidence = Evidence { settings, results: &executed.results, complexity: None };
        let rows = comparison.write(out, &evidence)?;
        let value = json!({ "folder": out, "rows": rows });
        output::print(arguments.printing.format, &value, || {
            let header =
                ["data", "policy", "noise", ">ε", ">ε proven", ">accuracy", ">vs. uniform"];
            let table = output::table(&header, &rows.iter().map(Row::texts).collect::<Vec<_>>());
            format!("{table}\nResults: {} (beyond.html, beyond.json, figures/)\n", out.display())
        })?;
    }
    finish(&executed, out)
}

/// Figures, claims and readings by their names.
fn selection(arguments: &Arguments) -> Result<Selection, Failure> {
    let names = &arguments.figures;
    let known = FIGURES.map(|figure| figure.name);
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(Failure::usage(format!("unknown figure `{name}`: use {known}, or {BEYOND}")));
    }
    let claims = &arguments.claims;
    let known = paper::claim_names();
    let is_known = |name: &str| known.iter().any(|claim| reading::is_part(claim, name));
    if let Some(name) = claims.iter().find(|name| !is_known(name)) {
        let known = known.join(", ");
        return Err(Failure::usage(format!("unknown claim `{name}`: use {known}")));
    }
    let figures = if !claims.is_empty() {
        paper::figures_of(claims)
    } else {
        let wanted = |name: &str| names.is_empty() || names.iter().any(|other| other == name);
        FIGURES.into_iter().filter(|figure| wanted(figure.name)).collect()
    };
    let main_alone = arguments.quick || !names.is_empty();
    let readings = readings(&arguments.readings, main_alone)?;
    Ok(Selection { figures, claims: claims.clone(), readings })
}

/// The main reading and those with these names, or all of them.
fn readings(names: &[String], main_alone: bool) -> Result<Vec<&'static Reading>, Failure> {
    let known = |name: &str| reading::all().iter().any(|reading| reading.name == name);
    let alone = names == [NO_READINGS] || names.is_empty() && main_alone;
    if let Some(name) = names.iter().find(|name| !alone && !known(name)) {
        let known: Vec<&str> = reading::all().iter().map(|r| r.name.as_str()).collect();
        let known = known.join(", ");
        let message = format!("unknown reading `{name}`: use {known}, or {NO_READINGS}");
        return Err(Failure::usage(message));
    }
    let wanted = |reading: &&Reading| {
        reading.is_main() || !alone && (names.is_empty() || names.contains(&reading.name))
    };
    Ok(reading::all().iter().filter(wanted).collect())
}

fn report(verdicts: &[Verdict], executed: &Executed, out: &Path, format: Format) -> CommandResult {
    let failures: Vec<&str> = executed.failures.iter().map(|(_, why)| why.as_str()).collect();
    let value = json!({ "folder": out, "verdicts": verdicts, "failures": failures });
    let columns: [Column<Verdict>; 4] = [
        ("claim", |verdict| verdict.claim.clone()),
        ("verdict", |verdict| verdict.standing.text().to_owned()),
        ("comparisons", Verdict::counts),
        ("the paper's statement", |verdict| verdict.statement.clone()),
    ];
    output::print(format, &value, || {
        let (table, out) = (output::columns(verdicts, &columns), out.display());
        format!("{table}\nResults: {out} (report.html, verdicts.json, figures/)\n")
    })
}
