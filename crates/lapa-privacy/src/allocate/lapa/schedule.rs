//! Budget over the rounds: eq. (12), and what the text says of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allocate::rounds_left;

/// Direction in which the PID-like error moves the budget of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Eq. (12): a larger error lowers the budget, so that it rises over the rounds.
    #[default]
    Formula,
    /// The text: a larger error raises the budget, so that it falls with training progress.
    Text,
}

impl Schedule {
    /// Part of what is left that a round takes, with n rounds to go, itself included. It is 1/n
    /// at e = 0.
    ///
    /// By the formula exp(−e)/n. By the text 1/(1 + (n−1)·exp(−e)): exp(−e) lowers not this round's
    /// share but that of each later round.
    ///
    /// Differs from the paper, which prints no formula for its text: "We require that ε^\[t\] be
    /// monotonically non-decreasing with respect to the RoLP, i.e., monotonically non-increasing
    /// with respect to the training progress". This part rises with e, and it never exceeds 1, so
    /// that the sum stays within what there is. The budget does not rise from round to round while
    /// e does not: with d = exp(e) ≥ d' = exp(e') ≥ 1 the next budget is (n−1)d'/(d(d'+n−2)) times
    /// this one, and (n−1)d' = d' + (n−2)d' ≤ dd' + (n−2)d.
    pub fn part(self, error: f64, to_go: f64) -> f64 {
        let damping = (-error).exp();
        match self {
            Self::Formula => damping / to_go,
            Self::Text => 1.0 / (1.0 + (to_go - 1.0) * damping),
        }
    }

    /// `ε^[t] = exp(−e^[t])·(ε^T − ε_c)/(T−t+1)`, eq. (12), where `allocated` is the sum of those
    /// before, ε_c. By the text `(ε^T − ε^T/T − ε_c)/(1 + (T−t−1)·exp(−e^[t]))`.
    ///
    /// Round t + 1 spends `ε^[t]`, and round 1 spends ε^T/T. All of that never exceeds ε^T. By the
    /// formula: since e ≥ 0, `ε^[t]` takes at most a (T−t+1)-th of what is left, so after t = T−1
    /// at least ε^T·∏(T−t)/(T−t+1) = ε^T/T is left, which is what round 1 spent. By the text: it is
    /// a part of what is left without round 1's.
    pub fn round_budget(
        self,
        total: f64,
        allocated: f64,
        error: f64,
        rounds: u32,
        round: u32,
    ) -> f64 {
        let (left, to_go) = match self {
            Self::Formula => (total - allocated, rounds_left(rounds, round)),
            Self::Text => {
                let first = total / f64::from(rounds);
                (total - first - allocated, rounds_left(rounds, round.saturating_add(1)))
            }
        };
        left * self.part(error, to_go)
    }
}
