//! Rényi differential privacy: adds up divergences at fixed orders.

mod poisson;

use super::Accountant;
use crate::error::{AccountError, check_delta, check_rate};
use crate::event::{Adjacency, Mechanism};
use crate::range::{OutOfRange, check, count, positive};

const NAME: &str = "rdp";

/// Rényi differential privacy (Mironov 2017). Each order gives a bound; the least of them holds.
#[derive(Clone, Debug)]
pub struct Rdp {
    /// Above 1, ascending.
    orders: Vec<f64>,
    /// At each order, what has been released so far.
    divergences: Vec<f64>,
    /// True if orders between the given ones may be tried: they are the default, and there was no
    /// Poisson sample yet, so that the divergence is proportional to its order.
    search: bool,
}

impl Default for Rdp {
    /// 201 orders: 1 + 10⁻⁴·2^{k/2} below 1.1; tenths to 10.9; integers to 64; 64·2^{k/2}, rounded
    /// up, to 2²⁰.
    fn default() -> Self {
        let near_one = (0..20).map(|k| 1.0 + 1e-4 * 2f64.powf(f64::from(k) / 2.0));
        let tenths = (1..100).filter(|k| k % 10 != 0).map(|k| 1.0 + f64::from(k) / 10.0);
        let integers = (2..=64).map(f64::from);
        let large = (1..=28).map(|k| (64.0 * 2f64.powf(f64::from(k) / 2.0)).ceil());
        let mut orders: Vec<f64> = near_one.chain(tenths).chain(integers).chain(large).collect();
        orders.sort_by(f64::total_cmp);
        Self { search: true, ..Self::new(orders) }
    }
}

impl Rdp {
    /// With orders of one's own, each a finite number above 1.
    pub fn with_orders(mut orders: Vec<f64>) -> Result<Self, AccountError> {
        count("number of orders", orders.len() as u32)?;
        for &order in &orders {
            check_order(order)?;
        }
        orders.sort_by(f64::total_cmp);
        Ok(Self::new(orders))
    }

    fn new(orders: Vec<f64>) -> Self {
        let divergences = vec![0.0; orders.len()];
        Self { orders, divergences, search: false }
    }

    /// The smallest ε it can prove at `delta`, and the order that proves it.
    ///
    /// ε = min_α r + ln(1−1/α) − ln(δα)/(α−1) (Canonne, Kamath & Steinke 2020, Prop. 12), and 0
    /// where √(r/2), which bounds the total variation (Pinsker), is at most δ. With the default
    /// orders, and as long as only plain or discrete Gaussians were released, r = α·Σ1/(2z²) is
    /// known at every order, and orders next to the best one are tried too.
    pub fn epsilon_and_order(&self, delta: f64) -> Result<(f64, f64), AccountError> {
        check_delta(delta)?;
        let mut best = (f64::INFINITY, 0);
        for (index, (&order, &divergence)) in self.orders.iter().zip(&self.divergences).enumerate()
        {
            let epsilon = conversion(divergence, order, delta);
            if epsilon < best.0 {
                best = (epsilon, index);
            }
        }
        let (epsilon, index) = best;
        let best = (epsilon, self.orders[index]);
        if !self.search || epsilon.is_infinite() {
            return Ok(best);
        }
        let slope = self.divergences[index] / self.orders[index];
        let below = self.orders[index.saturating_sub(1)];
        let above = self.orders[(index + 1).min(self.orders.len() - 1)];
        let between = golden_section(below, above, |order| conversion(slope * order, order, delta));
        Ok(if between.0 < best.0 { between } else { best })
    }
}

impl Accountant for Rdp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn compose(&mut self, mechanism: &Mechanism, count: u32) -> Result<(), AccountError> {
        let each: Result<Vec<f64>, _> =
            self.orders.iter().map(|&order| renyi_divergence(mechanism, order)).collect();
        let each = each?;
        if count == 0 {
            return Ok(());
        }
        for (sum, one) in self.divergences.iter_mut().zip(each) {
            *sum += one * f64::from(count);
        }
        self.search &= !matches!(mechanism, Mechanism::PoissonGaussian { .. });
        Ok(())
    }

    fn epsilon(&self, delta: f64) -> Result<f64, AccountError> {
        Ok(self.epsilon_and_order(delta)?.0)
    }
}

/// The ε at `delta` that a divergence at one order proves.
fn conversion(divergence: f64, order: f64, delta: f64) -> f64 {
    if (divergence / 2.0).sqrt() <= delta {
        return 0.0;
    }
    let above = order - 1.0;
    let (shift, slack) = ((above / order).ln(), -(delta.ln() + order.ln()) / above);
    // More than the rounding of the divergence, whose sum has as many terms as its order, and of
    // what follows.
    let rounding = 1e-13 * ((10.0 + order) * divergence + shift.abs() + slack.abs());
    (divergence + shift + slack + rounding).max(0.0)
}

/// The least value of `f` seen while closing in on a minimum, and where it is.
fn golden_section(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> (f64, f64) {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let mut best = (f64::INFINITY, high);
    for _ in 0..60 {
        let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
        let (at_left, at_right) = (f(left), f(right));
        for (value, order) in [(at_left, left), (at_right, right)] {
            if value < best.0 {
                best = (value, order);
            }
        }
        if at_left < at_right {
            high = right;
        } else {
            low = left;
        }
    }
    best
}

/// The Rényi divergence of `order` that one release by `mechanism` can cause; ∞ without noise.
///
/// - Gaussian and discrete Gaussian: α/(2z²) (Mironov 2017, Prop. 7; Canonne, Kamath & Steinke
///   2020, Prop. 5).
/// - Gaussian on a Poisson sample, under zero-out and add-remove adjacency: Mironov, Talwar &
///   Zhang 2019, arXiv:1908.10530, Section 3.3. Never below the true value beyond rounding. Time
///   grows with the order up to 8192; above, it is an upper bound. No bound is known to this
///   accountant under replace-one adjacency.
pub fn renyi_divergence(mechanism: &Mechanism, order: f64) -> Result<f64, AccountError> {
    check_order(order)?;
    match *mechanism {
        Mechanism::Gaussian { noise_multiplier }
        | Mechanism::DiscreteGaussian { noise_multiplier } => {
            let z = positive("noise multiplier", noise_multiplier)?;
            Ok(order / 2.0 / z / z)
        }
        Mechanism::PoissonGaussian { adjacency: Adjacency::ReplaceOne, .. } => {
            Err(AccountError::Unsupported { accountant: NAME, mechanism: *mechanism })
        }
        Mechanism::PoissonGaussian {
            rate,
            noise_multiplier,
            adjacency: Adjacency::ZeroOut | Adjacency::AddRemove,
        } => {
            let z = positive("noise multiplier", noise_multiplier)?;
            if check_rate(rate)? == 1.0 {
                return Ok(order / 2.0 / z / z);
            }
            Ok(poisson::divergence(rate, z, order))
        }
        Mechanism::NonPrivate => Ok(f64::INFINITY),
    }
}

pub(crate) fn check_order(order: f64) -> Result<f64, OutOfRange> {
    check("order", order, order > 1.0 && order.is_finite(), "a finite number above 1")
}
