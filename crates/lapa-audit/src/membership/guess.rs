//! Guesses about coins, for a bound that holds for one run.

use super::lira::Shadows;

/// A guess for some of the coins, the surest first.
///
/// If a coin swaps records, its margin is the difference of their scores, and the sign decides. If
/// it drops one, the highest scores are guessed heads and the lowest tails, in
/// turns: so no threshold has to be chosen.
pub(super) struct Guesses {
    /// (coin, guess)
    surest_first: Vec<(usize, bool)>,
}

impl Guesses {
    /// Guesses from the scores of the records (see `Candidates::records`) of `coins` coins.
    pub fn new(scores: &[f64], coins: usize) -> Self {
        let mut order: Vec<usize> = (0..coins).collect();
        let surest_first = if scores.len() > coins {
            let margin = |coin: usize| scores[coin] - scores[coins + coin];
            order.sort_by(|&a, &b| margin(b).abs().total_cmp(&margin(a).abs()));
            order.into_iter().map(|coin| (coin, margin(coin) > 0.0)).collect()
        } else {
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            let tails = order.iter().rev().map(|&coin| (coin, false));
            let heads = order.iter().map(|&coin| (coin, true));
            heads.zip(tails).flat_map(|(h, t)| [h, t]).take(coins).collect()
        };
        Self { surest_first }
    }

    /// Number of right guesses among the `count` surest.
    pub fn correct(&self, coins: &[bool], count: usize) -> usize {
        let guesses = self.surest_first.iter().take(count);
        guesses.filter(|(coin, guess)| coins[*coin] == *guess).count()
    }
}

/// Number of guesses to make. The shadows are attacked in turn, each by help of the others; the best
/// number is the one whose mean of right guesses bounds ε the most, by `bound` of guesses and right
/// ones. The target's coins have no part in it, so it needs no correction.
pub(super) fn count(
    shadows: &Shadows,
    coins: &[Vec<bool>],
    bound: impl Fn(usize, usize) -> f64,
) -> usize {
    let total = coins.first().map_or(0, Vec::len);
    let attacks: Vec<Guesses> = (0..coins.len())
        .map(|model| Guesses::new(&shadows.scores(Some(model), &shadows.confidences[model]), total))
        .collect();
    let mut best = (total, f64::NEG_INFINITY);
    let mut count = total;
    while count > 0 {
        let right: usize =
            attacks.iter().zip(coins).map(|(guesses, coins)| guesses.correct(coins, count)).sum();
        let lower = bound(count, right / coins.len().max(1));
        if lower > best.1 {
            best = (count, lower);
        }
        count /= 2;
    }
    best.0
}
