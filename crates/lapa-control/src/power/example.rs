//! P1 of any size, for measuring.

use lapa::config::BoundForm;
use lapa::optimize::Limits;

use super::{NoiseRule, Problem, Trace, TraceArrays};

/// P1 for `devices` over `rounds` in which the required noise falls to a tenth, and some devices
/// switch.
///
/// # Panics
/// If there are no devices or no rounds.
pub fn example(devices: usize, rounds: usize, rule: NoiseRule) -> Problem {
    let cells = 0..rounds * devices;
    let fall = |at: usize| 0.2 * 0.1f64.powf((at / devices) as f64 / rounds as f64);
    let gain = |at: usize| 10f64.powf((at % devices) as f64 / devices as f64);
    let arrays = TraceArrays {
        weights: vec![1.0 / devices as f64; rounds * devices],
        sigma_required: cells.clone().map(fall).collect(),
        nu_at_watt: cells.map(gain).collect(),
        quiet_scale_squared: vec![1e-3; devices],
        trust: vec![1.0; devices],
        noise_within_scale: 0.0,
    };
    let total = 0.075 * devices as f64;
    let trace = Trace::new(arrays).expect("a trace of positive numbers");
    let limits = Limits::new(devices, 0.01 * total, total, 0.3).expect("limits in order");
    Problem::new(trace, rule, BoundForm::Corrected, 0.995, limits).expect("as many devices in both")
}
