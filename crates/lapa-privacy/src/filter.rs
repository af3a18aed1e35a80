//! Privacy filters: budgets of devices whose costs are chosen from earlier noisy outputs.
//!
//! An accountant adds up costs that were fixed beforehand. Costs that depend on what was released
//! need a filter: a capacity fixed before round 1, and a refusal before it is passed. Costs are the
//! worst over a device's records, so that a filter's state says nothing about them.

use serde::{Deserialize, Serialize};

use crate::accountant::{check_order, gdp, renyi_divergence};
use crate::budget::Budget;
use crate::calibrate::{least_noise, raise};
use crate::error::{AccountError, check_mechanism};
use crate::event::Mechanism;
use crate::range::{OutOfRange, check, count, positive};
use crate::rounding::{add_up, sqrt_up, sub_down};

/// Kind of filter: the cost that is added up, and the theorem that bounds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "filter")]
pub enum FilterKind {
    /// μ² of Gaussian releases without sampling: no loss against a fixed schedule.
    Gdp,
    /// The Rényi divergence at one order.
    Renyi {
        /// α, fixed before round 1.
        order: f64,
    },
    /// Number of releases, each with at least the planned noise.
    Plan {
        /// Mechanism of each release.
        mechanism: Mechanism,
        /// Largest number of releases.
        releases: u32,
        /// Proven ε of all of them together, at the budget's δ.
        epsilon: f64,
    },
}

/// A budget that cannot be overspent.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    kind: FilterKind,
    budget: Budget,
    capacity: f64,
    spent: f64,
}

/// The answer to a request: grant what fits, truncate to what is left, refuse below a floor. Filters,
/// ledgers, simulations and devices ask [`Decision::of`] alone. Costs are in units of the filter's
/// capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// All of it.
    Granted(f64),
    /// The rest of the budget, which is less.
    Truncated(f64),
    /// Nothing.
    Refused,
}

impl Decision {
    /// The decision on a `cost` where `left` may still be spent. Refused is a grant that would be 0
    /// or below `floor`.
    pub fn of(cost: f64, left: f64, floor: f64) -> Self {
        let granted = cost.min(left);
        // Written so that NaN is refused.
        if !(cost > 0.0 && granted > 0.0 && granted >= floor) {
            Self::Refused
        } else if cost <= left {
            Self::Granted(cost)
        } else {
            Self::Truncated(left)
        }
    }

    /// The cost that is granted; `None` if it is refused.
    pub fn granted(self) -> Option<f64> {
        match self {
            Self::Granted(cost) | Self::Truncated(cost) => Some(cost),
            Self::Refused => None,
        }
    }
}

/// capacity − spent, rounded down and at least 0: the most that can be added to `spent` by
/// [`add_up`] without passing `capacity`. Nothing is enforced under an infinite capacity.
pub fn left_of(capacity: f64, spent: f64) -> f64 {
    if capacity == f64::INFINITY {
        return capacity;
    }
    if spent >= capacity {
        return 0.0;
    }
    sub_down(capacity, spent)
}

/// A cost that is no cost or does not fit into what is left.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("cost = {cost}: expected a number from 0 to {left}, the budget that is left")]
pub struct Overspent {
    /// The cost.
    pub cost: f64,
    /// The rest of the budget.
    pub left: f64,
}

impl FilterKind {
    /// As in "the … accountant has no bound".
    fn name(&self) -> &'static str {
        match self {
            Self::Gdp => "gdp filter's",
            Self::Renyi { .. } => "rényi filter's",
            Self::Plan { .. } => "plan filter's",
        }
    }

    fn unsupported(&self, mechanism: Mechanism) -> AccountError {
        AccountError::Unsupported { accountant: self.name(), mechanism }
    }
}

impl Filter {
    /// With nothing spent.
    pub fn new(kind: FilterKind, budget: Budget) -> Result<Self, AccountError> {
        let capacity = match kind {
            FilterKind::Gdp => {
                let mu = gdp::mu(budget.epsilon(), budget.delta())?;
                (mu * mu).next_down().max(0.0)
            }
            FilterKind::Renyi { order } => renyi_capacity(budget, order)?,
            FilterKind::Plan { mechanism, releases, epsilon } => {
                check_mechanism(&mechanism)?;
                count("releases", releases)?;
                if mechanism == Mechanism::NonPrivate {
                    return Err(kind.unsupported(mechanism));
                }
                let fits = epsilon >= 0.0 && epsilon <= budget.epsilon();
                let allowed = "a number from 0 to the epsilon of the budget";
                check("epsilon of the plan", epsilon, fits, allowed)?;
                f64::from(releases)
            }
        };
        Ok(Self { kind, budget, capacity, spent: 0.0 })
    }

    /// For Gaussian releases without sampling: capacity μ²(ε, δ).
    pub fn gdp(budget: Budget) -> Result<Self, AccountError> {
        Self::new(FilterKind::Gdp, budget)
    }

