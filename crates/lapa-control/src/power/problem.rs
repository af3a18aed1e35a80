//! The paper's problem P1, eq. (28), on the trace of a pilot run.
//!
//! With P = |p_k|² watts, device k's update arrives with channel noise of variance c²ν per
//! coordinate, ν = ν₁/P, and c² = c₀² + max(0, σ_art² − σ_c²) by the public scale of its amplitudes
//! (σ_c = 0 unless `transmit.scale` = "fixed"). The noise required of it in round t exceeds what may
//! be counted of the channel's alone, κc₀²ν, if and only if `need` = σ_req²/(κc₀²ν₁) is above 1/P.
//! That number does not depend on the powers, and given the switching round a device's part of the
//! objective is a + b/P: both are prepared here once.

use lapa::budget::{NoiseRule, Trusted, top_up};
use lapa::config::BoundForm;
use lapa::optimize::{Evaluation, Limits, Objective, ObjectiveError};

use super::Trace;

/// Error of a problem.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProblemError {
    /// The trace and the limits are for different devices.
    #[error("a trace of {trace} devices with power limits for {limits}")]
    Devices {
        /// Devices of the trace.
        trace: usize,
        /// Devices of the limits.
        limits: usize,
    },
    /// A contraction without meaning.
    #[error(
        "contraction A = {value}: expected a number above 0 whose power {rounds} is below 1e100"
    )]
    Contraction {
        /// A
        value: f64,
        /// Rounds T.
        rounds: usize,
    },
}

/// σ of each round and device; arrays are flat, a round after the other. Both are 0 where a device
/// does not send.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseArrays {
    /// Standard deviation of the artificial noise.
    pub artificial: Vec<f64>,
    /// Standard deviation of the channel's noise, c√ν, all of it; ∞ for a device without power.
    pub channel: Vec<f64>,
}

/// Judges amplitudes by the trace of a pilot run.
///
/// J = Σ_t Σ_k d_t·G_k²·v, the noise terms of Theorem 1 without their factor Lλ²q/2.
///
/// - [`BoundForm::Corrected`]: d_t = A^{T−t}, and v = σ_art² + ν(c₀² + max(0, σ_art² − σ_c²)) is the
///   variance that arrives.
/// - [`BoundForm::Printed`], eq. (28): d_t = A^{t−1}, and v = σ_art² + νc₀². The paper's first
///   factor (1 − A^T)/(1 − A) is Σ_t A^{t−1}.
///
/// Differs from the paper: weights and channels may change from round to round; ν has the factor ½
/// of a real coordinate; gradients are scaled by a public c before they are sent; rounds count from
/// 1, and T_th is the last of them with artificial noise. The corrected form weighs round t as the
/// recursion of the proof does. It also counts that artificial noise raises c.
#[derive(Clone, Debug)]
pub struct Problem {
    trace: Trace,
    rule: NoiseRule,
    form: BoundForm,
    limits: Limits,
    /// A device after the other, so that a device's rounds are next to each other.
    cells: Vec<Cell>,
    devices: Vec<Device>,
    /// Σ_k σ_req of each round, over those that send.
    required: Vec<f64>,
    /// √(κc₀²ν₁), a round after the other; 0 where a device does not send.
    channel_roots: Vec<f64>,
}

/// A round of a device. Where it does not send, weight and required noise are 0.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// d_t·G_k²
    weight: f64,
    /// σ_req²
    required_squared: f64,
    /// ν₁
    nu_at_watt: f64,
}

/// Sums of a device that do not depend on its power.
#[derive(Clone, Debug)]
struct Device {
    /// True if it ever sends.
    sends: bool,
    /// Σ_t d_t·G_k²·c₀²ν₁: channel noise, times P, without artificial noise.
    channel: f64,
    /// For t = 0 … T, the largest need after round t. It never rises.
    later_need: Vec<f64>,
    /// For t = 0 … T, Σ d·G_k²·σ_req² up to round t.
    artificial: Vec<f64>,
    /// The same with ν₁ as a factor, where artificial noise raises c; else zeros.
    raised: Vec<f64>,
}

