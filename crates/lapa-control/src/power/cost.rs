//! Privacy cost of a choice of powers.

use std::collections::HashMap;
use std::ops::ControlFlow;

use lapa::optimize::ObjectiveError;
use lapa::simulation::Cancelled;
use lapa_privacy::accountant::{Accountant, Gdp, Rdp};
use lapa_privacy::{AccountError, EventError, Mechanism, NoiseKind, Release};

use super::Problem;

/// Error of a privacy cost.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The wrong number of releases.
    #[error("{given} releases for {devices} devices")]
    Releases {
        /// Releases given.
        given: usize,
        /// Devices.
        devices: usize,
    },
    /// No theorem adds noise on a grid to the channel's.
    #[error(
        "device {device} adds discrete Gaussian noise and counts channel noise: no theorem covers \
         their sum"
    )]
    Discrete {
        /// The device.
        device: usize,
    },
    /// The listener broke off.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The amplitudes have no meaning.
    #[error(transparent)]
    Amplitudes(#[from] ObjectiveError),
    /// A release has no provable sensitivity.
    #[error("device {device}: {source}")]
    Event {
        /// The device.
        device: usize,
        /// The cause.
        source: EventError,
    },
    /// An accountant refuses.
    #[error("device {device}: {source}")]
    Account {
        /// The device.
        device: usize,
        /// The cause.
        source: AccountError,
    },
}

/// The provable ε of the worst device over all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyCost {
    /// With the trusted fraction κ of the channel's noise counted.
    pub counted: f64,
    /// With artificial noise alone (κ = 0); ∞ where a device sends without any.
    pub artificial_only: f64,
}

impl PrivacyCost {
    /// The larger of each figure.
    pub fn max(self, other: Self) -> Self {
        Self {
            counted: self.counted.max(other.counted),
            artificial_only: self.artificial_only.max(other.artificial_only),
        }
    }
}

/// Privacy cost of the noise of these amplitudes at `delta`, for releases that are otherwise as in
/// `releases`, one for each device. The noise in `releases` is not read.
///
/// Devices hold disjoint records, so the worst of them is the system's. Gaussians without sampling
/// are composed exactly; others by their Rényi divergences. Both figures are for noise that is
/// fixed in advance, as it is in a trace.
pub fn privacy_cost(
    problem: &Problem,
    amplitudes: &[f64],
    releases: &[Release],
    delta: f64,
) -> Result<PrivacyCost, CostError> {
    privacy_cost_until(problem, amplitudes, releases, delta, &mut || ControlFlow::Continue(()))
}

/// As [`privacy_cost`]; `on_device` is asked before each device, and may break off.
pub fn privacy_cost_until(
    problem: &Problem,
    amplitudes: &[f64],
    releases: &[Release],
    delta: f64,
    on_device: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<PrivacyCost, CostError> {
    let trace = problem.trace();
    let (given, devices) = (releases.len(), trace.devices());
    if given != devices {
        return Err(CostError::Releases { given, devices });
    }
    let noise = problem.noise(amplitudes)?;
    let mut cost = PrivacyCost { counted: 0.0, artificial_only: 0.0 };
    for (device, release) in releases.iter().enumerate() {
        if on_device().is_break() {
            return Err(Cancelled.into());
        }
        let trust = trace.arrays().trust[device];
        let cells = (device..trace.rounds() * devices).step_by(devices);
        let sent: Vec<(f64, f64)> = cells
            .filter(|&at| trace.arrays().weights[at] > 0.0)
            .map(|at| (noise.artificial[at], noise.channel[at]))
            .collect();
        let discrete = release.noise == NoiseKind::DiscreteGaussian;
        if discrete && trust > 0.0 && sent.iter().any(|&(artificial, _)| artificial > 0.0) {
            return Err(CostError::Discrete { device });
        }
        let epsilon = |kappa: f64| {
            let mechanism = |&(artificial, sigma_channel): &(f64, f64)| {
                let sigma_artificial = artificial / release.noise.parts().sqrt();
                let noise = Release { sigma_artificial, sigma_channel, kappa, ..release.clone() };
                noise.mechanism()
            };
            let mechanisms: Result<Vec<Mechanism>, _> = sent.iter().map(mechanism).collect();
            let mechanisms = mechanisms.map_err(|source| CostError::Event { device, source })?;
            compose(&mechanisms, delta).map_err(|source| CostError::Account { device, source })
        };
        cost.counted = cost.counted.max(epsilon(trust)?);
        cost.artificial_only = cost.artificial_only.max(epsilon(0.0)?);
    }
    Ok(cost)
}

/// The ε of all these releases together.
fn compose(mechanisms: &[Mechanism], delta: f64) -> Result<f64, AccountError> {
    let plain = |m: &Mechanism| matches!(m, Mechanism::Gaussian { .. } | Mechanism::NonPrivate);
    let mut accountant: Box<dyn Accountant> =
        if mechanisms.iter().all(plain) { Box::new(Gdp::new()) } else { Box::new(Rdp::default()) };
    // Equal releases share the work: a Rényi divergence takes some time at every order.
    let mut counts: HashMap<u64, (usize, u32)> = HashMap::new();
    for (index, mechanism) in mechanisms.iter().enumerate() {
        counts.entry(mechanism.noise_multiplier().to_bits()).or_insert((index, 0)).1 += 1;
    }
    let mut counts: Vec<_> = counts.into_values().collect();
    counts.sort_unstable();
    for (index, count) in counts {
        accountant.compose(&mechanisms[index], count)?;
    }
    accountant.epsilon(delta)
}
