//! Exact loss and gradient of every device, which only a simulation can know. Weight decay is part of
//! each device's loss.
//!
//! Nothing here is private, sent, recorded or seen by any stage of a round. It exists to compare
//! the theory with runs, and is refused with the operating system's entropy, where runs are meant
//! to protect someone.

use std::num::NonZeroUsize;

use super::Simulation;
use crate::config::Entropy;
use crate::model::Batch;

/// Samples of a device that are computed together; fixed, so that sums do not depend on threads.
const BLOCK: usize = 250;
/// Bytes that a block may take; large images come in smaller ones.
const BLOCK_BYTES: u64 = 4 << 30;
/// Devices whose gradients are held at a time, and bytes of them, whichever is less.
const DEVICES_AT_ONCE: usize = 64;
const GRADIENT_BYTES: usize = 1 << 30;

/// F = Σ_k G_k F_k at some parameters. Not private.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactLoss {
    /// F
    pub loss: f64,
    /// ∇F
    pub gradient: Vec<f64>,
    /// Σ_k G_k‖∇F_k‖²
    pub local_squares: f64,
    /// Each device with a weight, ascending.
    pub devices: Vec<LocalLoss>,
}

/// F_k of one device. Not private.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalLoss {
    /// The device, from 0.
    pub device: u32,
    /// Samples that were looked at.
    pub samples: usize,
    /// F_k
    pub loss: f64,
    /// ‖∇F_k‖, without clipping.
    pub gradient_norm: f64,
}

/// An exact loss that cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExactLossError {
    /// It would tell what a private run keeps to its devices.
    #[error(
        "exact losses and gradients of devices are not private and can be had in simulations only: \
         `run.entropy` must be \"seed\", and it is \"os\""
    )]
    NotASimulation,
    /// The parameters of another model.
    #[error("{given} parameters for a model of {expected}")]
    Parameters {
        /// The number given.
        given: usize,
        /// The number of the model.
        expected: usize,
    },
    /// Weights of other devices, or that are no shares.
    #[error(
        "{given} weights that sum to {sum}: expected one from 0 for each of {devices} devices, \
             in all 1"
    )]
    Weights {
        /// The number given.
        given: usize,
        /// Their sum.
        sum: f64,
        /// The number of devices.
        devices: usize,
    },
    /// The loss of a device is not a number at these parameters.
    #[error("the loss or gradient of device {device} is not finite: training has diverged")]
    NotFinite {
        /// The device, from 0.
        device: u32,
    },
}

impl Simulation {
    /// Loss and gradient of each device over its samples, and their sums with `weights`, one per
    /// device; devices with a weight of 0 are left out. Of devices with more than `most_samples`
    /// samples that number is taken, evenly from their list. Samples are computed in blocks of up to 250, taken
    /// evenly as well; with batch norm each has statistics of its own.
    ///
    /// Not private: for simulations only, and refused with `run.entropy = "os"`. The same for
    /// any number of threads.
    pub fn exact_loss(
        &self,
        parameters: &[f32],
        weights: &[f64],
        most_samples: Option<NonZeroUsize>,
    ) -> Result<ExactLoss, ExactLossError> {
        if self.experiment().run.entropy == Entropy::Os {
            return Err(ExactLossError::NotASimulation);
        }
        let expected = self.network().parameter_count();
        if parameters.len() != expected {
            return Err(ExactLossError::Parameters { given: parameters.len(), expected });
        }
        let (given, devices) = (weights.len(), self.records().devices());
        let shares = weights.iter().all(|&weight| weight >= 0.0);
        let sum: f64 = weights.iter().sum();
        if given != devices || !shares || (sum - 1.0).abs() > 1e-6 {
            return Err(ExactLossError::Weights { given, sum, devices });
        }
        let taking: Vec<u32> =
            (0..devices as u32).filter(|&device| weights[device as usize] > 0.0).collect();
        let mut exact = ExactLoss {
            loss: 0.0,
            gradient: vec![0.0; expected],
            local_squares: 0.0,
            devices: vec![],
        };
        let at_once = (GRADIENT_BYTES / (8 * expected.max(1))).clamp(1, DEVICES_AT_ONCE);
        for some in taking.chunks(at_once) {
            for (local, gradient) in self.local_losses(parameters, some, most_samples)? {
                let weight = weights[local.device as usize];
                exact.loss += weight * local.loss;
                exact.local_squares += weight * local.gradient_norm * local.gradient_norm;
                exact.gradient.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += weight * g);
                exact.devices.push(local);
            }
        }
        Ok(exact)
    }

    fn local_losses(
        &self,
        parameters: &[f32],
        devices: &[u32],
        most_samples: Option<NonZeroUsize>,
    ) -> Result<Vec<(LocalLoss, Vec<f64>)>, ExactLossError> {
        let chosen: Vec<Vec<u32>> = devices
            .iter()
            .map(|&device| evenly(&self.records().of(device), most_samples))
            .collect();
        let sizes: Vec<usize> = chosen.iter().map(Vec::len).collect();
        let data = &self.data().train;
        let decay = self.experiment().learn.weight_decay;
        let block = self.network().footprint().samples_within(BLOCK_BYTES).min(BLOCK);
        self.devices.pool.for_each(&sizes, |learner, slot| {
            let (samples, device) = (&chosen[slot], devices[slot]);
            let mut gradient = vec![0.0; parameters.len()];
            let mut block_gradient = vec![0.0; parameters.len()];
            let mut loss = 0.0;
            let blocks = samples.len().div_ceil(block);
            for first in 0..blocks {
                // Interleaved: a list may be sorted by label, and batch norm looks at the block.
                let block: Vec<u32> = samples.iter().skip(first).step_by(blocks).copied().collect();
                let share = block.len() as f64 / samples.len() as f64;
                let batch = Batch { data, samples: &block };
                let mean = learner.worker().gradient(parameters, batch, &mut block_gradient);
                loss += share * f64::from(mean);
                for (sum, &g) in gradient.iter_mut().zip(&block_gradient) {
                    *sum += share * f64::from(g);
                }
            }
            for (sum, &w) in gradient.iter_mut().zip(parameters) {
                *sum += decay * f64::from(w);
                loss += 0.5 * decay * f64::from(w) * f64::from(w);
            }
            let gradient_norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            if !loss.is_finite() || !gradient_norm.is_finite() {
                return Err(ExactLossError::NotFinite { device });
            }
            Ok((LocalLoss { device, samples: samples.len(), loss, gradient_norm }, gradient))
        })
    }
}

/// At most `most` of the samples, at even distances.
fn evenly(samples: &[u32], most: Option<NonZeroUsize>) -> Vec<u32> {
    let count = most.map_or(samples.len(), |most| samples.len().min(most.get()));
    (0..count).map(|i| samples[i * samples.len() / count]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_evenly_and_all_if_they_are_few() {
        let samples: Vec<u32> = (100..110).collect();
        assert_eq!(evenly(&samples, NonZeroUsize::new(3)), [100, 103, 106]);
        assert_eq!(evenly(&samples, NonZeroUsize::new(10)), samples);
        assert_eq!(evenly(&samples, NonZeroUsize::new(11)), samples);
        assert_eq!(evenly(&samples, None), samples);
        assert_eq!(evenly(&[], None), Vec::<u32>::new());
    }
}
