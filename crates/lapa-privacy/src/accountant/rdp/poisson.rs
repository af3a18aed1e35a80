//! Rényi divergence of the Gaussian mechanism on a Poisson sample.
//!
//! With w = e^{(2x−1)/(2z²)}, the density ratio of N(1, z²) and N(0, z²), the divergence of order α
//! is ψ(α)/(α−1), where ψ(α) = ln A(α) and A(α) = E[(1−q+q·w)^α] over x ~ N(0, z²). The opposite
//! direction is never larger (Mironov, Talwar & Zhang 2019, arXiv:1908.10530).

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

use crate::math::{erfcx, ln_add, ln_normal_cdf};

/// The largest order whose sum is evaluated term by term; above it a bound is used.
const MOST_TERMS: f64 = 8192.0;

/// z beyond which more noise is not counted: keeps z² finite.
const MOST_NOISE: f64 = 1e100;

/// The divergence of order `order` > 1 for 0 < q < 1 and z > 0, never below its true value beyond
/// rounding.
///
/// Up to order 8192 it is exact for integers; fractional orders are rounded up by some 10⁻¹⁴/(α−1),
/// or, where that is more than the divergence itself, by less than 2 %. Beyond 8192 it is an upper
/// bound. In any case at most α/(2z²), the divergence without sampling, by quasi-convexity; that is
/// also what remains when a sum overflows.
pub(super) fn divergence(rate: f64, noise_multiplier: f64, order: f64) -> f64 {
    let unsampled = order / 2.0 / noise_multiplier / noise_multiplier;
    if rate == 0.0 {
        return 0.0;
    }
    let pair = Pair::new(rate, noise_multiplier.min(MOST_NOISE));
    let psi = if order > MOST_TERMS {
        // r grows with its order.
        let above = order.ceil();
        pair.tail_bound(above) * ((order - 1.0) / (above - 1.0))
    } else if order.fract() == 0.0 {
        pair.integer(order)
    } else {
        pair.fractional(order)
    };
    // Also if `psi` is not a number.
    unsampled.min(psi / (order - 1.0))
}

/// N(0, z²) against (1−q)·N(0, z²) + q·N(1, z²).
struct Pair {
    rate: f64,
    z: f64,
    /// 1/z²
    precision: f64,
    ln_in: f64,
    ln_out: f64,
}

impl Pair {
    fn new(rate: f64, z: f64) -> Self {
        Self { rate, z, precision: z.powi(-2), ln_in: rate.ln(), ln_out: (-rate).ln_1p() }
    }

    /// ln E[w^k] = k(k−1)/(2z²)
    fn ln_power(&self, k: f64) -> f64 {
        k * (k - 1.0) / 2.0 * self.precision
    }

    /// ψ at an integer order: the binomial sum of Section 3.3.
    ///
    /// Differs from the paper: sums A − 1, which the terms of E[w^i] − 1 give without
    /// cancellation, so that tiny divergences keep their relative precision.
    fn integer(&self, order: f64) -> f64 {
        let mut sum = LnSum::default();
        let ln_odds = self.ln_in - self.ln_out;
        let mut ln_weight = order * self.ln_out;
        let mut i = 0.0;
        while i < order {
            ln_weight += ((order - i) / (i + 1.0)).ln() + ln_odds;
            i += 1.0;
            let power = self.ln_power(i);
            sum.add(-(-power).exp_m1(), ln_weight + power);
        }
        ln_add(0.0, sum.ln())
    }

    /// ψ at a fractional order: the least of three upper bounds.
    fn fractional(&self, order: f64) -> f64 {
        let mut psi = self.series(order);
        // Only here do the roundings of the series, which are relative to A, matter for A − 1.
        if psi < 0.1 {
            psi = psi.min(self.chord(order));
            if order < 4.0 {
                psi = psi.min(self.taylor(order));
            }
        }
        psi
    }

    /// ψ is convex and 0 at order 1, so a chord between neighboring integers lies above it.
    fn chord(&self, order: f64) -> f64 {
        let below = order.floor();
        let at_below = if below > 1.0 { self.integer(below) } else { 0.0 };
        let share = order - below;
        (1.0 - share) * at_below + share * self.integer(below + 1.0)
    }

