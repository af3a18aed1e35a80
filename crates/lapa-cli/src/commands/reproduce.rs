//! `lapa reproduce`: the paper's figures and claims.

use std::path::{Path, PathBuf};

use clap::Args;
use lapa_study::beyond::{Comparison, Noise, Policy, Row};
use lapa_study::execute::Executed;
use lapa_study::paper::{self, FIGURES, PaperFigure, Seen, Settings, Verdict};
use serde_json::json;

use super::run::flow;
use super::study::{finish, run_cells};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Column, Format, Printing};
use crate::progress::Mode;

/// Reproduce the paper's figures and test its claims
///
/// Each figure needs many runs: the configurations of experiments/paper, with several seeds, each
/// run on one thread. Finished runs are cached in the folder, so the same command continues after an
/// interruption. The figures are then drawn, and every claim of the paper is tested with 95 %
/// intervals over the seeds.
///
/// Figures: workflow, mechanism, layout, aggregation, noise-levels, heterogeneity, noise-control,
/// total-power, complexity, overhead, learning-rate, as-printed. Separately: beyond, which compares
/// policies at equal proven privacy on devices of full size.
///
///   lapa reproduce --quick                  preview of every figure in a few minutes
///   lapa reproduce noise-levels --seeds 3   one figure
///   lapa reproduce                          all figures
///   lapa reproduce beyond --epsilon 2       policies at equal proven privacy
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// Figures to make, or beyond [default: all figures].
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Number of seeds; intervals need two or more [default: 5, beyond: 3].
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
          value_parser = clap::builder::PossibleValuesParser::new(Noise::ALL.map(Noise::name)))]
    noise: Vec<String>,
    /// Folder of runs, figures and verdicts [default: runs/reproduce, or runs/reproduce-quick].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// The figure that stands by itself.
const BEYOND: &str = "beyond";

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(arguments.printing.quiet);
    let beyond = arguments.figures == [BEYOND];
    if !beyond {
        refuse_flags_of_beyond(&arguments)?;
    }
    let (settings, default) = if arguments.quick {
        (Settings { seeds: 1, quick: true }, "runs/reproduce-quick")
    } else {
        let seeds = arguments.seeds.unwrap_or(if beyond { 3 } else { 5 });
        (Settings { seeds, quick: false }, "runs/reproduce")
    };
    let out = arguments.out.clone().unwrap_or_else(|| default.into());
    if beyond {
        self::beyond(&arguments, settings, &out, mode)
    } else {
        figures(&arguments, settings, &out, mode)
    }
}

fn refuse_flags_of_beyond(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.figures.iter().any(|name| name == BEYOND) {
        let message = "`beyond` runs alone: use one command for it and another for the figures";
        return Err(Failure::usage(message));
    }
    let Arguments { epsilon, policy, noise, .. } = arguments;
    let given = [
        ("--epsilon", !epsilon.is_empty()),
        ("--policy", !policy.is_empty()),
        ("--noise", !noise.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((flag, _)) => {
            Err(Failure::usage(format!("{flag} works with `lapa reproduce beyond` only")))
        }
    }
}

fn figures(arguments: &Arguments, settings: Settings, out: &Path, mode: Mode) -> Outcome {
    let figures = chosen(&arguments.figures)?;
    let cells = paper::cells(&figures, settings)?;
    let executed = run_cells(&cells, out, arguments.threads, mode)?;
    if !executed.stopped {
        let mut complexity = None;
        if figures.iter().any(|figure| figure.name == "complexity") {
            mode.notice("timing DDPG steps …");
            complexity = paper::measure_complexity(&mut flow)?;
        }
        let seen = Seen { settings, results: &executed.results, complexity };
        let verdicts = paper::write_all(out, &figures, &seen).map_err(Failure::failed)?;
        report(&verdicts, &executed, out, arguments.printing.format)?;
    }
    finish(&executed, out)
}

fn beyond(arguments: &Arguments, settings: Settings, out: &Path, mode: Mode) -> Outcome {
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
        comparison.noises =
            Noise::ALL.into_iter().filter(|one| noise.iter().any(|n| n == one.name())).collect();
    }
    let cells = comparison.cells(settings)?;
    let executed = run_cells(&cells, out, arguments.threads, mode)?;
    if !executed.stopped {
        let seen = Seen { settings, results: &executed.results, complexity: None };
        let rows = comparison.write(out, &seen).map_err(Failure::failed)?;
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

/// The figures with these names, in the paper's order.
fn chosen(names: &[String]) -> Result<Vec<PaperFigure>, Failure> {
    let known = FIGURES.map(|figure| figure.name);
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        let known = known.join(", ");
        return Err(Failure::usage(format!("unknown figure `{name}`: use {known}, or {BEYOND}")));
    }
    let wanted =
        |figure: &PaperFigure| names.is_empty() || names.iter().any(|name| name == figure.name);
    Ok(FIGURES.into_iter().filter(wanted).collect())
}

fn report(verdicts: &[Verdict], executed: &Executed, out: &Path, format: Format) -> Outcome {
    let failures: Vec<&str> = executed.failures.iter().map(|(_, why)| why.as_str()).collect();
    let value = json!({ "folder": out, "verdicts": verdicts, "failures": failures });
    let columns: [Column<Verdict>; 4] = [
        ("claim", |verdict| verdict.claim.clone()),
        ("verdict", |verdict| verdict.word.text().to_owned()),
        (">comparisons that hold", Verdict::holding),
        ("the paper's statement", |verdict| verdict.statement.clone()),
    ];
    output::print(format, &value, || {
        let (table, out) = (output::columns(verdicts, &columns), out.display());
        format!("{table}\nResults: {out} (report.html, verdicts.json, figures/)\n")
    })
}
