//! Membership inference by an honest-but-curious base station: it holds a data set that overlaps
//! the devices', and compares what the model says of records it may have been trained on and of
//! others.
//!
//! The run is repeated with a fair coin for each candidate record: heads, and it is trained on.
//! The attacker sees the final model and everything that is public (the first model, the links,
//! who takes part), not the coins, batches and noise. Two attacks guess the coins:
//!
//! - loss threshold (Yeom et al. 2018): records with a small loss were trained on;
//! - LiRA (Carlini et al. 2022): shadow models, which are the same run with coins, batches and
//!   noise of the attacker's own, show what losses a record has when it was trained on and when
//!   not; the likelihood ratio of the two decides.

mod candidates;
mod guess;
mod lira;
mod repeat;
mod roc;
mod show;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::thread;

pub use roc::Roc;
use serde_json::{Value, json};

use crate::epsilon_bound::{ScoreThreshold, epsilon_lower, normal_quantile, one_run_epsilon};
use crate::{Attack, AuditError, Effort, Finding, Listener, Options, Progress, Statement, Subject};
use candidates::Candidates;
use guess::Guesses;
use lira::Shadows;
use repeat::{Repeater, Repetition};

/// Scale of a membership attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Shadow models.
    pub shadows: usize,
    /// Coins: candidate records, at most.
    pub candidates: usize,
}

/// No rounds are cut: a quick audit of the quickstart trains it nine times.
impl From<Effort> for Scale {
    fn from(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self { shadows: 8, candidates: 1000 },
            Effort::Full => Self { shadows: 64, candidates: 4000 },
        }
    }
}

/// Attacks a repetition of the subject's run, at the scale of the options' effort.
pub fn run(
    subject: &Subject,
    statement: &Statement,
    options: &Options,
    listener: &mut Listener<'_>,
) -> Result<Vec<Finding>, AuditError> {
    run_at(Scale::from(options.effort), subject, statement, options, listener)
}

/// As [`run`], at a scale of one's own.
pub fn run_at(
    scale: Scale,
    subject: &Subject,
    statement: &Statement,
    options: &Options,
    listener: &mut Listener<'_>,
) -> Result<Vec<Finding>, AuditError> {
    let experiment = &subject.experiment;
    let candidates = Candidates::new(experiment, &subject.data, scale.candidates, options.seed)?;
    let target_coins = candidates.target_coins(options.seed);
    let members = candidates.members(&target_coins);
    if scale.shadows < 2 || members.iter().all(|&m| m) || members.iter().all(|&m| !m) {
        let reason = format!(
            "{} shadow models and {} candidate records are too few to test membership.",
            scale.shadows,
            candidates.len()
        );
        let finding = Finding::new(Attack::Membership, statement, options.confidence);
        return Ok(vec![Finding { reason, ..finding }]);
    }
    let mut coins = vec![target_coins];
    coins.extend(candidates.shadow_coins(scale.shadows, options.seed));
    let threads = match experiment.run.threads {
        0 => thread::available_parallelism().map_or(1, NonZeroUsize::get),
        threads => threads,
    };
    let repeater = Repeater::new(experiment, &candidates, options.seed);
    let repetitions = repeater.run(&coins, threads, &mut |done, warning| {
        listener(Progress {
            attack: Attack::Membership,
            what: "training shadow models",
            done: done as u64,
            of: coins.len() as u64,
            warning,
        })
    })?;
    let attack = AttackResult::new(&candidates, &coins, repetitions, statement.delta, options);
    Ok(vec![attack.finding(statement, options.confidence)?])
}

/// Results of both attacks.
struct AttackResult {
    shadows: usize,
    swaps: bool,
    /// By likelihood ratio.
    lira: Roc,
    /// By loss.
    loss: Roc,
    /// Mean loss of members and of others.
    mean_losses: [f64; 2],
    /// Accuracy of the target on the test set.
    accuracy: f64,
    /// z of two-sided intervals at the confidence.
    z: f64,
    coins: usize,
    guesses: usize,
    correct: usize,
    epsilon_lower: f64,
    epsilon_if_independent: f64,
}