    /// The two series of Section 3.3 (fractional α): (1−q+q·w)^α is expanded in powers of the
    /// smaller summand on either side of x₀, where q·w = 1−q.
    ///
    /// Differs from the paper, which adds terms until they are small: from ⌈α⌉ on the terms
    /// alternate, and their sizes are moments of a positive measure on [0, 1] (a binomial
    /// coefficient is a Beta integral, erfcx a Laplace transform), so the tail is summed by
    /// Cohen, Rodriguez Villegas & Zagier (2000), Algorithm 1, whose Proposition 1 bounds the
    /// error; the bound is added. All parts are then positive.
    fn series(&self, order: f64) -> f64 {
        let x0 = self.z * self.z * (self.ln_out - self.ln_in) + 0.5;
        // Both halves of E[(1−q)^{α−k}(q·w)^k], split at x₀; `inside` is how far the tilted mean k
        // lies inside the half, in units of z. Outside, all that depends on k cancels except erfcx.
        let outside = order * self.ln_out - (x0 / self.z).powi(2) / 2.0;
        let half = |k: f64, inside: f64| {
            if inside >= 0.0 {
                (order - k) * self.ln_out
                    + k * self.ln_in
                    + self.ln_power(k)
                    + ln_normal_cdf(inside)
            } else {
                outside + erfcx(-inside * FRAC_1_SQRT_2).ln() - LN_2
            }
        };
        let both = |i: f64| {
            let (left, right) = (i, order - i);
            ln_add(half(left, (x0 - left) / self.z), half(right, (right - x0) / self.z))
        };

        let mut sum = LnSum::default();
        let mut ln_binomial = 0.0;
        let mut i = 0.0;
        while i < order {
            sum.add(1.0, ln_binomial + both(i));
            ln_binomial += ((order - i) / (i + 1.0)).ln();
            i += 1.0;
        }

        const STEPS: u32 = 24;
        let n = f64::from(STEPS);
        let d = (3.0 + 8f64.sqrt()).powi(24);
        let d = (d + 1.0 / d) / 2.0;
        let first = ln_binomial + both(i);
        let (mut b, mut c, mut tail) = (-1.0, -d, 0.0);
        for step in 0..STEPS {
            let k = f64::from(step);
            c = b - c;
            tail += c * (ln_binomial + both(i) - first).exp();
            b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1.0));
            ln_binomial += ((i - order) / (i + 1.0)).ln();
            i += 1.0;
        }
        sum.add(tail / d + 1.0 / d, first);

        // A unit of the last place of the largest exponents that can matter.
        let exponents = order * (self.ln_in.abs() + self.ln_out.abs()) + self.ln_power(order);
        sum.ln() + 4.0 * f64::EPSILON * (16.0 + exponents)
    }

    /// For α < 4: Taylor's polynomial of (1+u)^α, u = q(w−1) > −q, with the bound
    /// C(α,4)·u⁴·(1−q)^{α−4} on the remainder; moments of w − 1 in closed form.
    fn taylor(&self, order: f64) -> f64 {
        let d = self.precision.exp_m1();
        let second = d;
        let third = d * d * (d + 3.0);
        let fourth = d * d * (3.0 + d * (16.0 + d * (15.0 + d * (6.0 + d))));
        let c2 = order * (order - 1.0) / 2.0;
        let c3 = c2 * (order - 2.0) / 3.0;
        let c4 = c3 * (order - 3.0) / 4.0;
        let q = self.rate;
        let remainder = c4.max(0.0) * fourth * ((order - 4.0) * self.ln_out).exp();
        (q * q * (c2 * second + q * (c3 * third + q * remainder))).ln_1p()
    }

    /// An upper bound of ψ at a large integer order α, in a time that hardly grows with it.
    ///
    /// A − 1 = E[E(w^I) − 1] over I ~ Binomial(α, q): I is rounded up to the end of its block, and
    /// P(I ≥ a) is replaced by the least of 1, Chernoff's bound and C(α,a)·q^a.
    fn tail_bound(&self, order: f64) -> f64 {
        let mean = order * self.rate;
        let deviation = (mean * (1.0 - self.rate)).sqrt();
        let ln_tail = |a: f64| {
            let rest = order - a;
            let ln_rest = if rest > 0.0 { rest * (rest / (order - mean)).ln() } else { 0.0 };
            let chernoff = -a * (a / mean).ln() - ln_rest;
            let ln_choose =
                libm::lgamma(order + 1.0) - libm::lgamma(a + 1.0) - libm::lgamma(rest + 1.0);
            chernoff.min(ln_choose + a * self.ln_in).min(0.0)
        };

        let mut end = mean.floor().max(1.0);
        let mut power = self.ln_power(end);
        let mut sum = LnSum::default();
        sum.add(-(-power).exp_m1(), power);
        while end < order {
            let start = end + 1.0;
            let width = (deviation / 8.0).max((start - mean) / 32.0).floor().max(1.0);
            end = (end + width).min(order);
            let next = self.ln_power(end);
            sum.add(-(power - next).exp_m1(), next + ln_tail(start));
            power = next;
        }
        ln_add(0.0, sum.ln())
    }
}

/// ln Σ factor·e^exponent, factors ≥ 0, without overflow; not a number if a term is none.
struct LnSum {
    scale: f64,
    sum: f64,
}

impl Default for LnSum {
    fn default() -> Self {
        Self { scale: f64::NEG_INFINITY, sum: 0.0 }
    }
}

impl LnSum {
    fn add(&mut self, factor: f64, exponent: f64) {
        if exponent > self.scale {
            self.sum = self.sum * (self.scale - exponent).exp() + factor;
            self.scale = exponent;
        } else if exponent != f64::NEG_INFINITY {
            self.sum += factor * (exponent - self.scale).exp();
        }
    }

    fn ln(&self) -> f64 {
        self.scale + self.sum.ln()
    }
}