impl Problem {
    /// P1 with contraction factor A.
    pub fn new(
        trace: Trace,
        rule: NoiseRule,
        form: BoundForm,
        contraction: f64,
        limits: Limits,
    ) -> Result<Self, ProblemError> {
        let (rounds, devices) = (trace.rounds(), trace.devices());
        if devices != limits.devices() {
            return Err(ProblemError::Devices { trace: devices, limits: limits.devices() });
        }
        // Finite sums of products need some room above.
        if !(contraction > 0.0 && contraction.powf(rounds as f64) < 1e100) {
            return Err(ProblemError::Contraction { value: contraction, rounds });
        }
        let arrays = trace.arrays();
        let sending = |at: usize| arrays.weights[at] > 0.0;
        let mut cells = Vec::with_capacity(rounds * devices);
        for device in 0..devices {
            cells.extend((0..rounds).map(|round| {
                let at = round * devices + device;
                let age = match form {
                    BoundForm::Corrected => rounds - 1 - round,
                    BoundForm::Printed => round,
                };
                let required = if sending(at) { arrays.sigma_required[at] } else { 0.0 };
                Cell {
                    weight: contraction.powf(age as f64) * arrays.weights[at].powi(2),
                    required_squared: required * required,
                    nu_at_watt: arrays.nu_at_watt[at],
                }
            }));
        }
        let prepared = cells.chunks_exact(rounds).enumerate().map(|(device, cells)| {
            let sends = (0..rounds).any(|round| sending(round * devices + device));
            let quiet = arrays.quiet_scale_squared[device];
            Device::new(
                cells,
                sends,
                (quiet, arrays.noise_within_scale),
                trace.trusted(device),
                form,
            )
        });
        let prepared = prepared.collect();
        let required = (0..rounds).map(|round| {
            let here = round * devices..(round + 1) * devices;
            here.filter(|&at| sending(at)).map(|at| arrays.sigma_required[at]).sum()
        });
        let channel_roots = (0..rounds * devices).map(|at| {
            if sending(at) {
                (trace.trusted(at % devices) * arrays.nu_at_watt[at]).sqrt()
            } else {
                0.0
            }
        });
        let (required, channel_roots) = (required.collect(), channel_roots.collect());
        Ok(Self { trace, rule, form, limits, cells, devices: prepared, required, channel_roots })
    }

    /// The trace that powers are judged by.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Noise of each round and device with these amplitudes, each round judged by itself, as in a
    /// run.
    ///
    /// Differs from the paper: it adds artificial noise in every round up to T_th, as the objective
    /// does. A run does not know which crossing is the last, and a round before it that needs none
    /// gets none.
    pub fn noise(&self, amplitudes: &[f64]) -> Result<NoiseArrays, ObjectiveError> {
        self.check(amplitudes)?;
        let (arrays, devices) = (self.trace.arrays(), self.devices.len());
        let sum_needs = self.sum_needs(amplitudes);
        let cells = arrays.weights.len();
        let mut noise = NoiseArrays { artificial: vec![0.0; cells], channel: vec![0.0; cells] };
        for at in (0..cells).filter(|&at| arrays.weights[at] > 0.0) {
            let (round, device) = (at / devices, at % devices);
            let required = arrays.sigma_required[at];
            let inverse = inverse_power(amplitudes[device]);
            // Finite, so that 0 times it is 0.
            let nu = (arrays.nu_at_watt[at] * inverse).min(f64::MAX);
            let trusted = self.trace.trusted(device);
            let within = arrays.noise_within_scale;
            let in_full = |needed: bool| if needed { required } else { 0.0 };
            let artificial = match self.rule {
                NoiseRule::Always => required,
                NoiseRule::Sum | NoiseRule::SumLatched => in_full(sum_needs[round]),
                NoiseRule::PerDevice => {
                    in_full(need(required * required, trusted * arrays.nu_at_watt[at]) > inverse)
                }
                NoiseRule::TopUp => {
                    let fraction = arrays.trust[device] * nu;
                    let trusted = Trusted { fraction, variance: trusted * nu, within };
                    top_up(required * required, trusted).sqrt()
                }
            };
            let raised = (artificial * artificial - within).max(0.0);
            let scale_squared = arrays.quiet_scale_squared[device] + raised;
            noise.artificial[at] = artificial;
            noise.channel[at] = match inverse {
                f64::MAX => f64::INFINITY,
                _ => (nu * scale_squared).sqrt(),
            };
        }
        Ok(noise)
    }

