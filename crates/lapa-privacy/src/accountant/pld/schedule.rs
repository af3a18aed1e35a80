//! ε along a schedule of equal releases.

use super::losses::{Bound, Goal, Losses};
use super::{Pld, losses};
use crate::accountant::Accountant;
use crate::error::{AccountError, check_delta};
use crate::event::Mechanism;
use crate::range::check;

/// ε after 1, 2, …, T equal releases: the loss is discretized once, each answer costs about two
/// FFTs in each direction.
#[derive(Clone, Debug)]
pub struct PldSchedule {
    directions: Vec<Losses>,
    unbounded: bool,
    releases: u32,
    delta: f64,
}

impl PldSchedule {
    /// Prepares up to `releases` releases by `mechanism`, at `delta`.
    pub fn new(mechanism: &Mechanism, releases: u32, delta: f64) -> Result<Self, AccountError> {
        check_delta(delta)?;
        let mut pld = Pld::default();
        pld.compose(mechanism, 1)?;
        let unbounded = pld.non_private || pld.quiet;
        let mut schedule = Self { directions: Vec::new(), unbounded, releases, delta };
        if unbounded || releases == 0 {
            return Ok(schedule);
        }
        let mut floor = 0.0;
        for losses in pld.directions() {
            let (repeats, bound) = (releases.into(), Bound::Upper);
            let goal = Goal { delta, repeats, bound, interval: None, near: None, floor };
            let near = Some(losses::epsilon(&losses, goal)?).filter(|epsilon| *epsilon > floor);
            // Half of it: the other direction may be the larger one after fewer releases.
            floor = near.map_or(floor, |epsilon| epsilon / 2.0);
            schedule.directions.push(Losses::new(&losses, &Goal { near, ..goal })?);
        }
        Ok(schedule)
    }

    /// ε after `count` releases: at most a little more than [`Pld`] answers.
    pub fn epsilon_after(&self, count: u32) -> Result<f64, AccountError> {
        check("count", count.into(), count <= self.releases, "at most the prepared number")?;
        if count == 0 {
            return Ok(0.0);
        }
        if self.unbounded {
            return Ok(f64::INFINITY);
        }
        self.directions.iter().try_fold(0.0, |largest: f64, losses| {
            Ok(largest.max(losses.epsilon(count.into(), self.delta, None)?))
        })
    }
}
