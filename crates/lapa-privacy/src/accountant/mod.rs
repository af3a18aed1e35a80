//! Accountants: the composed cost of releases.

pub mod gdp;
mod naive;
mod named;
mod pld;
mod rdp;
mod zcdp;

pub use gdp::Gdp;
pub use naive::{Advanced, Classic, Naive};
pub use named::{ACCOUNTANTS, Named};
pub use pld::{Pld, PldSchedule};
pub(crate) use rdp::check_order;
pub use rdp::{Rdp, renyi_divergence};
pub use zcdp::Zcdp;

use crate::error::AccountError;
use crate::event::Mechanism;

/// Adds up what mechanisms cost. Mechanisms may be chosen adaptively, but the *costs* must not be:
/// for that, see the filters.
pub trait Accountant {
    /// The accountant's name, as in `lapa account`.
    fn name(&self) -> &'static str;

    /// Adds `count` releases by `mechanism`. A mechanism without noise is accepted and costs ∞.
    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError>;

    /// The smallest ε it can prove at `delta`, never rounded down; ∞ where there is none.
    fn epsilon(&self, delta: f64) -> Result<f64, AccountError>;
}

/// ε that an accountant proves for releases together: each mechanism with its count.
pub fn composed(
    mut accountant: impl Accountant,
    releases: impl IntoIterator<Item = (Mechanism, u32)>,
    delta: f64,
) -> Result<f64, AccountError> {
    releases
        .into_iter()
        .try_for_each(|(mechanism, count)| accountant.compose(&mechanism, count))?;
    accountant.epsilon(delta)
}

impl<A: Accountant + ?Sized> Accountant for Box<A> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError> {
        (**self).compose(mechanism, count)
    }

    fn epsilon(&self, delta: f64) -> Result<f64, AccountError> {
        (**self).epsilon(delta)
    }
}
