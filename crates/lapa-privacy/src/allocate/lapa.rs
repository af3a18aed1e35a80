//! LAPA: the paper's Section III-B.

pub mod angle;
pub mod pid;
pub mod schedule;

use std::collections::BTreeMap;
use std::f64::consts::PI;

use rand::{Rng, RngExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::angle::{Smoothed, Split, deviation, leave_one_out_deviation, smooth};
use self::pid::{Changes, Noisy, PidError, change, pid_error};
use self::schedule::Schedule;
use super::{
    AllocateError, Allocator, AllocatorState, Ask, Basis, BuildAllocator, Costs, Horizon,
    Transcript, rounds_left,
};
use crate::range::{check, count, not_negative, positive};

/// Parameters of allocator lapa.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LapaConfig {
    /// Weight K_p of the latest change of the global gradient. The default follows error.
    #[schemars(range(min = 0, max = 1000))]
    pub proportional: f64,
    /// Weight K_s of the mean change over the window. The default follows error.
    #[schemars(range(min = 0, max = 1000))]
    pub integral: f64,
    /// Global gradients in the sample, m: the current one, and all but one of the m before it.
    #[schemars(range(min = 2, max = 1000))]
    pub window: u32,
    /// Measure of a change of the global gradient. The default follows basis.
    pub error: PidError,
    /// Direction of the budget over the rounds.
    pub schedule: Schedule,
    /// Direction of the budget over the devices.
    pub split: Split,
    /// Decay factor β of the map from angles to costs.
    #[schemars(range(max = 1000), extend("exclusiveMinimum" = 0))]
    pub decay: f64,
}

impl Default for LapaConfig {
    /// That of basis certified.
    fn default() -> Self {
        let error = PidError::default_for(Basis::Certified);
        Self {
            proportional: error.default_gain(),
            integral: error.default_gain(),
            window: 5,
            error,
            schedule: Schedule::default(),
            split: Split::default(),
            decay: 5.0,
        }
    }
}

impl LapaConfig {
    fn checked(self) -> Result<Self, AllocateError> {
        not_negative("proportional", self.proportional)?;
        not_negative("integral", self.integral)?;
        check("window", self.window.into(), self.window >= 2, "at least 2")?;
        positive("decay", self.decay)?;
        Ok(self)
    }
}

impl BuildAllocator for LapaConfig {
    fn build(&self, over: Horizon) -> Result<Box<dyn Allocator>, AllocateError> {
        Ok(Box::new(match over.total {
            Some(total) => Lapa::paper(total, over.rounds, over.devices, *self)?,
            None => Lapa::certified(over.rounds, over.devices, *self)?,
        }))
    }
}

/// Budgets by the change of the global gradient over rounds, split by the angle between a
/// device's gradient and the global one.
#[derive(Clone, Debug)]
pub struct Lapa {
    rounds: u32,
    devices: u32,
    config: LapaConfig,
    /// ε^T on the paper's basis.
    total: Option<f64>,
    memory: Memory,
    /// The last two global gradients, the older first.
    gradients: Vec<Vec<f32>>,
}

/// Memory of LAPA between rounds, apart from two gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Memory {
    /// ε_c; 0 on the certified basis.
    allocated: f64,
    /// e of the last round; `None` before there are two gradients.
    pid_error: Option<f64>,
    /// ϑ̃_k of the devices that have one.
    angles: BTreeMap<u32, Smoothed>,
    /// Changes of the last m + 1 global gradients, the oldest first.
    window: Vec<Changes>,
    /// s² of each gradient that is kept.
    variances: Vec<f64>,
}

impl Lapa {
    /// The paper's rule, as printed: `ε_k^[1] = ε^T/(T·K)`, then eqs. (10) to (16).
    ///
    /// A device that missed rounds keeps its smoothed angle, and one that never had any counts as
    /// the mean.
    ///
    /// Differs from the paper: it says nothing of devices that miss rounds. Round t+1 spends `ε^[t]`,
    /// as eq. (16) has it, and round 1 the first T-th.
    pub fn paper(
        total_epsilon: f64,
        rounds: u32,
        devices: u32,
        config: LapaConfig,
    ) -> Result<Self, AllocateError> {
        let total = positive("total_epsilon", total_epsilon)?;
        Ok(Self { total: Some(total), ..Self::certified(rounds, devices, config)? })
    }

