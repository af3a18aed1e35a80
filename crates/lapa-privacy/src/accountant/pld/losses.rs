//! Discretized losses on their common grid, ready to be composed any number of times.

use super::convolve;
use super::discretize::{self, GridPmf};
use super::loss::SingleLoss;
use super::saddle::{self, Profile};
use super::{MAX_CELLS, MAX_POINTS, NAME, SMALLEST_DELTA};
use crate::error::AccountError;
use crate::range::OutOfRange;

/// Side of the exact ε.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// At least ε.
    Upper,
    /// At most ε.
    Lower,
}

/// Purpose of a grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// δ
    pub(super) delta: f64,
    /// Number of compositions of all losses.
    pub(super) repeats: u64,
    /// The bound.
    pub(super) bound: Bound,
    /// The grid's width, if not chosen to fit.
    pub(super) interval: Option<f64>,
    /// ε, if known roughly.
    pub(super) near: Option<f64>,
    /// An ε below this need not be precise.
    pub(super) floor: f64,
}

/// Discretized losses of one direction.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    h: f64,
    bound: Bound,
    /// The losses and how often each is in one repetition.
    parts: Vec<(GridPmf, u64)>,
    profiles: Vec<Profile>,
    /// P's mass above the support, by all losses once.
    outside: f64,
}

/// The bound on ε, refined once where the first grid was chosen for a much larger ε.
pub(super) fn epsilon(losses: &[(SingleLoss, u64)], goal: Goal) -> Result<f64, AccountError> {
    let coarse = match on_grid(losses, &goal) {
        // Discretized, the losses spread wider than was foreseen.
        Err(AccountError::Parameter(OutOfRange { value, .. })) if goal.interval.is_none() => {
            let wider = (1..8).map(|step| Some(value * 8.0_f64.powi(step)));
            let mut answers = wider.map(|interval| on_grid(losses, &Goal { interval, ..goal }));
            answers.find(Result::is_ok).unwrap_or_else(|| Err(too_fine(value)))
        }
        answer => answer,
    }?;
    let refine = goal.interval.is_none() && coarse > goal.floor;
    if !refine || coarse > 0.7 * renyi(losses, &goal).unwrap_or(0.0) {
        return Ok(coarse);
    }
    let near = Some(coarse);
    let Ok(fine) = on_grid(losses, &Goal { near, ..goal }) else { return Ok(coarse) };
    // Both are bounds.
    Ok(if goal.bound == Bound::Upper { fine.min(coarse) } else { fine.max(coarse) })
}

fn on_grid(losses: &[(SingleLoss, u64)], goal: &Goal) -> Result<f64, AccountError> {
    Losses::new(losses, goal)?.epsilon(goal.repeats, goal.delta, goal.near)
}

impl Losses {
    /// The losses with their counts on a common grid.
    pub(super) fn new(losses: &[(SingleLoss, u64)], goal: &Goal) -> Result<Self, AccountError> {
        let &Goal { delta, bound, .. } = goal;
        if delta < SMALLEST_DELTA {
            let (accountant, smallest) = (NAME, SMALLEST_DELTA);
            return Err(AccountError::DeltaTooSmall { accountant, delta, smallest });
        }
        let reach = reach(losses, goal);
        let profiles = profiles(losses, reach);
        let h = match goal.interval {
            Some(interval) => interval,
            None => fitting(losses, &profiles, goal),
        };
        let parts = losses.iter().map(|(loss, count)| {
            let pmf = match bound {
                Bound::Upper => discretize::pessimistic(loss, h, reach),
                Bound::Lower => discretize::optimistic(loss, h, reach),
            };
            Ok((pmf.ok_or_else(|| too_fine(h))?, *count))
        });
        let parts = parts.collect::<Result<Vec<_>, AccountError>>()?;
        let profiles = match bound {
            Bound::Upper => profiles.iter().map(|profile| profile.on_grid(h)).collect(),
            Bound::Lower => parts.iter().map(|(pmf, count)| Profile::of(pmf, *count, h)).collect(),
        };
        let outside = releases(losses) * (-reach * reach / 2.0).exp() / 2.0;
        Ok(Self { h, bound, parts, profiles, outside })
    }

    /// The bound on ε for `repeats` times all losses; `near` is what it may be, if known.
    pub(super) fn epsilon(
        &self,
        repeats: u64,
        delta: f64,
        near: Option<f64>,
    ) -> Result<f64, AccountError> {
        let composed = saddle::saddle(&self.profiles, repeats as f64, delta, near)
            .and_then(|saddle| convolve::compose(&self.parts, repeats, self.h, &saddle))
            .ok_or_else(|| too_fine(self.h))?;
        match self.bound {
            Bound::Lower => Ok(composed.lower_epsilon(delta)),
            Bound::Upper => {
                let outside = self.outside * repeats as f64;
                composed.upper_epsilon(delta - outside).map_err(|least| {
                    let (accountant, smallest) = (NAME, least + outside);
                    AccountError::DeltaTooSmall { accountant, delta, smallest }
                })
            }
        }
    }
}

fn releases(losses: &[(SingleLoss, u64)]) -> f64 {
    losses.iter().map(|(_, count)| *count as f64).sum()
}

/// Reach of the support: all releases together have a millionth of δ outside of it.
fn reach(losses: &[(SingleLoss, u64)], goal: &Goal) -> f64 {
    (2.0 * (1e6 * releases(losses) * goal.repeats as f64 / goal.delta).ln()).sqrt()
}

fn profiles(losses: &[(SingleLoss, u64)], reach: f64) -> Vec<Profile> {
    losses.iter().map(|(loss, count)| Profile::new(loss, *count, reach)).collect()
}

/// About the ε that Rényi divergences give.
pub(super) fn renyi(losses: &[(SingleLoss, u64)], goal: &Goal) -> Option<f64> {
    let profiles = profiles(losses, reach(losses, goal));
    Some(saddle::saddle(&profiles, goal.repeats as f64, goal.delta, None)?.epsilon)
}

/// A width of the grid at which discretization adds little to ε, or stays below the floor.
///
/// Moving a loss to both ends of its cell adds up to θ(1+θ)h²/12 on average to ln E e^{θL}, hence
/// (1+θ)h²/12 to ε, and never more than h.
fn fitting(losses: &[(SingleLoss, u64)], profiles: &[Profile], goal: &Goal) -> f64 {
    const ADDED: f64 = 5e-5;
    let repeats = goal.repeats as f64;
    let Some(saddle) = saddle::saddle(profiles, repeats, goal.delta, goal.near) else {
        return f64::NAN;
    };
    // Near ε = 0, relative to the loss instead.
    let least = ADDED * saddle.epsilon.max(saddle::spread(profiles, repeats) / 100.0);
    let spare = (goal.floor - saddle.epsilon) / 2.0;
    let added = least.max(spare) / (releases(losses) * repeats);
    let window = saddle.high - saddle.low;
    let reach = reach(losses, goal);
    let largest = losses.iter().map(|(loss, _)| {
        let (low, high) = loss.support(reach);
        loss.at(high).abs().max(loss.at(low).abs())
    });
    (12.0 * added / (1.0 + saddle.theta))
        .sqrt()
        .max(added)
        .min(window / if spare > least { 16.0 } else { 2048.0 })
        .max(window / (MAX_POINTS / 4) as f64)
        .max(largest.fold(0.0, f64::max) / (MAX_CELLS / 16) as f64)
}

fn too_fine(interval: f64) -> AccountError {
    let allowed = "a value at which the losses need at most 2^22 points";
    OutOfRange { name: "interval", value: interval, allowed }.into()
}
