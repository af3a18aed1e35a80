//! The privacy loss of one release: L(x) = ln P(x)/Q(x) for x drawn from P.
//!
//! The pairs (P, Q) dominate the mechanism under its adjacency (Zhu, Dong, Wang: Optimal Accounting
//! of Differential Privacy via Characteristic Function, 2022). The noise has standard deviation 1,
//! the sensitivity is μ = 1/z.

use std::f64::consts::{LN_2, PI};

/// A dominating pair of the Gaussian mechanism on a Poisson sample; L grows with x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SingleLoss {
    /// The pair.
    pub(super) pair: Pair,
    /// q; 1 is the Gaussian mechanism itself.
    pub(super) rate: f64,
    /// μ
    pub(super) mu: f64,
}

/// Pair of distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    /// P = (1−q)·N(0) + q·N(μ), Q = N(0): a record is removed.
    Remove,
    /// P = N(0), Q = (1−q)·N(0) + q·N(−μ): a record is added (mirrored, so that L grows with x).
    Add,
    /// P = (1−q)·N(0) + q·N(μ), Q = (1−q)·N(0) + q·N(−μ): a record is replaced.
    Replace,
}

/// Place of a loss value: its x, and the slope of L there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// x with L(x) = v
    pub(super) x: f64,
    /// dL/dx there
    pub(super) slope: f64,
}

impl SingleLoss {
    /// L(x), to high relative precision also where it is tiny.
    pub(super) fn at(&self, x: f64) -> f64 {
        match self.pair {
            Pair::Remove => self.ln_mix(x),
            Pair::Add => -self.ln_mix(-x),
            Pair::Replace => self.replaced(x.abs()).copysign(x),
        }
    }

    /// ln of (1 − q + q·e^{u₊})/(1 − q + q·e^{u₋}), u± = ±μx − μ²/2, for x ≥ 0.
    fn replaced(&self, x: f64) -> f64 {
        let (q, mu) = (self.rate, self.mu);
        if mu.max(mu * x) > 30.0 {
            return self.ln_mix(x) - self.ln_mix(-x);
        }
        let low = (-mu * (x + mu / 2.0)).exp_m1();
        let difference = 2.0 * q * (-mu * mu / 2.0).exp() * (mu * x).sinh();
        (difference / (1.0 + q * low)).ln_1p()
    }

    /// ln(1 − q + q·e^u), u = μx − μ²/2: the mixture against N(0).
    fn ln_mix(&self, x: f64) -> f64 {
        let (q, u) = (self.rate, self.mu * (x - self.mu / 2.0));
        if q == 1.0 {
            u
        } else if u > 1.0 {
            u + (q + (1.0 - q) * (-u).exp()).ln()
        } else {
            (q * u.exp_m1()).ln_1p()
        }
    }

    /// The total variation distance of P and Q: δ at ε = 0.
    pub(super) fn total_variation(&self) -> f64 {
        let distance = if self.pair == Pair::Replace { 2.0 * self.mu } else { self.mu };
        self.rate * libm::erf(distance / 8.0_f64.sqrt())
    }

    /// P's density at x.
    pub(super) fn density(&self, x: f64) -> f64 {
        match self.pair {
            Pair::Add => normal(x),
            Pair::Remove | Pair::Replace => {
                (1.0 - self.rate) * normal(x) + self.rate * normal(x - self.mu)
            }
        }
    }

    /// The normal distributions that P is mixed of: weights and means.
    pub(super) fn components(&self) -> impl Iterator<Item = (f64, f64)> {
        let hit = if self.pair == Pair::Add { 0.0 } else { self.rate };
        [(1.0 - hit, 0.0), (hit, self.mu)].into_iter().filter(|(weight, _)| *weight > 0.0)
    }

    /// The x from `reach` standard deviations below P's lowest mean to as many above its highest:
    /// on either side at most e^{−reach²/2}/2 of P is left out.
    pub(super) fn support(&self, reach: f64) -> (f64, f64) {
        let mut means = self.components().map(|(_, mean)| mean);
        let lowest = means.next().unwrap_or(0.0);
        (lowest - reach, means.last().unwrap_or(lowest) + reach)
    }

    /// The place where L is v; x = ∓∞ below or above all losses.
    pub(super) fn place(&self, v: f64) -> Place {
        match self.pair {
            Pair::Remove => self.place_in_mix(v),
            Pair::Add => {
                let Place { x, slope } = self.place_in_mix(-v);
                Place { x: -x, slope }
            }
            Pair::Replace => self.place_in_replace(v),
        }
    }

    /// Solves ln(1 − q + q·e^u) = v for x; dv/dx = μ·(1 − (1−q)·e^{−v}).
    fn place_in_mix(&self, v: f64) -> Place {
        let (q, mu) = (self.rate, self.mu);
        let (u, share) = if q == 1.0 {
            (v, 1.0)
        } else if v > 1.0 {
            let share = 1.0 - (1.0 - q) * (-v).exp();
            (v + (share / q).ln(), share)
        } else {
            let e = v.exp_m1();
            if e / q > -0.5 {
                ((e / q).ln_1p(), (q + e) / (1.0 + e))
            } else {
                // Near the lowest loss, where q + e would cancel.
                let lowest = if q < 0.5 { (-q).ln_1p() } else { (1.0 - q).ln() };
                if v <= lowest {
                    return Place { x: f64::NEG_INFINITY, slope: 0.0 };
                }
                let share = -(lowest - v).exp_m1();
                (v + (share / q).ln(), share)
            }
        };
        Place { x: u / mu + mu / 2.0, slope: mu * share }
    }

    /// With ρ = e^{μ²/2}·(1−q)/q, L(x) = v is sinh(μx − v/2) = ρ·sinh(v/2).
    fn place_in_replace(&self, v: f64) -> Place {
        let (q, mu) = (self.rate, self.mu);
        let ln_rho = mu * mu / 2.0 + ((1.0 - q) / q).ln();
        let half = v.abs() / 2.0;
        let ln_sinh =
            if half > 1.0 { half - LN_2 + (-(-v.abs()).exp()).ln_1p() } else { half.sinh().ln() };
        // mu·dx/dv = (1 + growth)/2
        let (shift, growth) = if ln_rho + ln_sinh > 20.0 {
            (LN_2 + ln_rho + ln_sinh, 1.0 / half.tanh())
        } else {
            let right = (ln_rho + ln_sinh).exp();
            let ln_cosh =
                if half > 1.0 { half - LN_2 + (-v.abs()).exp().ln_1p() } else { half.cosh().ln() };
            (right.asinh(), (ln_rho + ln_cosh).exp() / 1.0_f64.hypot(right))
        };
        let x = (half + shift) / mu;
        Place { x: if v < 0.0 { -x } else { x }, slope: 2.0 * mu / (1.0 + growth) }
    }
}

/// φ(x)
fn normal(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}
