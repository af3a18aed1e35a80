//! Gradient leakage: labels and images out of what devices send.
//!
//! The attacker is the base station. It has the model, the received gradient, and images of its own
//! (the test set). It is given more than it has: it knows all other images of a device's batch and
//! takes them out, so that what is left is the gradient of one image, or of a few, with the noise of
//! the whole update on it: the case that differential privacy speaks of.
//!
//! Labels come from the last layer ([`labels`]); the image itself from the first one where that is
//! fully connected ([`first_layer`]); else images are changed until their gradient is the one that
//! was seen ([`matching`], [`search`]). Features of images are not attacked.

mod attacker;
mod cases;
pub mod first_layer;
pub mod labels;
pub mod matching;
pub mod quality;
mod report;
pub mod search;
pub(crate) mod student;
mod trajectory;

use lapa::config::{Privacy, word_of};
use lapa::simulation::Cancelled;
use lapa_privacy::allocate::{AllocatorConfig, LapaConfig, PidError, UniformConfig};

use self::attacker::{Attacker, Image};
use self::cases::{Case, Cases};
use self::matching::Distance;
use self::search::Search;
use self::trajectory::{Snapshot, rounds, trajectory};
use crate::leakage::{self, Risks};
use crate::{Attack, AuditError, Effort, Finding, Listener, Options, Progress, Statement, Subject};

/// Images of a small batch.
const BATCH: usize = 4;

/// Amount of work of an attack.
struct Plan {
    /// Images attacked one by one.
    images: usize,
    /// Small batches.
    batches: usize,
    /// Models on the way of the run.
    points: u32,
    /// Rounds of the run that are repeated, at most.
    rounds: u32,
    /// True if the runs of other allocators are repeated, not only their first rounds.
    whole_runs: bool,
    /// Search for the images.
    search: Search,
}

impl From<Effort> for Plan {
    fn from(effort: Effort) -> Self {
        let (images, batches, points, rounds, whole_runs, steps, starts) = match effort {
            Effort::Quick => (6, 1, 5, 40, false, 400, 1),
            Effort::Full => (20, 3, 7, u32::MAX, true, 1000, 3),
        };
        let search = Search { distance: Distance::Cosine, steps, starts };
        Self { images, batches, points, rounds, whole_runs, search }
    }
}

/// Images out of gradients, early, midway and late in the run, with the noise of each allocator; and
/// whether the risk of it falls over the rounds as the paper says.
pub fn run(
    subject: &Subject,
    statement: &Statement,
    options: &Options,
    listener: &mut Listener<'_>,
) -> Result<Vec<Finding>, AuditError> {
    if let Some(findings) = without_pixels(subject, statement, options) {
        return Ok(findings);
    }
    let plan = Plan::from(options.effort);
    let attacker = Attacker::new(subject, plan.images, options.seed)?;
    let experiment = &subject.experiment;
    let rounds = rounds(experiment, plan.rounds, plan.points);
    let (own, data) = (experiment.clone(), &subject.data);
    let snapshots = trajectory(own, data.clone(), &rounds, "repeating the run", listener)?;
    let noises = noises(subject, &plan, &snapshots, listener)?;
    let cases = attack(&attacker, &plan, &snapshots, &noises, listener)?;
    let quick = options.effort == Effort::Quick;
    let risks = Risks {
        exact: first_layer::is_fully_connected(&attacker.network),
        without: cases.risks("none"),
        with: cases.risks(&report::own_name(subject)),
    };
    Ok(vec![
        report::finding(subject, statement, options, &attacker, &cases)?,
        leakage::finding(statement, options, &risks, quick)?,
    ])
}

/// The findings where the model sees features in place of pixels: an attack on pixels has nothing to
/// search by.
fn without_pixels(
    subject: &Subject,
    statement: &Statement,
    options: &Options,
) -> Option<Vec<Finding>> {
    let features = subject.experiment.model.features;
    if features.is_none() {
        return None;
    }
    let reason = format!(
        "The model sees features of a record (model.features = \"{}\"), and this attack reconstructs \
         pixels. What gradients tell of the features is not searched for, nor which image has them. \
         This proves nothing: the attacks `mechanism`, `canary` and `membership` go with features.",
        features.word()
    );
    let finding = |attack| {
        let finding = Finding::new(attack, statement, options.confidence);
        Finding { reason: reason.clone(), ..finding }
    };
    Some([Attack::Inversion, Attack::Leakage].map(finding).into())
}

