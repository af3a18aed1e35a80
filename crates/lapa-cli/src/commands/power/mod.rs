//! `lapa power`: is it worth optimizing transmit powers, and what does each choice cost?

mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use lapa::config::Experiment;
use lapa::data::Dataset;
use lapa::optimize::ddpg::Agent;
use lapa::optimize::{Ddpg, PowerChoice};
use lapa::run::{RunEvent, RunFolder, is_free};
use lapa_control::phases::{
    Choice, Chooser, PhaseError, check, execute_pilots, notes, with_powers,
};

use super::run::{Screen, flow, stop_on_interrupt};
use crate::failure::{CommandResult, Failure};
use crate::output::{self, Printing};
use crate::progress::{Mode, Steps};

pub use show::sentence;

/// Compare methods of transmit power control and their privacy cost
///
/// A pilot run records the noise that privacy requires in each round ([control] selects its data).
/// Every method then minimizes J, the noise terms of the convergence bound, over the powers, subject
/// to control.least_power_w ≤ Σp² ≤ control.total_power_w and to transmit.max_power_w per device.
///
///   J/full     objective J relative to full power; lower is better
///   T_th       last round with artificial noise: min, median and max over the devices
///   shortfall  largest ratio of required σ to actual σ; 1 if every device has enough noise
///   Σp²        total power in watts
///   ε          proven ε of the worst device: its budget with basis certified, else the ε of the
///              noise in the pilot, with privacy.channel_trust applied
///   ε κ=0      ε of the same noise without any channel noise; a forecast, because the run's noise
///              depends on its own rounds
///
/// Writes to DIR: power.json, powers.toml (the experiment with the best powers, for `lapa run`),
/// curves and powers as SVG and PNG, agent.safetensors, and the pilot run.
///
/// Examples:
///   lapa power experiments/control/config.toml
///   lapa power experiments/control/config.toml -c control.noise=switch -c control.switch.rule=sum
///   lapa power my.toml --only closed-form,cma-es --pilot runs/mine-power-1/pilot --format json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Arguments {
    #[command(flatten)]
    source: super::Source,
    /// Run only these methods.
    #[arg(long, value_name = "NAME,…", value_parser = names(), value_delimiter = ',')]
    only: Vec<String>,
    /// Method whose powers go into powers.toml [default: the one with the lowest J].
    #[arg(long, value_name = "NAME", value_parser = names())]
    choose: Option<String>,
    /// Reuse this finished pilot run of the same experiment.
    #[arg(long, value_name = "DIR")]
    pilot: Option<PathBuf>,
    /// Start DDPG from this saved agent.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// Folder for the results: new, or one with an interrupted pilot, which continues [default:
    /// runs/NAME-power-N].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

pub fn execute(arguments: Arguments) -> CommandResult {
    let mode = Mode::choose(arguments.printing.quiet);
    let out = folder(&arguments, mode)?;
    let chosen = optimizers(&arguments)?;
    let (mut experiment, data) = arguments.source.prepare(None, mode)?;
    // Powers that are given are what is to be replaced.
    experiment.control.power = PowerChoice::File;
    check(&experiment)?;
    let devices = experiment.partition.scheme.devices() as usize;
    for optimizer in chosen.iter().filter_map(|&choice| experiment.control.optimizers.get(choice)) {
        optimizer.check(devices).map_err(PhaseError::from)?;
    }
    notes(&experiment).iter().for_each(|note| mode.notice(&format!("notice: {note}")));
    let agent = arguments.agent.as_deref().map(|path| load_agent(path, &experiment)).transpose()?;
    let ledger = ledger(&arguments, &experiment, &out)?;
    let is_new = !out.exists();
    super::create_folder(&out)?;
    let compared = compare(&arguments, &experiment, &data, agent, &out, &ledger, mode);
    if is_new && compared.is_err() {
        // Only an empty folder goes: what was charged is not in it.
        let _ = std::fs::remove_dir(&out);
    }
    compared
}

/// Runs the pilot, chooses powers in every way, and writes and prints what came of it.
fn compare(
    arguments: &Arguments,
    experiment: &Experiment,
    data: &Dataset,
    agent: Option<Agent>,
    out: &Path,
    ledger: &Path,
    mode: Mode,
) -> CommandResult {
    let optimizers = optimizers(arguments)?;
    stop_on_interrupt("stopping")?;
    let place = arguments.pilot.clone().unwrap_or_else(|| out.join("pilot"));
    let mut screen = Screen::new(mode);
    mode.notice("pilot run:");
    let pilots = execute_pilots(experiment, data, &place, Some(ledger.into()), &mut |event| {
        screen.show(event)
    });
    screen.finish();
    let pilots = match pilots {
        Err(PhaseError::Cancelled(_)) => {
            let place = place.display();
            return stopped(&format!("stopped in the pilot run; continue with --pilot {place}"));
        }
        pilots => pilots?,
    };
    let mut chooser = Chooser::new(experiment, pilots, data)?;
    if let Some(agent) = agent {
        chooser.start_from(agent);
    }
    let mut choices = Vec::new();
    for optimizer in optimizers {
        let (mut progress, name) = (Steps::new(mode), optimizer.to_string());
        let choice = chooser.choose(optimizer, &mut |event| {
            progress.evaluation(&name, &event);
            flow()
        });
        progress.finish();
        for warning in chooser.take_warnings() {
            let _ = screen.show(RunEvent::Warning(&warning));
        }
        match choice {
            Err(PhaseError::Cancelled(_)) => {
                return stopped("stopped; only the pilot run is kept");
            }
            choice => choices.push(choice?),
        }
    }
    let best = best(&choices, arguments.choose.as_deref());
    show::write(&choices, out)?;
    if let Some(agent) = chooser.agent() {
        agent.save(&out.join("agent.safetensors"))?;
    }
    if let Some(best) = best {
        let text = with_powers(experiment, &best.powers_w, ledger)?.to_toml();
        show::write_text(&out.join("powers.toml"), &text)?;
    }
    output::print(arguments.printing.format, &choices, || {
        show::text(&choices, experiment, best, out)
    })
}

