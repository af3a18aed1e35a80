//! `lapa reproduce`: the paper's figures and claims.

use std::path::{Path, PathBuf};

use clap::Args;
use lapa_study::beyond::{Comparison, Noise, Policy, Row};
use lapa_study::execute::Executed;
use lapa_study::paper::{self, PaperFigure, Seen, Settings, Verdict};
use serde_json::json;

use super::run::flow;
use super::study::{finish, run_cells};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::progress::Mode;

/// Regenerate the paper's figures and judge its claims
///
/// Every figure is made of cells: a configuration of experiments/paper with a seed, each run on
/// one thread. Finished cells are kept in the folder, so that the same command goes on after an
/// interruption. Then figures are drawn, and every claim of the paper is judged by 95 % intervals
/// over the seeds.
///
/// Figures: workflow, mechanism, layout, aggregation, noise-levels, heterogeneity, noise-control,
/// total-power, complexity, overhead, learning-rate, as-printed. And by itself: beyond, which
/// compares policies at equal provable privacy on devices of full size.
///
///   lapa reproduce --quick                  a look at everything in a few minutes
///   lapa reproduce noise-levels --seeds 3   one figure
///   lapa reproduce                          all of it
///   lapa reproduce beyond --epsilon 2       policies at equal provable privacy
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    /// The figures, or beyond; all figures when none is named.
    #[arg(value_name = "FIGURE")]
    figures: Vec<String>,
    /// Seeds of every cell; intervals need two or more. Default: 5, of beyond 3.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// One seed and fewer rounds: a look at every figure in a few minutes, without verdicts.
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// Threads; each runs one cell. Default: one per core.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Of beyond: budgets ε of every device. Default: 1,2,8.
    #[arg(long, value_name = "E,…", value_delimiter = ',')]
    epsilon: Vec<f64>,
    /// Of beyond: policies. Default: uniform,lapa,best.
    #[arg(long, value_name = "P,…", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(Policy::ALL.map(Policy::name)))]
    policy: Vec<String>,
    /// Of beyond: what artificial noise does beside the channel's. Default: always,top-up.
    #[arg(long, value_name = "N,…", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(Noise::ALL.map(Noise::name)))]
    noise: Vec<String>,
    /// The folder of cells, figures and verdicts. Default: runs/reproduce, or runs/reproduce-quick.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print no progress.
    #[arg(long)]
    quiet: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The figure that stands by itself.
const BEYOND: &str = "beyond";

pub fn execute(arguments: Arguments) -> Outcome {
    let mode = Mode::choose(arguments.quiet);
    let beyond = arguments.figures == [BEYOND];
    if !beyond {
        refuse_flags_of_beyond(&arguments)?;
    }
    let (settings, default) = match arguments.quick {
        true => (Settings { seeds: 1, quick: true }, "runs/reproduce-quick"),
        false => {
            let seeds = arguments.seeds.unwrap_or(if beyond { 3 } else { 5 });
            (Settings { seeds, quick: false }, "runs/reproduce")
        }
    };
    let out = arguments.out.clone().unwrap_or_else(|| default.into());
    match beyond {
        true => self::beyond(&arguments, settings, &out, mode),
        false => figures(&arguments, settings, &out, mode),
    }
}

fn refuse_flags_of_beyond(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.figures.iter().any(|name| name == BEYOND) {
        let message = "beyond stands by itself: name it alone, and the figures in another command";
        return Err(Failure::usage(message));
    }
    let Arguments { epsilon, policy, noise, .. } = arguments;
    for (flag, given) in [
        ("--epsilon", !epsilon.is_empty()),
        ("--policy", !policy.is_empty()),
        ("--noise", !noise.is_empty()),
    ] {
        if given {
            return Err(Failure::usage(format!("{flag} is of `lapa reproduce beyond` only")));
        }
    }
    Ok(())
}

fn figures(arguments: &Arguments, settings: Settings, out: &Path, mode: Mode) -> Outcome {
    let figures = chosen(&arguments.figures)?;
    let cells = paper::cells(&figures, settings)?;
    let executed = run_cells(&cells, out, arguments.threads, mode)?;
    if !executed.stopped {
        let complexity = match figures.iter().any(|figure| figure.name() == "complexity") {
            true => {
                mode.notice("timing steps of DDPG");
                paper::measure_complexity(&mut flow)?
            }
            false => None,
        };
        let seen = Seen { settings, results: &executed.results, complexity };
        let verdicts = paper::write_all(out, &figures, &seen).map_err(Failure::failed)?;
        report(&verdicts, &executed, out, arguments.format)?;
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
        match arguments.format {
            Format::Json => output::json(&json!({ "folder": out, "rows": rows }))?,
            Format::Text => output::text_out(&format!(
                "{}\nall of it is in {}: beyond.html, beyond.json, figures/\n",
                output::table(&BEYOND_HEADER, &rows.iter().map(Row::texts).collect::<Vec<_>>()),
                out.display()
            ))?,
        }
    }
    finish(&executed, out)
}

const BEYOND_HEADER: [&str; 7] =
    ["data", "policy", "noise", ">ε", ">ε proved", ">accuracy", ">over uniform"];

/// The figures with these names, in the paper's order.
fn chosen(names: &[String]) -> Result<Vec<&'static dyn PaperFigure>, Failure> {
    let all = paper::figures();
    for name in names {
        if !all.iter().any(|figure| figure.name() == name) {
            let known: Vec<&str> = all.iter().map(|figure| figure.name()).collect();
            return Err(Failure::usage(format!(
                "unknown figure `{name}`: use {}",
                known.join(", ")
            )));
        }
    }
    let wanted = |figure: &&dyn PaperFigure| {
        names.is_empty() || names.iter().any(|name| name == figure.name())
    };
    Ok(all.into_iter().filter(wanted).collect())
}

fn report(
    verdicts: &[Verdict],
    executed: &Executed,
    out: &Path,
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Json {
        let failures: Vec<&str> = executed.failures.iter().map(|(_, why)| why.as_str()).collect();
        return output::json(&json!({ "folder": out, "verdicts": verdicts, "failures": failures }));
    }
    let rows: Vec<Vec<String>> = verdicts
        .iter()
        .map(|verdict| {
            let hold = verdict.comparisons.iter().filter(|c| c.holds == Some(true)).count();
            vec![
                verdict.claim.clone(),
                verdict.word.text().to_owned(),
                format!("{hold} of {}", verdict.comparisons.len()),
                verdict.statement.clone(),
            ]
        })
        .collect();
    let table = output::table(&["claim", "verdict", ">hold", "the paper says"], &rows);
    output::text_out(&format!(
        "{table}\nall of it is in {}: report.html, verdicts.json, figures/\n",
        out.display()
    ))
}
