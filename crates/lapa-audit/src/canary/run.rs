//! From scores to guesses to a bound.

use lapa_report::page::Table;

use super::score::Sums;
use crate::epsilon_bound::one_run_epsilon;
use crate::{Attack, Exhibit, Finding, Options, Repeated, Statement, Verdict};

/// Shares of the canaries that are guessed, half of them in and half out. Fixed in advance; the
/// level of each bound is that of all, divided by their number.
const SHARES: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

/// Guesses of one share, and their bound.
struct Guesses {
    guesses: u64,
    correct: u64,
    epsilon: f64,
}

/// The canaries of a repeated run.
///
/// There is no bound through μ: the theorem of the one run is about (ε, δ), and the scores of
/// canaries in one model are not independent draws.
pub fn run(repeated: &Repeated, statement: &Statement, options: &Options) -> Finding {
    let (canaries, scores) = (&repeated.scorer.canaries, scores(repeated));
    let finding = Finding::new(Attack::Canary, statement, options.confidence);
    let m = canaries.len() as u64;
    if m == 0 {
        return Finding {
            reason: "The devices hold too few records to replace some by canaries.".into(),
            verdict: Verdict::NotJudged,
            ..finding
        };
    }
    let alpha = (1.0 - options.confidence) / SHARES.len() as f64;
    let tried: Vec<Guesses> = SHARES
        .iter()
        .map(|&share| {
            let (guesses, correct) = guess(repeated, &scores, share);
            let epsilon = one_run_epsilon(m, guesses, correct, statement.delta, alpha);
            Guesses { guesses, correct, epsilon }
        })
        .collect();
    let best = tried.iter().fold(&tried[0], |a, b| if b.epsilon > a.epsilon { b } else { a });
    let mut table = Table::new(
        "Guesses: the highest scores count as present, the lowest as absent. All bounds hold \
         simultaneously.",
        &[">guesses", ">correct", ">ε ≥"],
    );
    for one in &tried {
        let cells =
            [one.guesses.to_string(), one.correct.to_string(), format!("{:.4}", one.epsilon)];
        table.row(cells);
    }
    let (present, absent) = (mean(repeated, &scores, true), mean(repeated, &scores, false));
    let sums = &repeated.scorer.sums;
    let norm = over_rounds(sums, |sums| sums.norms);
    let own = over_rounds(sums, |sums| sums.own_norms);
    let clip_norm = repeated.experiment.learn.clip_norm;
    let words = format!(
        "Each of {m} canaries (random dots in the dark part of the image, with random labels) was \
         included with probability ½. The mean gradient norm of a canary was {norm:.3}{}, of which \
         {own:.3} is orthogonal to the other canaries. In units of their spread, the mean score was \
         {present:.3} for present canaries and {absent:.3} for absent ones. The number of canaries limits \
         the bound of one run: with all guesses correct it would be ε ≥ {:.2}.",
        clip_norm.map_or(String::new(), |norm| format!(" (clipping norm {norm})")),
        one_run_epsilon(m, m, m, statement.delta, alpha),
    );
    let weak = "The guesses were not significantly better than chance: either the noise hides single \
                records, or these canaries are too weak.";
    let finding =
        if best.epsilon > 0.0 { finding } else { finding.show(Exhibit::Text(weak.into())) };
    finding
        .judge(best.epsilon, None)
        .figure("canaries", m)
        .figure("guesses", best.guesses)
        .figure("correct", best.correct)
        .figure("score_present", present)
        .figure("score_absent", absent)
        .figure("canary_norm", norm)
        .figure("canary_own_norm", own)
        .show(Exhibit::Text(words))
        .show(Exhibit::Table(table))
}

/// Each canary's score in units of its spread.
fn scores(repeated: &Repeated) -> Vec<f64> {
    let score =
        |sums: &Sums| if sums.variance > 0.0 { sums.along / sums.variance.sqrt() } else { 0.0 };
    repeated.scorer.sums.iter().map(score).collect()
}

/// Numbers of guesses and of correct guesses of a share.
fn guess(repeated: &Repeated, scores: &[f64], share: f64) -> (u64, u64) {
    let canaries = &repeated.scorer.canaries;
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let each = (share * scores.len() as f64 / 2.0) as usize;
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
