//! All accountants by their names.

use super::{Accountant, Advanced, Gdp, Naive, Pld, Rdp, Zcdp};
use crate::budget::Budget;
use crate::calibrate::noise_multiplier;
use crate::error::AccountError;
use crate::event::Mechanism;

/// An accountant as people choose it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// Its theorem in a few words.
    pub about: &'static str,
    /// Makes one.
    pub new: fn() -> Box<dyn Accountant>,
}

/// Every accountant.
pub const ACCOUNTANTS: [Named; 6] = [
    named("naive", "the paper's sum of ε (basic composition)", || Box::new(Naive::new())),
    named("advanced", "advanced composition of the same ε", || Box::new(Advanced::new())),
    named("zcdp", "zero-concentrated DP (zCDP)", || Box::new(Zcdp::new())),
    named("rdp", "Rényi DP, best order", || Box::new(Rdp::default())),
    named("gdp", "Gaussian DP, exact", || Box::new(Gdp::new())),
    named("pld", "privacy loss distribution, certified upper bound", || Box::new(Pld::default())),
];

const fn named(name: &'static str, about: &'static str, new: fn() -> Box<dyn Accountant>) -> Named {
    Named { name, about, new }
}

impl Named {
    /// The least σ, in units of the sensitivity, with which releases by `unit`, whose σ is 1, meet
    /// (ε, δ).
    pub fn sigma(
        &self,
        (epsilon, delta): (f64, f64),
        unit: Mechanism,
        releases: u32,
    ) -> Result<f64, AccountError> {
        // A typed refusal comes before any search.
        (self.new)().compose(&unit, 1)?;
        let budget = Budget::new(epsilon, delta)?;
        Ok(noise_multiplier(budget, unit, releases, self.new)? / unit.noise_multiplier())
    }
}