impl AttackResult {
    /// Attacks the first repetition by help of the others.
    fn new(
        candidates: &Candidates,
        coins: &[Vec<bool>],
        mut repetitions: Vec<Repetition>,
        delta: f64,
        options: &Options,
    ) -> Self {
        let alpha = 1.0 - options.confidence;
        let target = repetitions.remove(0);
        let (target_coins, shadow_coins) = (&coins[0], &coins[1..]);
        let members = candidates.members(target_coins);
        let shadows = Shadows {
            confidences: repetitions.into_iter().map(|r| r.confidences).collect(),
            members: shadow_coins.iter().map(|coins| candidates.members(coins)).collect(),
        };
        let scores = shadows.scores(None, &target.confidences);
        let bound = |guesses: usize, right: usize| {
            one_run_epsilon(target_coins.len() as u64, guesses as u64, right as u64, delta, alpha)
        };
        let guesses = guess::count(&shadows, shadow_coins, bound);
        let correct = Guesses::new(&scores, target_coins.len()).correct(target_coins, guesses);
        let epsilon_if_independent =
            if_independent(&scores, &members, target_coins.len(), delta, alpha);
        Self {
            shadows: shadow_coins.len(),
            swaps: candidates.swaps,
            lira: Roc::new(&scores, &members),
            // The loss ln(1 + e^{−φ}) falls with φ: both have the same curve.
            loss: Roc::new(&target.confidences, &members),
            mean_losses: [true, false].map(|side| mean_loss(&target.confidences, &members, side)),
            accuracy: target.accuracy,
            z: normal_quantile(1.0 - 0.5 * alpha),
            coins: target_coins.len(),
            guesses,
            correct,
            epsilon_lower: bound(guesses, correct),
            epsilon_if_independent,
        }
    }

    fn finding(&self, statement: &Statement, confidence: f64) -> Result<Finding, AuditError> {
        let finding = Finding::new(Attack::Membership, statement, confidence)
            .figure("shadow_models", self.shadows)
            .figure("coins", self.coins)
            .figure("coin", if self.swaps { "swaps two records" } else { "drops a record" })
            .figure("members", self.lira.members)
            .figure("others", self.lira.others)
            .figure("test_accuracy", self.accuracy)
            .figure("mean_loss_members", self.mean_losses[0])
            .figure("mean_loss_others", self.mean_losses[1])
            .figure("guesses", self.guesses)
            .figure("guesses_correct", self.correct)
            .figure("epsilon_lower_if_independent", self.epsilon_if_independent)
            .figure("lira", self.figures(&self.lira))
            .figure("loss_threshold", self.figures(&self.loss))
            .judge(self.epsilon_lower, None);
        Ok(Finding { exhibits: self.exhibits()?, ..finding })
    }

    fn figures(&self, roc: &Roc) -> Value {
        let [low, high] = roc.auc_interval(self.z);
        json!({
            "auc": roc.auc(),
            "auc_low": low,
            "auc_high": high,
            "tpr_at_fpr_0.01": roc.tpr_at(1e-2),
            "tpr_at_fpr_0.001": roc.tpr_at(1e-3),
            "balanced_accuracy": roc.balanced_accuracy(),
        })
    }
}

/// Lower bound on ε from the errors on half of the coins if their records were independent draws, at
/// a threshold from the other half.
fn if_independent(scores: &[f64], members: &[bool], coins: usize, delta: f64, alpha: f64) -> f64 {
    // By coin: both records of a swap are in one half.
    let of = |half: usize, side: bool| -> Vec<f64> {
        let records = scores.iter().zip(members).enumerate();
        let ours = records.filter(|(r, (_, m))| (r % coins) % 2 == half && **m == side);
        ours.map(|(_, (&score, _))| score).collect()
    };
    let (without, with) = (of(1, false), of(1, true));
    let trials = without.len().min(with.len()) as u64;
    let threshold = ScoreThreshold::choose(&of(0, false), &of(0, true), trials, delta, alpha);
    epsilon_lower(threshold.errors(&without, &with), delta, alpha)
}

/// The mean of ln(1 + e^{−φ}) over the members, or over the others.
fn mean_loss(confidences: &[f64], members: &[bool], side: bool) -> f64 {
    let ours = confidences.iter().zip(members).filter(|(_, member)| **member == side);
    // The larger of 0 and −φ is taken out, so that nothing overflows.
    let losses: Vec<f64> =
        ours.map(|(&phi, _)| (-phi).max(0.0) + (-phi.abs()).exp().ln_1p()).collect();
    losses.iter().sum::<f64>() / losses.len() as f64
}
