//! Guesses from scores, and a bound from guesses.

use lapa_report::page::Table;

use super::score::Sums;
use crate::epsilon_bound::one_run_epsilon;
use crate::{Attack, Exhibit, Finding, Options, Repeated, Statement};

/// Fractions of the canaries that are guessed, half of them in and half out. Fixed in advance; the
/// level of each bound is that of all, divided by their number.
const FRACTIONS: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

/// The canaries of a repeated run.
///
/// There is no bound through μ: the theorem of the one run is about (ε, δ), and the scores of
/// canaries in one model are not independent draws.
pub fn run(repeated: &Repeated, statement: &Statement, options: &Options) -> Finding {
    let (m, scores) = (repeated.scorer.canaries.len() as u64, scores(repeated));
    let finding = Finding::new(Attack::Canary, statement, options.confidence);
    if m == 0 {
        let reason = "The devices hold too few records to replace some by canaries.".into();
        return Finding { reason, ..finding };
    }
    let alpha = (1.0 - options.confidence) / FRACTIONS.len() as f64;
    // Guesses, correct ones and the bound of each fraction.
    let tried = FRACTIONS.map(|fraction| {
        let (guesses, correct) = guess(repeated, &scores, fraction);
        (guesses, correct, one_run_epsilon(m, guesses, correct, statement.delta, alpha))
    });
    let best = tried.iter().fold(tried[0], |a, &b| if b.2 > a.2 { b } else { a });
    let means = [true, false].map(|present| mean(repeated, &scores, present));
    let sums = &repeated.scorer.sums;
    let norms = [over_rounds(sums, |sums| sums.norms), over_rounds(sums, |sums| sums.own_norms)];
    let most = one_run_epsilon(m, m, m, statement.delta, alpha);
    let weak = "The guesses were not significantly better than chance: either the noise hides single \
                records, or these canaries are too weak.";
    let finding = if best.2 > 0.0 { finding } else { finding.show(Exhibit::Text(weak.into())) };
    finding
        .judge(best.2, None)
        .figure("canaries", m)
        .figure("guesses", best.0)
        .figure("correct", best.1)
        .figure("score_present", means[0])
        .figure("score_absent", means[1])
        .figure("canary_norm", norms[0])
        .figure("canary_own_norm", norms[1])
        .show(Exhibit::Text(words(repeated, means, norms, most)))
        .show(Exhibit::Table(table(&tried)))
}

/// Description of the canaries: the mean scores of those present and absent, the mean norms of their
/// gradients and of their own parts, and the largest possible bound.
fn words(repeated: &Repeated, means: [f64; 2], norms: [f64; 2], most: f64) -> String {
    let clip_norm = repeated.experiment.learn.clip_norm;
    let clipping = clip_norm.map_or(String::new(), |norm| format!(" (clipping norm {norm})"));
    let (m, [present, absent], [norm, own]) = (repeated.scorer.canaries.len(), means, norms);
    format!(
        "Each of {m} canaries ({}, with random labels) was \
         included with probability ½. The mean gradient norm of a canary was {norm:.3}{clipping}, of \
         which {own:.3} is orthogonal to the other canaries. In units of their spread, the mean score \
         was {present:.3} for present canaries and {absent:.3} for absent ones. The number of canaries \
         limits the bound of one run: with all guesses correct it would be ε ≥ {most:.2}.",
        repeated.scorer.drawn(),
    )
}

fn table(tried: &[(u64, u64, f64)]) -> Table {
    let caption = "Guesses: the highest scores count as present, the lowest as absent. All bounds hold \
                   simultaneously.";
    let mut table = Table::new(caption, &[">guesses", ">correct", ">ε ≥"]);
    for (guesses, correct, epsilon) in tried {
        table.row([guesses.to_string(), correct.to_string(), format!("{epsilon:.4}")]);
    }
    table
}

/// Each canary's score in units of its spread.
fn scores(repeated: &Repeated) -> Vec<f64> {
    let score =
        |sums: &Sums| if sums.variance > 0.0 { sums.along / sums.variance.sqrt() } else { 0.0 };
    repeated.scorer.sums.iter().map(score).collect()
}

/// Numbers of guesses and of correct guesses of a fraction.
fn guess(repeated: &Repeated, scores: &[f64], fraction: f64) -> (u64, u64) {
    let canaries = &repeated.scorer.canaries;
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let each = (fraction * scores.len() as f64 / 2.0) as usize;
    let (low, high) = (&order[..each], &order[order.len() - each..]);
    let correct = low.iter().filter(|&&i| !canaries[i].present).count()
        + high.iter().filter(|&&i| canaries[i].present).count();
    (2 * each as u64, correct as u64)
}

fn mean(repeated: &Repeated, scores: &[f64], present: bool) -> f64 {
    let chosen = repeated.scorer.canaries.iter().zip(scores);
    let (sum, count) = chosen
        .filter(|(canary, _)| canary.present == present)
        .fold((0.0, 0u32), |(sum, count), (_, score)| (sum + score, count + 1));
    sum / f64::from(count.max(1))
}

/// A mean over canaries and rounds.
fn over_rounds(sums: &[Sums], of: impl Fn(&Sums) -> f64) -> f64 {
    let (total, rounds) = sums
        .iter()
        .fold((0.0, 0u32), |(total, rounds), sums| (total + of(sums), rounds + sums.rounds));
    total / f64::from(rounds.max(1))
}
