//! Pilot, optimization, run: one after the other.

mod choice;
mod error;
mod job;
mod judge;
mod live;
mod pilot;
mod rehearsal;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lapa::atomic::{write_atomically, write_json};
use lapa::config::{
    Access, BoundForm, Experiment, MOST_FITTED, Pilot as PilotData, PilotTooLarge, Powers,
};
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::files;
use lapa::files::FileError;
use lapa::observe::RoundRecord;
use lapa::optimize::{Limits, PowerChoice, Progress};
use lapa::radio::Threshold;
use lapa::run::{
    Outcome, Run, RunError, RunEvent, RunFolder, fingerprint, is_free, read_records, read_summary,
};
use lapa::simulation::{Cancelled, Event, Setup, Simulation};
use lapa_privacy::ledger::Ledger;

pub use choice::{Choice, Chooser};
pub use error::PhaseError;
pub use job::{Destination, InMemory, Job, Unfinished};
pub use judge::Judgment;
use judge::{Chosen, rounds};
pub use live::Live;
pub use pilot::{Pilot, pilot_data, pilot_experiment};
use rehearsal::rehearse;

use crate::bound::{self, Constants};
use crate::power::{NoiseRule, Problem};

/// Event of a run and of the pilot and choice before it. Any listener may break off.
pub enum PhaseEvent<'a> {
    /// Event of the pilot run.
    Pilot(RunEvent<'a>),
    /// Powers are being chosen.
    Optimizing {
        /// The method.
        optimizer: PowerChoice,
        /// Its progress.
        progress: Progress,
    },
    /// Powers are chosen.
    Chosen(&'a Choice),
    /// Event of the run itself.
    Run(RunEvent<'a>),
    /// J of the finished run, in words.
    Judged(&'a str),
}

/// A listener that may break off after any event.
pub(crate) type Listener<'a> = dyn FnMut(PhaseEvent<'_>) -> ControlFlow<()> + 'a;

/// A listener that hears each warning of the pilots once: there may be several, and trainings after them.
fn warned_once<'a>(
    on_event: &'a mut Listener<'_>,
) -> impl FnMut(PhaseEvent<'_>) -> ControlFlow<()> + 'a {
    let mut heard = BTreeSet::new();
    move |event| match event {
        PhaseEvent::Pilot(RunEvent::Warning(text)) if !heard.insert(text.to_owned()) => {
            ControlFlow::Continue(())
        }
        event => on_event(event),
    }
}

/// P_min, P_max and P_0 of an experiment.
pub fn limits(experiment: &Experiment) -> Result<Limits, PhaseError> {
    let control = &experiment.control;
    Ok(Limits::new(
        experiment.partition.scheme.devices() as usize,
        control.least_power_w,
        control.total_power_w,
        experiment.transmit.max_power_w,
    )?)
}

/// P1 for an experiment, on the trace of its pilot.
///
/// Differs from the paper: where its A is above 1, it is taken as 1.
pub fn problem(experiment: &Experiment, pilot: &Pilot) -> Result<Problem, PhaseError> {
    let control = &experiment.control;
    let rule = NoiseRule::from_control(control);
    let trace = pilot.trace.clone();
    // ΣG_k² of a round, on the average.
    let squares = trace.arrays().weights.iter().map(|weight| weight * weight).sum::<f64>();
    let contraction = contraction(experiment, squares / trace.rounds() as f64)?;
    // Above 1 the learning rate is beyond what the theorem covers: all rounds then weigh the same.
    let contraction = contraction.min(1.0);
    Ok(Problem::new(trace, rule, control.bound, contraction, limits(experiment)?)?)
}

/// Folder of the pilot of a run in `out`.
pub fn pilot_folder(out: &Path) -> PathBuf {
    beside(out, "-pilot")
}

fn beside(out: &Path, suffix: &str) -> PathBuf {
    // Collected anew, a path has no slash at its end.
    let mut name = out.components().collect::<PathBuf>().into_os_string();
    name.push(suffix);
    name.into()
}

/// The experiment with paths that hold in any folder.
fn absolute(experiment: Experiment) -> Result<Experiment, PhaseError> {
    Ok(experiment.with_absolute_paths().map_err(|(path, source)| FileError {
        action: "find",
        path,
        source,
    })?)
}

/// Refuses what would fail after the pilot, before anything is spent.
pub fn check(experiment: &Experiment) -> Result<(), PhaseError> {
    if !experiment.transmit.uplink.is_analog() {
        return Err(PhaseError::NoAmplitudes);
    }
    if experiment.privacy.is_none() {
        return Err(PhaseError::NoNoise);
    }
    let (rounds, devices) = (experiment.run.rounds, experiment.partition.scheme.devices());
    if devices > MOST_FITTED {
        return Err(PhaseError::TooManyPowers { devices });
    }
    PilotTooLarge::check(rounds, devices)?;
    if let Some(optimizer) = experiment.control.optimizers.get(experiment.control.power) {
        optimizer.check(devices as usize)?;
    }
    limits(experiment)?;
    contraction(experiment, 1.0)?;
    pilot::expect_sender(experiment)
}

/// Caveats of powers that are chosen for this experiment.
pub fn notes(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    if experiment.aggregate.threshold != Threshold::None {
        notes.push(
            "the set of transmitting devices is taken from the pilot run (equal power): thresholds in \
             [aggregate] are not applied to other powers"
                .into(),
        );
    }
    let transmit = &experiment.transmit;
    if transmit.access == Access::Noma && !transmit.perfect_sic {
        notes.push("interference is ignored: the objective counts receiver noise only".into());
    }
    if let Ok(factor @ 1.0..) = contraction(experiment, 1.0) {
        notes.push(format!(
            "A = {factor:.3}: the convergence theorem does not cover this learning rate, so all rounds \
             have the same weight"
        ));
    }
    notes
}

/// A of the bound; `squares` is ΣG_k², which the printed form has.
fn contraction(experiment: &Experiment, squares: f64) -> Result<f64, PhaseError> {
    let control = &experiment.control;
    let constants = Constants {
        smoothness: control.smoothness,
        convexity: control.convexity,
        dissimilarity: control.dissimilarity,
        learning_rate: experiment.learn.learning_rate,
    };
    Ok(match control.bound {
        BoundForm::Corrected => bound::corrected_contraction(&constants)?,
        BoundForm::Printed => bound::printed_contraction(&constants, squares)?,
    })
}

/// The experiment of a run that was interrupted in its pilot or choice, if there is one.
pub fn interrupted(out: &Path) -> Result<Option<Experiment>, PhaseError> {
    let path = pilot_folder(out).join(EXPERIMENT);
    if !is_free(out) || !path.is_file() {
        return Ok(None);
    }
    let text = files::read_to_string(&path).map_err(FileError::on("read", &path))?;
    let experiment = Experiment::from_toml(&text, &path.display().to_string(), &[]);
    Ok(Some(experiment?))
}

/// The experiment of the run, in the pilot's folder.
const EXPERIMENT: &str = "staged.toml";

/// A run in the new folder `out` after a pilot, in a folder beside it, and the choice of powers. A pilot
/// of the same experiment that is there already goes on, or is used as it is.
///
/// A pilot on private data is charged: it and the run share a ledger and its budgets.
fn pilot_and_run(
    experiment: Experiment,
    data: Dataset,
    out: &Path,
    on_event: &mut Listener<'_>,
) -> Result<Outcome, PhaseError> {
    let experiment = absolute(experiment)?;
    if !is_free(out) {
        return Err(RunError::Exists(out.into()).into());
    }
    check(&experiment)?;
    if let Some(above) = out.parent() {
        fs::create_dir_all(above).map_err(FileError::on("create", above))?;
    }
    // Shared by a pilot on private data and its run.
    let ledger = experiment.run.ledger.clone().unwrap_or_else(|| beside(out, "-ledger.db"));
    let choice = match pilot_and_choice(&experiment, &data, &pilot_folder(out), &ledger, on_event) {
        // The pilot's folder can be resumed.
        Err(PhaseError::Cancelled(_)) => return Ok(Outcome::Stopped { round: 0 }),
        choice => choice?,
    };
    let chosen = with_powers(&experiment, &choice.powers_w, &ledger)?;
    let run = Run::create(chosen, data.clone(), out)?;
    rounds(run, Some(&Chosen { choice, data }), on_event)
}

/// The choice of powers after pilots in `folder` and beside it; it is kept in `folder`.
fn pilot_and_choice(
    experiment: &Experiment,
    data: &Dataset,
    folder: &Path,
    ledger: &Path,
    on_event: &mut Listener<'_>,
) -> Result<Choice, PhaseError> {
    let on_event = &mut warned_once(on_event);
    let pilots = execute_pilots(experiment, data, folder, Some(ledger.into()), &mut |event| {
        on_event(PhaseEvent::Pilot(event))
    })?;
    let (choice, chooser) = choose(experiment, data, pilots, ledger, on_event)?;
    if let Some(agent) = chooser.agent() {
        agent.save(&folder.join("agent.safetensors"))?;
    }
    let path = folder.join("power.json");
    write_json(&path, &choice).map_err(FileError::on("write", &path))?;
    go_on(on_event(PhaseEvent::Chosen(&choice)))?;
    Ok(choice)
}

/// The choice of the experiment's optimizer, or equal power where that is better on the pilots or in
/// the rehearsal.
fn choose(
    experiment: &Experiment,
    data: &Dataset,
    pilots: Vec<Pilot>,
    ledger: &Path,
    on_event: &mut Listener<'_>,
) -> Result<(Choice, Chooser), PhaseError> {
    let optimizer = experiment.control.power;
    let mut chooser = Chooser::new(experiment, pilots, data)?;
    let choice = chooser.choose(optimizer, &mut |progress| {
        on_event(PhaseEvent::Optimizing { optimizer, progress })
    });
    for warning in chooser.take_warnings() {
        go_on(on_event(PhaseEvent::Pilot(RunEvent::Warning(&warning))))?;
    }
    let mut choice = choice?;
    if choice.over_equal() <= 1.0 {
        choice.rehearsed = rehearse(experiment, data, &choice.powers_w, ledger, on_event)?;
    }
    Ok((chooser.or_equal(choice)?, chooser))
}

/// A break of the listener as an error.
fn go_on(flow: ControlFlow<()>) -> Result<(), Cancelled> {
    if flow.is_break() { Err(Cancelled) } else { Ok(()) }
}

/// The experiment with these powers, ready to run. After a pilot on private data, which was charged
/// to `ledger`, it records there too: the budgets are the same.
pub fn with_powers(
    experiment: &Experiment,
    powers_w: &[f64],
    ledger: &Path,
) -> Result<Experiment, PhaseError> {
    let mut chosen = experiment.clone();
    chosen.control.power = PowerChoice::File;
    chosen.transmit.power_w = Powers::Each(powers_w.to_vec());
    if experiment.control.pilot != PilotData::Synthetic {
        chosen.run.ledger = Some(ledger.into());
    }
    absolute(chosen)
}

/// Runs the pilots of an experiment, the first in `folder` and others beside it, or goes on with those
/// that are there. `ledger` is where pilots on private data are charged.
pub fn execute_pilots(
    experiment: &Experiment,
    data: &Dataset,
    folder: &Path,
    ledger: Option<PathBuf>,
    on_event: &mut dyn FnMut(RunEvent<'_>) -> ControlFlow<()>,
) -> Result<Vec<Pilot>, PhaseError> {
    let experiment = &absolute(experiment.clone())?;
    let data = pilot_data(experiment, data)?;
    let pilot = |number: u32| {
        let wanted = absolute(pilot_experiment(experiment, ledger.clone(), number))?;
        let folder = match number {
            0 => folder.into(),
            _ => beside(folder, &format!("-{}", number + 1)),
        };
        execute_pilot(experiment, wanted, data.clone(), &folder, on_event)
    };
    (0..experiment.control.pilots).map(pilot).collect()
}

/// Runs one pilot of an experiment in `folder`, or goes on with the one that is there.
fn execute_pilot(
    experiment: &Experiment,
    wanted: Experiment,
    data: Dataset,
    folder: &Path,
    on_event: &mut dyn FnMut(RunEvent<'_>) -> ControlFlow<()>,
) -> Result<Pilot, PhaseError> {
    let run = if is_free(folder) {
        Some(Run::create(wanted.clone(), data.clone(), folder)?)
    } else {
        let there = RunFolder::open(folder)?;
        let mut found = there.experiment()?;
        found.run.threads = wanted.run.threads;
        if found != wanted {
            return Err(PhaseError::OtherPilot(folder.into()));
        }
        match read_summary(folder)? {
            Some(_) => {
                expect_releases(&there, &wanted)?;
                None
            }
            None => Some(Run::resume(there, found, data.clone())?),
        }
    };
    let path = folder.join(EXPERIMENT);
    write_atomically(&path, |file| file.write_all(experiment.to_toml().as_bytes()))
        .map_err(FileError::on("write", &path))?;
    if let Some(run) = run
        && let Outcome::Stopped { .. } = lapa_report::run::execute(run, on_event)?
    {
        return Err(Cancelled.into());
    }
    let federation = Simulation::new(wanted, data)?;
    let devices = federation.books().devices();
    let records = read_records(folder, federation.experiment(), devices)?;
    let mut pilot = Pilot::new(&federation, &records)?;
    if let Some(factor) = budget_factor(&federation)? {
        pilot.trace = pilot.trace.scaled(factor)?;
    }
    Ok(pilot)
}

/// The pilots of an experiment without a folder. Those on private data are charged to `ledger`, and
/// refused on basis certified.
fn pilots_in_memory(
    experiment: &Experiment,
    data: &Dataset,
    ledger: &Path,
    on_event: &mut Listener<'_>,
) -> Result<Vec<Pilot>, PhaseError> {
    check(experiment)?;
    if experiment.control.pilot != PilotData::Synthetic && experiment.is_certified() {
        return Err(PhaseError::NoFolder);
    }
    let data = pilot_data(experiment, data)?;
    let pilot = |number: u32| {
        let pilot = pilot_experiment(experiment, Some(ledger.into()), number);
        let mut simulation = charged(pilot, data.clone())?;
        let on_event = &mut |event: Event<'_>| on_event(PhaseEvent::Pilot(event.into()));
        let records = run_in_memory(&mut simulation, on_event)?;
        Pilot::new(&simulation, &records)
    };
    (0..experiment.control.pilots).map(pilot).collect()
}

/// A simulation in memory that records its releases in the experiment's ledger, if it has one. The same
/// experiment repeats them.
fn charged(experiment: Experiment, data: Dataset) -> Result<Simulation, PhaseError> {
    let Some(path) = &experiment.run.ledger else { return Ok(Simulation::new(experiment, data)?) };
    let (ledger, name) = (Ledger::open(path)?, fingerprint(&experiment));
    let recorded = Setup::new(experiment, data)?.record_in(ledger, &name);
    Ok(recorded.map_err(FederationError::from)?)
}

/// Runs a simulation and keeps its records.
fn run_in_memory(
    simulation: &mut Simulation,
    listener: &mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
) -> Result<Vec<RoundRecord>, FederationError> {
    let mut records = Vec::new();
    simulation.run(&mut |_, event| {
        if let Event::Round(record) = event {
            records.push(record.clone());
        }
        listener(event)
    })?;
    Ok(records)
}

/// A finished pilot on private data counts only if its releases are in the ledger.
fn expect_releases(folder: &RunFolder, pilot: &Experiment) -> Result<(), PhaseError> {
    let Some(path) = &pilot.run.ledger else { return Ok(()) };
    let lost = || PhaseError::NotCharged { pilot: folder.path().into(), ledger: path.clone() };
    if !path.is_file() {
        return Err(lost());
    }
    let name = folder.manifest()?.run;
    let releases = Ledger::open_read_only(path).and_then(|ledger| ledger.releases());
    let last = releases?.iter().filter(|r| r.run.starts_with(&name)).map(|r| r.round).max();
    if last == Some(pilot.run.rounds) { Ok(()) } else { Err(lost()) }
}

/// Ratio of the noise that the run's part of the budget requires to that of the pilot's part; `None`
/// if the pilot had a budget of its own.
fn budget_factor(pilot: &Simulation) -> Result<Option<f64>, PhaseError> {
    let Some(privacy) = &pilot.experiment().privacy else { return Ok(None) };
    let fraction = privacy.budget_fraction;
    if fraction == 1.0 {
        return Ok(None);
    }
    let sigma = |part: f64| pilot.books().even_sigma(0, part).map_err(FederationError::from);
    Ok(sigma(1.0 - fraction)?.zip(sigma(fraction)?).map(|(run, pilot)| run / pilot))
}