    /// Of each device, b in its part a + b/P of the objective: without artificial noise, or in
    /// every round with it under [`NoiseRule::Always`].
    pub fn channel_terms(&self) -> Vec<f64> {
        let term = |device: &Device| match self.rule {
            NoiseRule::Always => device.channel + device.raised[self.trace.rounds()],
            _ => device.channel,
        };
        self.devices.iter().map(term).collect()
    }

    fn check(&self, amplitudes: &[f64]) -> Result<(), ObjectiveError> {
        let (given, devices) = (amplitudes.len(), self.devices.len());
        if given != devices {
            return Err(ObjectiveError::Length { given, devices });
        }
        match amplitudes.iter().position(|p| !(*p >= 0.0 && p.is_finite())) {
            Some(device) => Err(ObjectiveError::Amplitude { device, value: amplitudes[device] }),
            None => Ok(()),
        }
    }

    /// T_th of each device, by what [`Self::sum_needs`] says under the sum rule.
    fn switching_rounds(&self, amplitudes: &[f64], sum_needs: &[bool]) -> Vec<u32> {
        let devices = self.devices.len();
        match self.rule {
            NoiseRule::Always => vec![self.trace.rounds() as u32; devices],
            NoiseRule::Sum | NoiseRule::SumLatched => {
                let last = sum_needs.iter().rposition(|&needs| needs);
                vec![last.map_or(0, |round| round as u32 + 1); devices]
            }
            NoiseRule::PerDevice | NoiseRule::TopUp => {
                let pairs = self.devices.iter().zip(amplitudes);
                pairs.map(|(device, &p)| device.switching_round(inverse_power(p))).collect()
            }
        }
    }

    /// Rounds, under the sum rule, in which the required σ of all devices add up to more than the σ that
    /// may be counted of their channels. A latched switch needs artificial noise until, while what is
    /// required does not rise, the channel suffices, and never after. Empty under other rules.
    fn sum_needs(&self, amplitudes: &[f64]) -> Vec<bool> {
        if !self.goes_by_sum() {
            return Vec::new();
        }
        let inverse: Vec<f64> = amplitudes.iter().map(|p| p.recip().min(f64::MAX)).collect();
        let needs = |(roots, required): (&[f64], &f64)| {
            *required > roots.iter().zip(&inverse).map(|(root, inverse)| root * inverse).sum()
        };
        let rounds = self.channel_roots.chunks_exact(inverse.len()).zip(&self.required);
        let mut needs: Vec<bool> = rounds.map(needs).collect();
        if self.rule == NoiseRule::SumLatched {
            let switch = self.latch(&needs);
            needs[..switch].fill(true);
            needs[switch..].fill(false);
        }
        needs
    }

    /// Index of the first round in which the channel suffices, and no more is required than in the last
    /// round before it in which a device sent; round 1 has none.
    fn latch(&self, needs: &[bool]) -> usize {
        let mut before = 0.0;
        let switches = |round: &usize| {
            let required = self.required[*round];
            if required == 0.0 {
                return false;
            }
            let rises = required > std::mem::replace(&mut before, required);
            !needs[*round] && !rises
        };
        (0..needs.len()).find(switches).unwrap_or(needs.len())
    }

    fn goes_by_sum(&self) -> bool {
        matches!(self.rule, NoiseRule::Sum | NoiseRule::SumLatched)
    }

    /// A device's largest need in the rounds that the sum leaves without artificial noise.
    fn need_left(&self, device: usize, sum_needs: &[bool]) -> f64 {
        let (rounds, trusted) = (self.trace.rounds(), self.trace.trusted(device));
        let cells = self.cells[device * rounds..][..rounds].iter().zip(sum_needs);
        let left = cells.filter(|(_, needs)| !**needs);
        left.map(|(cell, _)| need(cell.required_squared, trusted * cell.nu_at_watt))
            .fold(0.0, f64::max)
    }

