//! The best powers against channel noise alone.

use lapa_privacy::OutOfRange;

use super::{BuildOptimizer, Given, Known, Limits, Optimizer};

/// Parameters of the closed form: none.
#[derive(Clone, Copy, Debug)]
pub struct ClosedForm;

impl BuildOptimizer for ClosedForm {
    fn build(&self, given: Given<'_>) -> Result<Box<dyn Optimizer>, OutOfRange> {
        Ok(Box::new(Known::closed_form(given.limits, given.channel_terms)))
    }
}

/// Amplitudes with p_k² = min(P_0, a·√b_k), where b_k/p_k² is device k's channel noise in the
/// objective: Σ_t d_t·G_k²·c²·σ_n²/(2‖h_k‖²). With a channel that stays, √b_k is in proportion to
/// G_k·c_k/‖h_k‖, G_k being the root of the mean square over rounds. `a` is such that the powers
/// add up to P_max, or all devices that ever send have P_0. A device that never sends has none,
/// unless P_min asks for it.
///
/// Minimizes Σ_k b_k/p_k² (by Lagrange, P_k² ∝ b_k), which is the objective but for a constant under
/// [`NoiseRule::Always`](crate::budget::NoiseRule::Always), whose c² contains the artificial noise.
/// Under the other rules c is that of updates without artificial noise, and this is a yardstick.
///
/// Differs from the paper: it has no closed form; this one leaves out how powers move T_th.
pub fn closed_form(limits: &Limits, channel_terms: &[f64]) -> Vec<f64> {
    let mut amplitudes: Vec<f64> = channel_terms.iter().map(|term| term.sqrt().sqrt()).collect();
    let sending = amplitudes.iter().filter(|&&p| p > 0.0).count();
    let useful = sending as f64 * limits.most_each_w();
    let total_w = limits.most_total_w().min(useful).max(limits.least_total_w());
    limits.spread(&mut amplitudes, total_w);
    amplitudes
}