    /// For anything with a Rényi divergence: capacity B = ε − ln(1−1/α) + ln(δα)/(α−1), the
    /// divergence that (ε, δ) allows at `order` (Canonne, Kamath & Steinke 2020, Proposition 12).
    /// An order that leaves nothing is refused; see [`renyi_order`].
    pub fn renyi(budget: Budget, order: f64) -> Result<Self, AccountError> {
        Self::new(FilterKind::Renyi { order }, budget)
    }

    /// For a schedule fixed before round 1: at most `releases` releases by `mechanism` or with more
    /// noise, for which an accountant proved `epsilon` at the budget's δ.
    pub fn plan(
        budget: Budget,
        mechanism: Mechanism,
        releases: u32,
        epsilon: f64,
    ) -> Result<Self, AccountError> {
        Self::new(FilterKind::Plan { mechanism, releases, epsilon }, budget)
    }

    /// Kind of the filter.
    pub fn kind(&self) -> FilterKind {
        self.kind
    }

    /// The guarantee, whatever is requested.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The most that may be spent.
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Spent cost, not below.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Rest of the budget, not above.
    pub fn left(&self) -> f64 {
        left_of(self.capacity, self.spent)
    }

    /// Cost of a release by `mechanism`, not below; ∞ without noise.
    pub fn cost(&self, mechanism: &Mechanism) -> Result<f64, AccountError> {
        check_mechanism(mechanism)?;
        match self.kind {
            FilterKind::Gdp => gdp::mu_squared(mechanism, self.kind.name()),
            FilterKind::Renyi { order } => {
                Ok(renyi_divergence(mechanism, order)? * above_rounding(order))
            }
            FilterKind::Plan { mechanism: planned, .. } => self.plan_cost(&planned, mechanism),
        }
    }

    /// `template` with the least noise at which it costs at most `cost`.
    pub fn mechanism_for(&self, template: Mechanism, cost: f64) -> Result<Mechanism, AccountError> {
        positive("cost", cost)?;
        if template == Mechanism::NonPrivate {
            return Err(self.kind.unsupported(template));
        }
        let cost_at = |noise_multiplier| self.cost(&template.with_noise(noise_multiplier));
        let least =
            match self.kind {
                FilterKind::Gdp => raise(1.0 / cost.sqrt(), &|noise_multiplier| {
                    Ok(cost_at(noise_multiplier)? <= cost)
                })?,
                FilterKind::Renyi { order } => {
                    least_noise(template, 2.0 * cost / order, cost, &cost_at)?
                }
                FilterKind::Plan { mechanism: planned, .. } => {
                    self.plan_cost(&planned, &template.with_noise(planned.noise_multiplier()))?;
                    let allowed = "at least 1, the cost of a planned release";
                    check("cost", cost, cost >= 1.0, allowed)?;
                    return Ok(planned);
                }
            };
        let allowed = "a cost that some amount of noise can meet";
        let noise = least.ok_or(OutOfRange { name: "cost", value: cost, allowed })?;
        Ok(template.with_noise(noise))
    }

    /// 1 for the planned mechanism with the planned noise or more.
    fn plan_cost(&self, planned: &Mechanism, mechanism: &Mechanism) -> Result<f64, AccountError> {
        let noise_multiplier = mechanism.noise_multiplier();
        if *mechanism == Mechanism::NonPrivate {
            return Ok(f64::INFINITY);
        }
        if planned.with_noise(noise_multiplier) != *mechanism {
            return Err(self.kind.unsupported(*mechanism));
        }
        let fits = noise_multiplier >= planned.noise_multiplier();
        check("noise multiplier", noise_multiplier, fits, "at least the planned value")?;
        Ok(1.0)
    }

    /// Decision on `cost`; a plan grants whole releases only. Spends nothing: see
    /// [`Filter::charge`].
    pub fn request(&self, cost: f64, floor: f64) -> Decision {
        let is_plan = matches!(self.kind, FilterKind::Plan { .. });
        let floor = if is_plan && floor < 1.0 { 1.0 } else { floor };
        Decision::of(cost, self.left(), floor)
    }

    /// Spends `cost`, before the release it is for. Nothing is spent if it does not fit.
    pub fn charge(&mut self, cost: f64) -> Result<(), Overspent> {
        let spent = add_up(self.spent, cost);
        if cost >= 0.0 && spent <= self.capacity {
            self.spent = spent;
            return Ok(());
        }
        Err(Overspent { cost, left: self.left() })
    }

    /// Restores what was spent, from a ledger; more than the capacity leaves nothing.
    pub fn set_spent(&mut self, spent: f64) -> Result<(), AccountError> {
        self.spent = check("spent", spent, spent >= 0.0, "a number from 0")?;
        Ok(())
    }

