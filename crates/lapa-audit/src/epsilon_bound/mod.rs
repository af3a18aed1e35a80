//! Lower bounds on ε that hold with a stated confidence.
//!
//! All of it is computed here, apart from the accountants that it is meant to check. Numbers are
//! rounded so that a bound is never too high: limits on error rates outward, bounds on ε down.

mod binomial;
mod gaussian;
mod normal;
mod one_run;
mod rates;

pub use binomial::{binomial_tail, lower_limit, upper_limit};
pub use gaussian::{gdp_delta, gdp_epsilon, mu_lower};
pub use normal::{normal_cdf, normal_quantile};
pub use one_run::{one_run_epsilon, one_run_p_value};
pub use rates::{Errors, ScoreThreshold, epsilon_lower};

/// Relative margin for rounding in these functions, which are right to 10⁻¹⁰ or better.
const MARGIN: f64 = 1e-9;

/// The largest argument in [low, high] for which `holds`, given that it holds at `low`: from below,
/// to the last bit or two.
fn last_that(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(high) {
        return high;
    }
    // Each step halves what is left: no more than the bits of a number and of its exponent.
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
