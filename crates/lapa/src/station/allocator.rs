//! The allocator of an experiment.

use lapa_privacy::Release;
use lapa_privacy::allocate::{Allocator, Basis};

use crate::budget::{PrivacyError, release};
use crate::config::{Experiment, NoiseLevel};

/// The allocator of an experiment; on basis paper with the ε^T that follows from
/// `privacy.initial_sigma` if that is given: ε_k^[1] = ε^T/(T·K) is the same for all devices,
/// since σ_k and Δs_k both go by 1/|D_k|.
pub(super) fn allocator(
    experiment: &Experiment,
    public_samples: &[u32],
) -> Result<Option<Box<dyn Allocator>>, PrivacyError> {
    let (Some(privacy), rounds) = (&experiment.privacy, experiment.run.rounds) else {
        return Ok(None);
    };
    let devices = public_samples.len() as u32;
    let total = match (privacy.basis, privacy.level) {
        (Basis::Certified, _) => None,
        (Basis::Paper, NoiseLevel::Epsilon(epsilon)) => Some(epsilon),
        (Basis::Paper, NoiseLevel::InitialSigma(sigma)) => {
            let mean =
                public_samples.iter().map(|&n| f64::from(n)).sum::<f64>() / f64::from(devices);
            let first = Release {
                sigma_artificial: sigma * mean / f64::from(public_samples[0]),
                ..release(experiment, public_samples[0])
            };
            Some(f64::from(rounds) * f64::from(devices) * first.claimed_epsilon(privacy.delta))
        }
    };
    Ok(Some(privacy.allocator.build(total, rounds, devices)?))
}
