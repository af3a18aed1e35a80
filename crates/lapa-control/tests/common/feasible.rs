//! Amplitudes within their limits.

use lapa::optimize::Limits;

/// True if amplitudes keep to the limits: exactly to P_max and P_0, to P_min up to rounding.
pub fn is_feasible(limits: &Limits, amplitudes: &[f64]) -> bool {
    let total: f64 = amplitudes.iter().map(|p| p * p).sum();
    amplitudes.len() == limits.devices()
        && amplitudes.iter().all(|&p| p >= 0.0 && p * p <= limits.most_each_w())
        && total <= limits.most_total_w()
        && total >= limits.least_total_w() * (1.0 - 1e-9)
}