    /// The odometer: ε of what was really spent, at the budget's δ. Ex post, hence no guarantee for
    /// an adaptive run; that is the budget. A plan answers with the ε proved for all of it.
    pub fn spent_epsilon(&self) -> Result<f64, AccountError> {
        if self.spent == 0.0 {
            return Ok(0.0);
        }
        let delta = self.budget.delta();
        let within = self.spent <= self.capacity;
        let epsilon = match self.kind {
            FilterKind::Gdp => gdp::epsilon(sqrt_up(self.spent), delta)?,
            FilterKind::Renyi { order } => {
                let (shift, slack) = conversion(order, delta);
                add_up(add_up(self.spent, -shift), slack).max(0.0)
            }
            FilterKind::Plan { epsilon, .. } if within => epsilon,
            FilterKind::Plan { .. } => f64::INFINITY,
        };
        // The budget holds as long as the capacity does, so rounding need not exceed it.
        Ok(if within { epsilon.min(self.budget.epsilon()) } else { epsilon })
    }

    /// Theorem by which the budget holds however requests depend on earlier outputs.
    pub fn theorem(&self) -> &'static str {
        match self.kind {
            FilterKind::Gdp => {
                "adaptively chosen releases that are μ_t-GDP with Σ μ_t² ≤ μ² are together μ-GDP (Smith & \
                 Thakurta 2022; per record, Koskela, Tobaben & Honkela 2022)"
            }
            FilterKind::Renyi { .. } => {
                "adaptively chosen releases whose Rényi divergences at one order, fixed in advance, \
                 sum to at most B have together a divergence of at most B at that order (Feldman & \
                 Zrnic 2021)"
            }
            FilterKind::Plan { .. } => {
                "each release uses at least the planned noise and the number of releases is fixed in \
                 advance, so the precomputed (PLD) bound applies in whatever order they are made \
                 (adaptive composition of dominating pairs, Zhu, Dong & Wang 2022)"
            }
        }
    }
}

/// The order at which `releases` equal releases like `template` need least noise to stay within a
/// Rényi filter, of 1 + 2^{k/8} between 1.001 and 2¹⁷ (integers from 16 on). Depends on nothing
/// private, so it may be chosen before round 1.
pub fn renyi_order(
    budget: Budget,
    template: Mechanism,
    releases: u32,
) -> Result<f64, AccountError> {
    count("releases", releases)?;
    let mut best = None;
    for k in coarse_to_fine(-80, 136) {
        let order = 1.0 + (f64::from(k) / 8.0).exp2();
        let order = if order < 16.0 { order } else { order.round() };
        let Ok(filter) = Filter::renyi(budget, order) else { continue };
        let even = filter.capacity() / f64::from(releases);
        if let Some((noise, _)) = best
            && filter.cost(&template.with_noise(noise))? > even
        {
            continue;
        }
        let mechanism = filter.mechanism_for(template, even)?;
        best = Some((mechanism.noise_multiplier(), order));
    }
    best.map(|(_, order)| order).ok_or(AccountError::OutOfReach {
        epsilon: budget.epsilon(),
        delta: budget.delta(),
        largest: f64::INFINITY,
    })
}

/// Each integer of a range once, every 16th first, so that a good one comes early.
fn coarse_to_fine(first: i32, last: i32) -> impl Iterator<Item = i32> {
    [16, 8, 4, 2, 1].into_iter().flat_map(move |stride: i32| {
        (first..=last)
            .step_by(stride as usize)
            .filter(move |k| stride == 16 || (k - first) % (2 * stride) != 0)
    })
}

/// A factor above the rounding error of a Rényi divergence, which grows with the order: the sum has
/// as many terms.
fn above_rounding(order: f64) -> f64 {
    1.0 + 1e-13 * (10.0 + order)
}

/// ε = r − shift + slack converts a divergence r, with shift = −ln(1−1/α) and
/// slack = −ln(δα)/(α−1), each to the safe side by more than its rounding error.
fn conversion(order: f64, delta: f64) -> (f64, f64) {
    let unit = 4.0 * f64::EPSILON;
    let above = order - 1.0;
    let shift = -(above / order).ln();
    let (ln_delta, ln_order) = (delta.ln(), order.ln());
    let slack = -(ln_delta + ln_order) / above;
    (shift - unit * (1.0 + shift), slack + unit * (ln_order - ln_delta) / above)
}

fn renyi_capacity(budget: Budget, order: f64) -> Result<f64, AccountError> {
    check_order(order)?;
    let (shift, slack) = conversion(order, budget.delta());
    let capacity = sub_down(sub_down(budget.epsilon(), -shift), slack);
    // An infinite capacity would come from a slack that overflows: prove nothing then.
    let fits = capacity > 0.0 && capacity.is_finite();
    check("order", order, fits, "a larger order, at which the budget leaves something to spend")?;
    Ok(capacity)
}

#[cfg(test)]
mod tests;
