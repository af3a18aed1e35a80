//! Privacy loss distributions, composed numerically, with a certified bound on ε.
//!
//! - [`loss`]: the loss of one release.
//! - [`discretize`]: on a grid, from above (and from below on request).
//! - [`saddle`]: which tilt and which window the composed loss needs.
//! - [`convolve`]: the composed loss by FFT, its errors bounded.
//! - [`curve`]: ε at δ.
//! - [`losses`]: all of it for a choice of grid.
//!
//! Tilting, that is to weight every loss l by e^{θl} before and e^{−θl} after the composition,
//! makes rounding errors relative to the δ asked for, so that δ = 10⁻¹⁸ is no harder than 10⁻².

mod convolve;
mod curve;
mod discretize;
mod loss;
mod losses;
mod saddle;
mod schedule;
#[cfg(test)]
mod tests;

pub use schedule::PldSchedule;

use crate::accountant::Accountant;
use crate::error::{AccountError, check_delta, check_mechanism};
use crate::event::{Adjacency, Mechanism};
use crate::range::{check, positive};
use loss::{Pair, SingleLoss};
use losses::{Bound, Goal};

/// Bound on the relative error of a cell's mass by quadrature.
const CELL_ERROR: f64 = 1e-10;

/// Bound on the error of how a cell's mass is shared between its two ends.
const FRACTION_ERROR: f64 = 1e-9;

/// Most cells of one discretized loss.
const MAX_CELLS: usize = 1 << 22;

/// Most points of a window.
const MAX_POINTS: usize = 1 << 22;

/// Below this noise multiplier the answer is ∞: ε would be beyond 10¹³.
const QUIETEST: f64 = 1e-7;

/// The smallest δ, far from where numbers underflow.
const SMALLEST_DELTA: f64 = 1e-200;

/// The accountant by privacy loss distributions: the tightest for fixed schedules.
///
/// The ε it answers is an upper bound: discretization, truncation and rounding errors are all
/// counted against it. It is no filter: the costs must be fixed in advance.
///
/// Under add-remove and zero-out adjacency, the two directions are composed apart, and the larger ε
/// is the answer. Subsampled releases under different adjacencies are refused.
#[derive(Clone, Debug, Default)]
pub struct Pld {
    /// Σ μ² of the plain Gaussian mechanisms, which compose exactly.
    gaussian: f64,
    /// The Poisson-subsampled ones by kind, each as the removal or replacement of a record.
    poisson: Vec<(SingleLoss, u64)>,
    /// The adjacency of the Poisson-subsampled ones.
    adjacency: Option<Adjacency>,
    /// A release without noise was composed.
    non_private: bool,
    /// A release with less noise than [`QUIETEST`] was composed.
    quiet: bool,
    /// The grid's width, if not chosen to fit.
    interval: Option<f64>,
}

impl Pld {
    /// An accountant on the grid of all multiples of `interval`; [`Pld::default`] chooses the grid
    /// to fit.
    pub fn with_interval(interval: f64) -> Result<Self, AccountError> {
        Ok(Self { interval: Some(positive("interval", interval)?), ..Self::default() })
    }

    /// A lower bound on the exact ε at `delta`: how far [`Accountant::epsilon`] may be off.
    pub fn epsilon_lower_bound(&self, delta: f64) -> Result<f64, AccountError> {
        check_delta(delta)?;
        if self.non_private {
            return Ok(f64::INFINITY);
        }
        self.bound(delta, Bound::Lower)
    }

    fn bound(&self, delta: f64, bound: Bound) -> Result<f64, AccountError> {
        let mut largest = 0.0_f64;
        for losses in self.directions() {
            // Total variation distances add up at most.
            let variation =
                losses.iter().map(|(loss, count)| loss.total_variation() * *count as f64);
            if variation.sum::<f64>() * (1.0 + 1e-9) <= delta {
                continue;
            }
            let interval = self.interval;
            let goal = Goal { delta, repeats: 1, bound, interval, near: None, floor: largest };
            let mut epsilon = losses::epsilon(&losses, goal)?;
            if epsilon > largest && largest > 0.0 {
                epsilon = losses::epsilon(&losses, Goal { floor: 0.0, ..goal })?;
            }
            largest = largest.max(epsilon);
        }
        Ok(largest)
    }

    /// The losses and their counts, in each direction that may be the worse one.
    fn directions(&self) -> Vec<Vec<(SingleLoss, u64)>> {
        let one_sided = self.poisson.iter().any(|(loss, _)| loss.pair == Pair::Remove);
        let sides: &[Pair] = if one_sided { &[Pair::Remove, Pair::Add] } else { &[Pair::Remove] };
        let direction = |side: &Pair| {
            let gaussian = SingleLoss { pair: Pair::Remove, rate: 1.0, mu: self.gaussian.sqrt() };
            let gaussian = (self.gaussian > 0.0).then_some((gaussian, 1));
            let poisson = self.poisson.iter().map(|&(loss, count)| {
                let pair = if loss.pair == Pair::Replace { Pair::Replace } else { *side };
                (SingleLoss { pair, ..loss }, count)
            });
            gaussian.into_iter().chain(poisson).collect()
        };
        let directions: Vec<Vec<_>> = sides.iter().map(direction).collect();
        directions.into_iter().filter(|losses| !losses.is_empty()).collect()
    }
}

impl Accountant for Pld {
    fn name(&self) -> &'static str {
        NAME
    }

    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError> {
        check_mechanism(mechanism)?;
        let (rate, z, replace) = match *mechanism {
            Mechanism::Gaussian { noise_multiplier } => (1.0, noise_multiplier, false),
            Mechanism::PoissonGaussian { rate, noise_multiplier, adjacency } => {
                (rate, noise_multiplier, adjacency == Adjacency::ReplaceOne)
            }
            Mechanism::DiscreteGaussian { .. } => {
                return Err(AccountError::Unsupported { accountant: NAME, mechanism: *mechanism });
            }
            Mechanism::NonPrivate => (1.0, 0.0, false),
        };
        check("noise multiplier", z, z <= 1e100, "a number above 0 and at most 1e100")?;
        check("sampling rate", rate, rate >= 1e-30, "from 1e-30 to 1")?;
        if count == 0 {
            return Ok(());
        }
        if let Mechanism::PoissonGaussian { adjacency: other, .. } = *mechanism {
            let first = *self.adjacency.get_or_insert(other);
            if first != other {
                return Err(AccountError::MixedAdjacency { first, other });
            }
        }
        self.non_private |= z == 0.0;
        self.quiet |= z < QUIETEST;
        // Less privacy loss than there is: only a lower bound still uses it.
        let mu = 1.0 / z.max(QUIETEST);
        if rate == 1.0 {
            // Replacing moves the sum twice as far.
            let mu = if replace { 2.0 * mu } else { mu };
            self.gaussian += f64::from(count) * mu * mu;
            return Ok(());
        }
        let kind =
            SingleLoss { pair: if replace { Pair::Replace } else { Pair::Remove }, rate, mu };
        match self.poisson.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known += u64::from(count),
            None => self.poisson.push((kind, count.into())),
        }
        Ok(())
    }

    fn epsilon(&self, delta: f64) -> Result<f64, AccountError> {
        check_delta(delta)?;
        if self.non_private || self.quiet {
            return Ok(f64::INFINITY);
        }
        self.bound(delta, Bound::Upper)
    }
}

/// The accountant's name.
const NAME: &str = "pld";
