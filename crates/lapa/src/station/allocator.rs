//! The allocator of an experiment.

use lapa_privacy::allocate::{Allocator, Horizon};

use crate::budget::{PrivacyError, total_epsilon};
use crate::config::Experiment;

/// The allocator of an experiment.
pub(super) fn allocator(
    experiment: &Experiment,
    public_samples: &[u32],
) -> Result<Option<Box<dyn Allocator>>, PrivacyError> {
    let (Some(privacy), rounds) = (&experiment.privacy, experiment.run.rounds) else {
        return Ok(None);
    };
    let (total, devices) = (total_epsilon(experiment, public_samples), public_samples.len() as u32);
    Ok(Some(privacy.allocator.build(Horizon { total, rounds, devices })?))
}