    /// The same rule for what is left of each device's own capacity:
    /// min(left_k, exp(−e)·(f_k/mean f)·left_k/(T−t+1)), mean over the devices asked for; by the
    /// text's schedule, [`Schedule::part`] in place of exp(−e)/(T−t+1).
    ///
    /// Differs from the paper: no budget is shared by devices, whose data are disjoint; angles leave
    /// the device's own part out and are debiased; and round T spends all that is left, which
    /// could not be spent later.
    pub fn certified(rounds: u32, devices: u32, config: LapaConfig) -> Result<Self, AllocateError> {
        let memory = Memory {
            allocated: 0.0,
            pid_error: None,
            angles: BTreeMap::new(),
            window: Vec::new(),
            variances: Vec::new(),
        };
        Ok(Self {
            rounds: count("rounds", rounds)?,
            devices: count("devices", devices)?,
            config: config.checked()?,
            total: None,
            memory,
            gradients: Vec::new(),
        })
    }

    /// Learns from a finished round as [`Allocator::observe`] does, with the gradient at
    /// `left_out` of the m before the current one, from the oldest, left out of the sample. It is
    /// ignored while there are fewer.
    pub fn observe_leaving_out(&mut self, transcript: &Transcript<'_>, left_out: usize) {
        if transcript.devices.is_empty() {
            return;
        }
        debug_assert!(transcript.global.iter().all(|value| value.is_finite()));
        let variance =
            transcript.devices.iter().map(|device| (device.weight * device.sigma).powi(2)).sum();
        let global = Noisy { gradient: transcript.global, variance };
        self.observe_angles(transcript, global);
        self.observe_change(global, left_out);
    }

    fn observe_angles(&mut self, transcript: &Transcript<'_>, global: Noisy<'_>) {
        for device in transcript.devices {
            debug_assert_eq!(device.gradient.len(), global.gradient.len());
            debug_assert!(device.sigma.is_finite());
            debug_assert!(device.gradient.iter().all(|value| value.is_finite()));
            debug_assert!(device.device < self.devices);
            let angle = if self.total.is_some() {
                deviation(global.gradient, device.gradient)
            } else {
                let local = Noisy { gradient: device.gradient, variance: device.sigma.powi(2) };
                leave_one_out_deviation(global, local, device.weight)
            };
            if let Some(angle) = angle {
                let before = self.memory.angles.get(&device.device).copied();
                self.memory.angles.insert(device.device, smooth(before, angle));
            }
        }
    }

    fn observe_change(&mut self, global: Noisy<'_>, left_out: usize) {
        let memory = &mut self.memory;
        let mut changes =
            self.gradients.iter().zip(&memory.variances).rev().map(|(gradient, &variance)| {
                change(self.config.error, global, Noisy { gradient, variance })
            });
        let (one, two) = (changes.next().unwrap_or(0.0), changes.next().unwrap_or(0.0));
        memory.window.push(Changes { one, two });
        let most = self.config.window as usize + 1;
        if memory.window.len() > most {
            memory.window.remove(0);
        }
        let left_out = (memory.window.len() == most).then_some(left_out);
        memory.pid_error = pid_error(&self.config, &memory.window, left_out);

        // The oldest gradient's memory is used again.
        let mut kept =
            if self.gradients.len() == 2 { self.gradients.remove(0) } else { Vec::new() };
        if memory.variances.len() == 2 {
            memory.variances.remove(0);
        }
        kept.clear();
        kept.extend_from_slice(global.gradient);
        self.gradients.push(kept);
        memory.variances.push(global.variance);
    }

    fn angle(&self, ask: &Ask) -> Option<f64> {
        Some(self.memory.angles.get(&ask.device)?.angle)
    }

    /// The share of each angle in relation to the mean of f over `all`; 1 without an angle.
    fn relative_contributions(
        &self,
        angles: &[Option<f64>],
        all: impl Iterator<Item = f64>,
    ) -> Vec<f64> {
        let f = |angle| self.config.split.contribution(angle, self.config.decay);
        let (sum, known) = all.fold((0.0, 0u32), |(sum, known), angle| (sum + f(angle), known + 1));
        let mean = sum / f64::from(known);
        let relative = |angle: &Option<f64>| match *angle {
            // A steep f may round to 0 for every device.
            Some(angle) if mean > 0.0 => f(angle) / mean,
            _ => 1.0,
        };
        angles.iter().map(relative).collect()
    }

