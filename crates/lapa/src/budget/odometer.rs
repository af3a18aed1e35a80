//! The odometer: ε that spending is worth.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use lapa_privacy::accountant::{Accountant, Pld, PldSchedule, Rdp, gdp};
use lapa_privacy::{AccountError, Adjacency, Event, Filter, FilterKind, Mechanism};

use super::Result;

/// An odometer. It remembers what took an accountant some time.
#[derive(Default)]
pub(crate) struct Odometer {
    /// ε of one release, by the bits of its noise multiplier: all else is the same in a run.
    single: HashMap<u64, f64>,
    /// The plan in use, and its ε by the number of releases.
    plan: Option<(Mechanism, PldSchedule, HashMap<u32, f64>)>,
}

impl Odometer {
    /// The ε of one release by itself.
    pub fn single(&mut self, event: &Event, delta: f64) -> Result<f64> {
        let mechanism = event.mechanism()?;
        let key = mechanism.noise_multiplier().to_bits();
        known(&mut self.single, key, || one_release(&mechanism, delta))
    }

    /// The ε that `spent` is worth in the filter's currency; without a filter, of Gaussians with
    /// μ² = `spent`.
    pub fn provable(&mut self, filter: Option<&Filter>, spent: f64, delta: f64) -> Result<f64> {
        let Some(filter) = filter else {
            return Ok(match spent {
                0.0 => 0.0,
                f64::INFINITY => f64::INFINITY,
                spent => gdp::epsilon(spent.sqrt().next_up(), delta)?,
            });
        };
        if let FilterKind::Plan { mechanism, releases, .. } = filter.kind() {
            if spent > filter.capacity() {
                return Ok(f64::INFINITY);
            }
            let epsilon = self.of_plan(mechanism, releases, spent as u32, delta)?;
            // The plan was proved as a whole: a part of it cannot cost more.
            return Ok(epsilon.min(filter.budget().epsilon()));
        }
        let mut read = filter.clone();
        read.set_spent(spent)?;
        Ok(read.spent_epsilon()?)
    }

    /// ε of `count` releases of a plan for at most `most`.
    fn of_plan(&mut self, mechanism: Mechanism, most: u32, count: u32, delta: f64) -> Result<f64> {
        if count == 0 {
            return Ok(0.0);
        }
        if self.plan.as_ref().is_none_or(|(known, ..)| *known != mechanism) {
            let schedule = PldSchedule::new(&mechanism, most, delta)?;
            self.plan = Some((mechanism, schedule, HashMap::new()));
        }
        // Unwrap safety: set just above.
        let (_, schedule, after) = self.plan.as_mut().unwrap();
        known(after, count, || schedule.epsilon_after(count))
    }
}

/// The ε of one release. On a Poisson sample, ln(1 + q(e^ε − 1)) at δ for the ε of the plain
/// mechanism at δ/q: Balle, Barthe and Gaboardi (2018), Theorem 8.
fn one_release(mechanism: &Mechanism, delta: f64) -> Result<f64, AccountError> {
    match *mechanism {
        Mechanism::NonPrivate => Ok(f64::INFINITY),
        Mechanism::Gaussian { noise_multiplier } => {
            gdp::epsilon((1.0 / noise_multiplier).next_up(), delta)
        }
        Mechanism::PoissonGaussian {
            rate,
            noise_multiplier,
            adjacency: Adjacency::ZeroOut | Adjacency::AddRemove,
        } => {
            if delta >= rate {
                return Ok(0.0);
            }
            let mu = (1.0 / noise_multiplier).next_up();
            let epsilon = gdp::epsilon(mu, delta / rate)?;
            // For large ε, where e^ε overflows: ε + ln q + ln(1 + (1 − q)/(q·e^ε)).
            let epsilon = epsilon + rate.ln() + ((1.0 - rate) / rate * (-epsilon).exp()).ln_1p();
            // More than the rounding of these few steps.
            Ok((epsilon * (1.0 + 1e-12)).max(0.0))
        }
        Mechanism::PoissonGaussian { .. } => composed(Pld::default(), mechanism, 1, delta),
        Mechanism::DiscreteGaussian { .. } => composed(Rdp::default(), mechanism, 1, delta),
    }
}

/// The ε that an accountant proves for some equal releases.
pub(super) fn composed(
    mut accountant: impl Accountant,
    mechanism: &Mechanism,
    releases: u32,
    delta: f64,
) -> Result<f64, AccountError> {
    accountant.compose(mechanism, releases)?;
    accountant.epsilon(delta)
}

/// The number of a key: known, or computed once.
fn known<K: Eq + Hash>(
    numbers: &mut HashMap<K, f64>,
    key: K,
    compute: impl FnOnce() -> Result<f64, AccountError>,
) -> Result<f64> {
    Ok(match numbers.entry(key) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(new) => *new.insert(compute()?),
    })
}
