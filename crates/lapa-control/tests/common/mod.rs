//! Traces to test with.

mod feasible;

pub use feasible::is_feasible;

use lapa::config::BoundForm;
use lapa::optimize::Limits;
use lapa::seed::{Purpose, Stream, stream};
use lapa_control::power::{NoiseRule, Problem, Trace, TraceArrays};
use rand::RngExt;

/// All rules.
pub const RULES: [NoiseRule; 5] = [
    NoiseRule::Always,
    NoiseRule::Sum,
    NoiseRule::SumLatched,
    NoiseRule::PerDevice,
    NoiseRule::TopUp,
];

/// Both forms of the bound.
pub const FORMS: [BoundForm; 2] = [BoundForm::Corrected, BoundForm::Printed];

/// A generator for tests.
pub fn rng(seed: u64) -> Stream {
    stream(seed, Purpose::Power, u64::MAX, 0)
}

/// Kind of trace.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub devices: usize,
    pub rounds: usize,
    /// True if channels change from round to round.
    pub fading: bool,
    /// Probability that a device sends.
    pub sends: f64,
    /// κ is drawn from here to 1.
    pub least_trust: f64,
    /// σ_req of the first rounds over the σ of a middling channel at 1 W.
    pub required: f64,
    /// σ_c² of a fixed scale; 0 where each release has its own.
    pub within: f64,
}

impl Default for Kind {
    fn default() -> Self {
        let (devices, rounds) = (15, 200);
        let (fading, sends, least_trust, required, within) = (false, 0.9, 1.0, 4.0, 0.0);
        Self { devices, rounds, fading, sends, least_trust, required, within }
    }
}

/// Channels over a factor of 100, weights over a factor of 10, required noise that falls to a tenth
/// with some jitter.
pub fn trace(seed: u64, kind: Kind) -> Trace {
    let mut rng = rng(seed);
    let Kind { devices, rounds, .. } = kind;
    let mut log_uniform = |decades: f64| 10f64.powf(decades * (rng.random::<f64>() - 0.5));
    let gains: Vec<f64> = (0..devices).map(|_| 0.1 * log_uniform(2.0)).collect();
    let shares: Vec<f64> = (0..devices).map(|_| log_uniform(1.0)).collect();
    let quiet_scale_squared: Vec<f64> =
        (0..devices).map(|_| kind.within + log_uniform(0.5)).collect();
    let mut weights = Vec::new();
    let mut sigma_required = Vec::new();
    let mut nu_at_watt = Vec::new();
    for round in 0..rounds {
        let decay = 10f64.powf(-(round as f64) / rounds as f64);
        let sending: Vec<bool> = (0..devices).map(|_| rng.random_bool(kind.sends)).collect();
        let total: f64 = (0..devices).filter(|&k| sending[k]).map(|k| shares[k]).sum();
        for k in 0..devices {
            weights.push(if sending[k] { shares[k] / total } else { 0.0 });
            sigma_required.push(kind.required * 0.3 * decay * rng.random_range(0.8..1.2));
            let fade = if kind.fading { rng.random_range(0.2f64..2.0) } else { 1.0 };
            nu_at_watt.push(gains[k] / fade);
        }
    }
    let trust = (0..devices).map(|_| rng.random_range(kind.least_trust..=1.0)).collect();
    let arrays = TraceArrays {
        weights,
        sigma_required,
        nu_at_watt,
        quiet_scale_squared,
        trust,
        noise_within_scale: kind.within,
    };
    Trace::new(arrays).unwrap()
}

/// One watt for each device, four at most, a tenth of it all at least.
pub fn limits(devices: usize) -> Limits {
    let most = devices as f64;
    Limits::new(devices, 0.1 * most, most, 4.0).unwrap()
}

/// P1 on a trace.
pub fn problem(trace: &Trace, rule: NoiseRule, form: BoundForm) -> Problem {
    let limits = limits(trace.devices());
    Problem::new(trace.clone(), rule, form, 0.99, limits).unwrap()
}