/// A noise to attack through.
struct AttackedNoise {
    name: String,
    /// σ at each snapshot, if it is known.
    sigmas: Vec<Option<f64>>,
    /// True if it is attacked at all snapshots, not only early, midway and late.
    everywhere: bool,
}

/// None, what the run itself had, and what other allocators give.
fn noises(
    subject: &Subject,
    plan: &Plan,
    snapshots: &[Snapshot],
    listener: &mut Listener<'_>,
) -> Result<Vec<AttackedNoise>, AuditError> {
    let experiment = &subject.experiment;
    let sigmas = vec![Some(0.0); snapshots.len()];
    let mut noises = vec![AttackedNoise { name: "none".into(), sigmas, everywhere: true }];
    if snapshots.iter().any(|snapshot| snapshot.sigma > 0.0) {
        let sigmas = snapshots.iter().map(|snapshot| Some(snapshot.sigma)).collect();
        noises.push(AttackedNoise { name: report::own_name(subject), sigmas, everywhere: true });
    }
    let Some(privacy) = &experiment.privacy else { return Ok(noises) };
    let error = PidError::default_for(privacy.basis);
    let lapa = LapaConfig { error, ..LapaConfig::default() };
    for allocator in [AllocatorConfig::Uniform(UniformConfig {}), AllocatorConfig::Lapa(lapa)] {
        let name = word_of(allocator);
        if name == word_of(privacy.allocator) {
            continue;
        }
        let mut other = experiment.clone();
        other.privacy = Some(Privacy { allocator, ..privacy.clone() });
        let known = if plan.whole_runs { snapshots.len() } else { 1 };
        let rounds: Vec<u32> = snapshots[..known].iter().map(|snapshot| snapshot.round).collect();
        let what = "simulating the noise of another allocator";
        match trajectory(other, subject.data.clone(), &rounds, what, listener) {
            Ok(others) => {
                let mut sigmas: Vec<Option<f64>> =
                    others.iter().map(|snapshot| Some(snapshot.sigma)).collect();
                sigmas.resize(snapshots.len(), None);
                noises.push(AttackedNoise { name, sigmas, everywhere: false });
            }
            // Not every budget can be shared out by every allocator, and not every run ends well.
            Err(AuditError::Federation(_) | AuditError::Privacy(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(noises)
}

/// All attacks, one model and noise after the other.
fn attack(
    attacker: &Attacker,
    plan: &Plan,
    snapshots: &[Snapshot],
    noises: &[AttackedNoise],
    listener: &mut Listener<'_>,
) -> Result<Cases, AuditError> {
    let phases = [0, snapshots.len() / 2, snapshots.len() - 1];
    let mut cases = Cases::default();
    let (mut done, of) = (0, (snapshots.len() * noises.len()) as u64 + 2);
    let mut report = |done: u64| {
        let what = "inverting gradients";
        let progress = Progress { attack: Attack::Inversion, what, done, of, warning: None };
        if listener(progress).is_break() { Err(Cancelled) } else { Ok(()) }
    };
    for (at, snapshot) in snapshots.iter().enumerate() {
        let reader = attacker.label_reader(&snapshot.parameters);
        let is_phase = phases.contains(&at);
        let add = |what: u64, noise: (&str, f64), groups: &[&[Image]], search: &Search| {
            let number = ((at as u64) << 8) + what;
            Case::attack(attacker, snapshot, reader.as_ref(), noise, groups, search, number)
        };
        let singles: Vec<&[Image]> = attacker.images.chunks(1).collect();
        for (n, noise) in (0..).zip(noises) {
            report(done)?;
            done += 1;
            if let (Some(sigma), true) = (noise.sigmas[at], noise.everywhere || is_phase) {
                let case = add(n, (&noise.name, sigma), &singles, &plan.search);
                cases.all.push(Case { is_phase, ..case });
            }
        }
        if at > 0 {
            continue;
        }
        report(of - 2)?;
        let squared = Search { distance: Distance::Squared, ..plan.search };
        cases.squared = Some(add(100, ("none", 0.0), &singles, &squared));
        if !attacker.single_images_only {
            report(of - 1)?;
            let batches: Vec<&[Image]> =
                attacker.images.chunks_exact(BATCH).take(plan.batches).collect();
            for (n, noise) in (101..).zip(noises) {
                if let Some(sigma) = noise.sigmas[at] {
                    let case = add(n, (&noise.name, sigma), &batches, &plan.search);
                    cases.batches.push(case);
                }
            }
        }
    }
    report(of)?;
    Ok(cases)
}
