//! P1 by its definitions, with a loop over all rounds for each question.

use lapa::config::BoundForm;
use lapa_control::power::{NoiseRule, Trace};

/// One round of one device.
#[derive(Clone, Copy)]
struct Cell {
    weight: f64,
    required: f64,
    nu: f64,
    quiet: f64,
    trust: f64,
    within: f64,
}

impl Cell {
    /// c² with artificial noise of this variance.
    fn scale(&self, added: f64) -> f64 {
        self.quiet + (added - self.within).max(0.0)
    }

    /// The least variance of artificial noise that makes up what is required, by bisection.
    fn missing(&self) -> f64 {
        let enough =
            |added: f64| added + self.trust * self.nu * self.scale(added) >= self.required.powi(2);
        let (mut low, mut high) = (0.0, self.required.powi(2));
        if enough(low) {
            return 0.0;
        }
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if enough(middle) { high = middle } else { low = middle }
        }
        high
    }
}

fn cell(trace: &Trace, powers: &[f64], round: usize, device: usize) -> Cell {
    let (arrays, at) = (trace.arrays(), round * trace.devices() + device);
    Cell {
        weight: arrays.weights[at],
        required: arrays.sigma_required[at],
        nu: arrays.nu_at_watt[at] / powers[device],
        quiet: arrays.quiet_scale_squared[device],
        trust: arrays.trust[device],
        within: arrays.noise_within_scale,
    }
}

/// Evaluation by the definitions.
pub struct Twin {
    pub objective: f64,
    pub switching_round: Vec<u32>,
    pub under_noising: f64,
    pub artificial: Vec<f64>,
    pub channel: Vec<f64>,
}

/// True if the device needs artificial noise in the round.
fn needs(trace: &Trace, powers: &[f64], rule: NoiseRule, round: usize, device: usize) -> bool {
    let senders = |round: usize| {
        let cells = (0..trace.devices()).map(move |k| cell(trace, powers, round, k));
        cells.filter(|c| c.weight > 0.0)
    };
    let all_required = |round: usize| -> f64 { senders(round).map(|c| c.required).sum() };
    let sum_needs = |round: usize| {
        let channel: f64 = senders(round).map(|c| (c.trust * c.quiet * c.nu).sqrt()).sum();
        all_required(round) > channel
    };
    // In some round up to this one, no more is required than in the one before, and the channel suffices.
    let latched = || {
        let asked: Vec<usize> = (0..=round).filter(|&round| all_required(round) > 0.0).collect();
        let falls = |pair: &[usize]| all_required(pair[1]) <= all_required(pair[0]);
        asked.windows(2).any(|pair| falls(pair) && !sum_needs(pair[1]))
    };
    match rule {
        NoiseRule::Always => true,
        NoiseRule::Sum => sum_needs(round),
        NoiseRule::SumLatched => !latched(),
        NoiseRule::PerDevice | NoiseRule::TopUp => {
            let c = cell(trace, powers, round, device);
            c.weight > 0.0 && c.required.powi(2) > c.trust * c.quiet * c.nu
        }
    }
}

pub fn twin(trace: &Trace, rule: NoiseRule, form: BoundForm, a: f64, amplitudes: &[f64]) -> Twin {
    let powers: Vec<f64> = amplitudes.iter().map(|p| p * p).collect();
    let (rounds, devices) = (trace.rounds(), trace.devices());
    let cell = |round, device| cell(trace, &powers, round, device);
    let needs = |round, device| needs(trace, &powers, rule, round, device);
    let mut switching_round = vec![0; devices];
    for (device, switch) in switching_round.iter_mut().enumerate() {
        for round in 1..=rounds {
            if needs(round - 1, device) {
                *switch = round as u32;
            }
        }
    }
    let (mut objective, mut worst) = (0.0, 1f64);
    let (mut artificial, mut channel) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        for (device, &switch) in switching_round.iter().enumerate() {
            let c = cell(round - 1, device);
            if c.weight == 0.0 {
                artificial.push(0.0);
                channel.push(0.0);
                continue;
            }
            let added = match rule {
                NoiseRule::TopUp => c.missing(),
                _ if round as u32 <= switch => c.required.powi(2),
                _ => 0.0,
            };
            // J counts all rounds up to the last that needs noise; a run judges each by itself.
            let in_run = match rule {
                NoiseRule::TopUp => added,
                _ if needs(round - 1, device) => c.required.powi(2),
                _ => 0.0,
            };
            let arrives = c.nu * c.scale(added);
            let arrives_in_run = c.nu * c.scale(in_run);
            objective += match form {
                BoundForm::Corrected => {
                    a.powi((rounds - round) as i32) * c.weight.powi(2) * (added + arrives)
                }
                BoundForm::Printed => {
                    a.powi(round as i32 - 1) * c.weight.powi(2) * (c.quiet * c.nu + added)
                }
            };
            worst = worst.max(c.required / (in_run + c.trust * arrives_in_run).sqrt());
            artificial.push(in_run.sqrt());
            channel.push(arrives_in_run.sqrt());
        }
    }
    Twin { objective, switching_round, under_noising: worst, artificial, channel }
}
