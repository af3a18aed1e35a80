//! The releases of a run, drawn again and again.

use lapa::simulation::Cancelled;
use lapa_privacy::{Mechanism, Release};
use lapa_report::page::Table;

use super::{Bounds, Device, DeviceReleases, Distinguisher, Neighbors, draw};
use crate::{
    Attack, AuditError, Effort, Exhibit, Finding, Listener, Options, Progress, Repeated, Statement,
};

/// The part of the level that goes to records whose gradients are not numbers: what they give away
/// is gross, or nothing.
const HOSTILE: f64 = 0.1;
/// Draws that look at such records.
const HOSTILE_DRAWS: u64 = 500;
/// Records that are gone through in all draws of a quick audit, about.
const QUICK_WORK: f64 = 3e8;

/// Audits the releases of the worst device of a repeated run.
///
/// The bound through μ is there if every release is declared as Gaussian noise without sampling: then
/// what is proved is that the run is μ-GDP, and what the paper claims is at least what its formulas'
/// own noise and sensitivity make of it, so that a larger ε from the measured μ refutes either. Both
/// bounds hold at once with the confidence asked for.
pub fn run(
    repeated: &Repeated,
    statement: &Statement,
    options: &Options,
    listener: &mut Listener<'_>,
) -> Result<Finding, AuditError> {
    let finding = Finding::new(Attack::Mechanism, statement, options.confidence);
    let Some(worst) = worst(repeated) else {
        let reason = "No release had noise, so there is no claim to test.".into();
        return Ok(Finding { reason, ..finding });
    };
    let device = device(repeated, worst)?;
    // The proof is that of plain Gaussian noise.
    let gaussian = device
        .releases
        .iter()
        .all(|release| matches!(release.mechanism(), Ok(Mechanism::Gaussian { .. })));
    let alpha = 1.0 - options.confidence;
    let certified = device.batches.zero_if_not_finite;
    let longest = alpha * if certified { 1.0 - HOSTILE } else { 1.0 };
    let releases = DeviceReleases::new(device.clone(), Neighbors::Longest, options.seed)?;
    let test = Distinguisher::new(&releases)?;
    let draws = draws(&releases, options.effort);
    let of = draws + if certified { HOSTILE_DRAWS } else { 0 };
    let mut tick = |done: u64| {
        let what = "drawing the releases of one device";
        let progress = Progress { attack: Attack::Mechanism, what, done, of, warning: None };
        if listener(progress).is_break() { Err(Cancelled.into()) } else { Ok(()) }
    };
    let scores = draw(&releases, &test, draws, &mut tick)?;
    // Two bounds share the level.
    let share = |level: f64| if gaussian { level / 2.0 } else { level };
    let bounds = Bounds::new(&scores, statement.delta, share(longest));
    let mut lower = bounds.epsilon_lower;
    let mut lower_gdp = bounds.epsilon_lower_gdp;
    if certified {
        let hostile = DeviceReleases::new(device.clone(), Neighbors::NotFinite, options.seed)?;
        let test = Distinguisher::energy(&hostile);
        let scores = draw(&hostile, &test, HOSTILE_DRAWS, &mut |done| tick(draws + done))?;
        let bounds = Bounds::new(&scores, statement.delta, share(alpha * HOSTILE));
        lower = lower.max(bounds.epsilon_lower);
        lower_gdp = lower_gdp.max(bounds.epsilon_lower_gdp);
    }
    let rounds = device.releases.len() as u64;
    Ok(finding
        .judge(lower, gaussian.then_some(lower_gdp))
        .figure("device", worst)
        .figure("releases", rounds)
        .figure("draws", draws)
        .figure("distance", test.distance())
        .figure("inclusion", releases.inclusion())
        .figure("roc_area", bounds.area)
        .figure("mu_lower", gaussian.then_some(bounds.mu_lower))
        .figure("false_positives", bounds.errors.false_positives)
        .figure("false_negatives", bounds.errors.false_negatives)
        .figure("test_draws", bounds.errors.positives)
        .show(Exhibit::Text(words(&device, &test, worst, gaussian)))
        .show(Exhibit::Table(table(&bounds, gaussian, draws))))
}

fn words(device: &Device, test: &Distinguisher, worst: u32, gaussian: bool) -> String {
    let rounds = device.releases.len();
    let through_mu = if gaussian {
        "The noise is Gaussian and sampling is not counted, so the bound through μ (Gaussian DP) \
             is tighter; it refutes claims about Gaussian noise."
    } else {
        "The claim is not about plain Gaussian noise, so there is no bound through μ."
    };
    format!(
        "Device {worst} has the least noise relative to its sensitivity. Its {rounds} releases were \
         drawn with a record of the largest gradient that the code accepts, and without it; the two \
         means differ by {:.4e} when the record is in a batch. The test is the likelihood ratio over \
         all rounds. A quarter of the draws chose its threshold, the others measured its errors. \
         {through_mu}",
        test.distance()
    )
}

fn table(bounds: &Bounds, gaussian: bool, draws: u64) -> Table {
    let mut table = Table::new("Bounds", &["method", ">observed", ">ε ≥"]);
    let errors = bounds.errors;
    table.row([
        "errors of the test".into(),
        format!(
            "{} of {} false positives, {} of {} false negatives",
            errors.false_positives, errors.negatives, errors.false_negatives, errors.positives
        ),
        format!("{:.4}", bounds.epsilon_lower),
    ]);
    if gaussian {
        table.row([
            "pairs of draws, through μ".into(),
            format!("{:.4} of {draws} pairs correct: μ ≥ {:.4}", bounds.area, bounds.mu_lower),
            format!("{:.4}", bounds.epsilon_lower_gdp),
        ]);
    }
    table
}

/// The device whose releases move the most in units of their noise; `None` without noisy releases.
fn worst(repeated: &Repeated) -> Option<u32> {
    if repeated.unprotected {
        return None;
    }
    let mut worst: Option<(f64, u32)> = None;
    for (device, releases) in (0..).zip(&repeated.releases) {
        let cost = |release: &Release| {
            release.sensitivity().map_or(f64::INFINITY, |delta| (delta / release.sigma()).powi(2))
        };
        let total: f64 = releases.iter().map(cost).sum();
        if total > worst.map_or(0.0, |(most, _)| most) {
            worst = Some((total, device));
        }
    }
    worst.map(|(_, device)| device)
}

fn device(repeated: &Repeated, device: u32) -> Result<Device, AuditError> {
    let experiment = &repeated.experiment;
    Ok(Device {
        learn: experiment.learn.clone(),
        batches: experiment.batches(repeated.public_samples[device as usize]),
        grid: experiment.grid()?,
        releases: repeated.releases[device as usize].clone(),
    })
}

/// Draws for each input: fewer where a draw takes long.
fn draws(releases: &DeviceReleases, effort: Effort) -> u64 {
    // The fixed work of a release is about that of ten records.
    let work =
        releases.device.releases.len().max(1) as f64 * (10.0 + releases.inputs[1].len() as f64);
    let (most, budget) = match effort {
        Effort::Quick => (20_000.0, QUICK_WORK),
        Effort::Full => (200_000.0, 20.0 * QUICK_WORK),
    };
    (budget / work).clamp(500.0, most) as u64
}