/// The choice whose powers are kept: of those that are as good as the best but for rounding, the
/// simplest.
fn best<'a>(choices: &'a [Choice], wanted: Option<&str>) -> Option<&'a Choice> {
    let mut candidates = choices
        .iter()
        .filter(|choice| wanted.is_none_or(|wanted| wanted == choice.optimizer.to_string()));
    let least = candidates.clone().map(|choice| choice.objective).reduce(f64::min)?;
    candidates.find(|choice| choice.objective <= least * (1.0 + 1e-9))
}

/// Values of `--only` and `--choose`.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(PowerChoice::METHODS.iter().map(ToString::to_string))
}

/// Ledger that a pilot on private data is charged to: that of the given pilot, if there is one.
fn ledger(arguments: &Arguments, experiment: &Experiment, out: &Path) -> Result<PathBuf, Failure> {
    let given = match &arguments.pilot {
        Some(pilot) => RunFolder::open(pilot)?.experiment()?.run.ledger,
        None => None,
    };
    let configured = experiment.run.ledger.clone();
    Ok(given.or(configured).unwrap_or_else(|| out.join("ledger.db")))
}

fn optimizers(arguments: &Arguments) -> Result<Vec<PowerChoice>, Failure> {
    let only = &arguments.only;
    let chosen: Vec<PowerChoice> = PowerChoice::METHODS
        .iter()
        .copied()
        .filter(|optimizer| {
            only.is_empty() || only.iter().any(|name| *name == optimizer.to_string())
        })
        .collect();
    match &arguments.choose {
        Some(wanted) if chosen.iter().all(|optimizer| optimizer.to_string() != *wanted) => {
            Err(Failure::usage(format!("--choose {wanted} is not among --only")))
        }
        _ => Ok(chosen),
    }
}

/// The folder for the results: as asked for, or the first free one. One in which a pilot was broken
/// off is as good as free: the pilot goes on, and its ledger is charged no second time.
fn folder(arguments: &Arguments, mode: Mode) -> Result<PathBuf, Failure> {
    if let Some(out) = &arguments.out {
        if is_free(out) || has_only_a_pilot(out) {
            return Ok(out.clone());
        }
        let pilot = out.join("pilot");
        let mut message = format!(
            "--out {} already exists and is not empty: choose another folder",
            out.display()
        );
        if pilot.join("config.resolved.toml").is_file() {
            message += &format!(
                ", and add --pilot {} to reuse the pilot run in it, which may have been charged to \
                 budgets",
                pilot.display()
            );
        }
        return Err(Failure::usage(message));
    }
    let name = arguments.source.name();
    let numbered = |n: u32| Path::new("runs").join(format!("{name}-power-{n}"));
    let free = (1..).find(|&n| is_free(&numbered(n))).unwrap_or_default();
    if let Some(before) = free.checked_sub(1).map(numbered).filter(|out| has_only_a_pilot(out)) {
        mode.notice(&format!(
            "notice: {0} holds an interrupted pilot run; --out {0} continues it",
            before.display()
        ));
    }
    Ok(numbered(free))
}

/// True if a folder holds nothing but a pilot, its ledger and leftovers of their making.
fn has_only_a_pilot(out: &Path) -> bool {
    let ours = |entry: std::io::Result<std::fs::DirEntry>| {
        let Ok(entry) = entry else { return false };
        let (name, kind) = (entry.file_name(), entry.file_type());
        let name = name.to_string_lossy();
        let is_own = name == "pilot"
            || name.starts_with("ledger.db")
            || (name.starts_with(".pilot.") && name.ends_with(".partial"));
        is_own && kind.is_ok_and(|kind| !kind.is_symlink())
    };
    std::fs::read_dir(out).is_ok_and(|mut entries| entries.all(ours))
}

fn load_agent(path: &Path, experiment: &Experiment) -> Result<Agent, Failure> {
    let ddpg = experiment.control.optimizers.ddpg;
    let sizes = Ddpg::sizes(experiment.partition.scheme.devices() as usize, &ddpg);
    Agent::load(path, sizes, ddpg.learning())
        .map_err(|error| Failure::usage(format!("--agent: {error}")))
}

fn stopped(what: &str) -> CommandResult {
    output::say(&format!("\n{what}"));
    Ok(ExitCode::FAILURE)
}
