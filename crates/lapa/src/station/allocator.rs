//! The allocator of a run.

use lapa_privacy::Release;
use lapa_privacy::allocate::{Allocator, Arb, Basis, Lapa, OptimalSplit, Pid, Uniform};

use crate::budget::{PrivacyError, release};
use crate::config::{AllocatorName, Experiment};

/// The allocator of an experiment; on basis paper with the ε^T that follows from
/// `privacy.initial_sigma` if that is given: ε_k^[1] = ε^T/(T·K) is the same for all devices,
/// since σ_k and Δs_k both go by 1/|D_k|.
pub(super) fn allocator(
    experiment: &Experiment,
    public_samples: &[u32],
) -> Result<Option<Box<dyn Allocator>>, PrivacyError> {
    let (privacy, rounds) = (&experiment.privacy, experiment.run.rounds);
    let devices = public_samples.len() as u32;
    let total = match (privacy.epsilon, privacy.initial_sigma) {
        (Some(epsilon), _) => epsilon,
        (None, Some(sigma)) => {
            let mean =
                public_samples.iter().map(|&n| f64::from(n)).sum::<f64>() / f64::from(devices);
            let first = Release {
                sigma_artificial: sigma * mean / f64::from(public_samples[0]),
                ..release(experiment, public_samples[0])
            };
            f64::from(rounds) * f64::from(devices) * first.claimed_epsilon(privacy.delta)
        }
        (None, None) => return Ok(None),
    };
    let pid = Pid {
        proportional: privacy.pid_proportional.unwrap_or_default(),
        integral: privacy.pid_integral.unwrap_or_default(),
        window: privacy.pid_window.unwrap_or(2),
        error: privacy.pid_error.unwrap_or(lapa_privacy::allocate::PidError::Relative),
    };
    let decay = privacy.decay.unwrap_or(1.0);
    Ok(Some(match (privacy.allocator, privacy.basis) {
        (AllocatorName::None, _) => return Ok(None),
        (AllocatorName::Uniform, Basis::Paper) => Box::new(Uniform::paper(total, rounds, devices)?),
        (AllocatorName::Uniform, Basis::Certified) => Box::new(Uniform::certified(rounds)?),
        (AllocatorName::Arb, Basis::Paper) => Box::new(Arb::paper(total, rounds, devices)?),
        (AllocatorName::Arb, Basis::Certified) => Box::new(Arb::certified(rounds)?),
        (AllocatorName::Lapa, Basis::Paper) => {
            Box::new(Lapa::paper(total, rounds, devices, pid, decay)?)
        }
        (AllocatorName::Lapa, Basis::Certified) => {
            Box::new(Lapa::certified(rounds, devices, pid, decay)?)
        }
        (AllocatorName::OptimalSplit, _) => Box::new(OptimalSplit::paper(total, rounds, devices)?),
    }))
}