    /// A device's part of the objective where artificial noise fills what is missing.
    fn topped_up(&self, device: usize, inverse: f64) -> f64 {
        let rounds = self.trace.rounds();
        let raised = if self.form == BoundForm::Corrected { inverse } else { 0.0 };
        let trust = self.trace.arrays().trust[device] * inverse;
        let trusted = self.trace.trusted(device) * inverse;
        let within = self.trace.arrays().noise_within_scale;
        let mut sum = self.devices[device].channel * inverse;
        for cell in &self.cells[device * rounds..][..rounds] {
            let nu = cell.nu_at_watt;
            let trusted = Trusted { fraction: trust * nu, variance: trusted * nu, within };
            let artificial = top_up(cell.required_squared, trusted);
            sum += cell.weight * artificial * (1.0 + raised * nu);
            sum -= cell.weight * raised * nu * artificial.min(within);
        }
        sum
    }
}

impl Objective for Problem {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn rounds(&self) -> u32 {
        self.trace.rounds() as u32
    }

    fn evaluate(&mut self, amplitudes: &[f64]) -> Result<Evaluation, ObjectiveError> {
        self.check(amplitudes)?;
        let sum_needs = self.sum_needs(amplitudes);
        let switching_round = self.switching_rounds(amplitudes, &sum_needs);
        let (mut objective, mut worst) = (0.0, 1f64);
        for (k, device) in self.devices.iter().enumerate().filter(|(_, device)| device.sends) {
            let inverse = inverse_power(amplitudes[k]);
            let switch = switching_round[k] as usize;
            objective += match self.rule {
                _ if inverse == f64::MAX => f64::INFINITY,
                NoiseRule::TopUp => self.topped_up(k, inverse),
                _ => device.artificial[switch] + (device.channel + device.raised[switch]) * inverse,
            };
            if self.goes_by_sum() {
                // With artificial noise a device has what it needs; without it has κc₀²ν, and
                // σ_req²/κc₀²ν = need·P. The other rules leave no need above 1/P.
                worst = worst.max((self.need_left(k, &sum_needs) / inverse).sqrt());
            }
        }
        Ok(Evaluation { objective, switching_round, worst_under_noising: worst })
    }
}

impl Device {
    /// The sums over its cells. The scale is c₀² = `quiet`, and raised by noise beyond `within`.
    fn new(
        cells: &[Cell],
        sends: bool,
        (quiet, within): (f64, f64),
        trusted: f64,
        form: BoundForm,
    ) -> Self {
        let rounds = cells.len();
        let mut artificial = vec![0.0; rounds + 1];
        let mut raised = vec![0.0; rounds + 1];
        let mut channel = 0.0;
        for (round, cell) in cells.iter().enumerate() {
            let noise = cell.weight * cell.required_squared;
            channel += cell.weight * quiet * cell.nu_at_watt;
            artificial[round + 1] = artificial[round] + noise;
            if form == BoundForm::Corrected {
                let beyond = (cell.required_squared - within).max(0.0);
                raised[round + 1] = raised[round] + cell.weight * beyond * cell.nu_at_watt;
            }
        }
        let mut later_need = vec![0.0; rounds + 1];
        for (round, cell) in cells.iter().enumerate().rev() {
            let need = need(cell.required_squared, trusted * cell.nu_at_watt);
            later_need[round] = need.max(later_need[round + 1]);
        }
        Self { sends, channel, later_need, artificial, raised }
    }

    /// The last round with a need above `inverse` = 1/P.
    fn switching_round(&self, inverse: f64) -> u32 {
        self.later_need.partition_point(|&need| need > inverse) as u32
    }
}

/// σ_req²/(κc₀²ν₁); ∞ where something is required and nothing may be counted.
fn need(required_squared: f64, trusted_at_watt: f64) -> f64 {
    if required_squared == 0.0 { 0.0 } else { required_squared / trusted_at_watt }
}

/// 1/p², at most the largest finite number: 0 times it is 0.
fn inverse_power(amplitude: f64) -> f64 {
    (amplitude * amplitude).recip().min(f64::MAX)
}