    /// Eqs. (12) and (16). The sum in (16) is over all K devices, also those that take no part.
    fn allocate_paper(&mut self, total: f64, round: u32, asks: &[Ask]) -> Costs {
        let first = total / f64::from(self.rounds);
        let devices = f64::from(self.devices);
        if round <= 1 {
            return Costs::plain(vec![first / devices; asks.len()], Some(first));
        }
        let (error, allocated) = (self.memory.pid_error, self.memory.allocated);
        let schedule = self.config.schedule;
        let budget = schedule
            .round_budget(total, allocated, error.unwrap_or(0.0), self.rounds, round - 1)
            // By more than rounding only if a round is asked for twice, or after the last.
            .min(total - first - allocated)
            .max(0.0);
        self.memory.allocated += budget;
        let angles: Vec<_> = asks.iter().map(|ask| self.angle(ask)).collect();
        let all = self.memory.angles.values().map(|smoothed| smoothed.angle);
        let relative = self.relative_contributions(&angles, all);
        let by_device = relative.iter().map(|relative| relative * budget / devices).collect();
        Costs { by_device, round_budget: Some(budget), pid_error: error, angles }
    }

    fn allocate_certified(&self, round: u32, asks: &[Ask]) -> Costs {
        let left = || asks.iter().map(|ask| ask.left.max(0.0));
        if round >= self.rounds {
            return Costs::plain(left().collect(), None);
        }
        let error = self.memory.pid_error;
        let to_go = rounds_left(self.rounds, round);
        let part = self.config.schedule.part(error.unwrap_or(0.0), to_go);
        let angles: Vec<_> = asks.iter().map(|ask| self.angle(ask)).collect();
        let relative = self.relative_contributions(&angles, angles.iter().flatten().copied());
        let by_device = left()
            .zip(relative)
            .map(|(left, relative)| (part * relative * left).min(left))
            .collect();
        Costs { by_device, round_budget: None, pid_error: error, angles }
    }
}

impl Allocator for Lapa {
    fn name(&self) -> &'static str {
        "lapa"
    }

    fn allocate(&mut self, round: u32, asks: &[Ask]) -> Costs {
        match self.total {
            Some(total) => self.allocate_paper(total, round, asks),
            None => self.allocate_certified(round, asks),
        }
    }

    fn observe(&mut self, transcript: &Transcript<'_>, rng: &mut dyn Rng) {
        let left_out = rng.random_range(0..self.config.window);
        self.observe_leaving_out(transcript, left_out as usize);
    }

    fn state(&self) -> AllocatorState {
        AllocatorState::new(self.name(), &self.memory, self.gradients.clone())
    }

    fn restore(&mut self, state: AllocatorState) -> Result<(), AllocateError> {
        let memory: Memory = state.scalars(self.name())?;
        let fits = (0.0..=self.total.unwrap_or(0.0)).contains(&memory.allocated);
        check("allocated budget", memory.allocated, fits, "a number from 0 to the total")?;
        if let Some(error) = memory.pid_error {
            not_negative("PID-like error", error)?;
        }
        for (&device, smoothed) in &memory.angles {
            check("device of an angle", device.into(), device < self.devices, "one that there is")?;
            let inside = (0.0..=PI).contains(&smoothed.angle);
            check("smoothed angle", smoothed.angle, inside, "a number from 0 to π")?;
            count("rounds of an angle", smoothed.rounds)?;
        }
        let seen = memory.window.len();
        check("window", seen as f64, seen <= self.config.window as usize + 1, "at most m + 1")?;
        for change in memory.window.iter().flat_map(|changes| [changes.one, changes.two]) {
            not_negative("change of the gradient", change)?;
        }
        let kept = state.vectors.len();
        let fits = kept == seen.min(2) && kept == memory.variances.len();
        check("number of gradients", kept as f64, fits, "two, or one per earlier round")?;
        for &variance in &memory.variances {
            not_negative("variance of the noise", variance)?;
        }
        for gradient in &state.vectors {
            let (len, fits) = (gradient.len() as f64, gradient.len() == state.vectors[0].len());
            check("length of a gradient", len, fits, "equal lengths")?;
            for &value in gradient {
                check("gradient", value.into(), value.is_finite(), "a finite number")?;
            }
        }
        self.memory = memory;
        self.gradients = state.vectors;
        Ok(())
    }
}
