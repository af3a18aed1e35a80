//! Every random stream of a run, derived from (seed, purpose, round, device).
//!
//! The four numbers *are* the ChaCha key, 64 bits each: two different streams never share a key,
//! and no stream depends on how many numbers another one drew, nor on which thread drew them.

use lapa_privacy::sampler::{EntropyError, os_stream};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha12Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The generator of every simulated random choice.
pub type Stream = ChaCha12Rng;

/// Purpose of a stream. The numbers are part of the reproducibility promise: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Drawing synthetic digits (round and device are 0).
    SyntheticData = 1,
    /// Splitting the training set over devices (round and device are 0).
    Partition = 2,
    /// Initial parameters of the model (round and device are 0).
    ModelInit = 3,
    /// Participants of a round (device is 0).
    Participation = 4,
    /// Samples that a device uses in a round.
    Batch = 5,
    /// The noise of a device in a round.
    Noise = 6,
    /// Draws of an allocator after a round (device is 0).
    Allocate = 7,
    /// Positions of the devices (round and device are 0).
    Topology = 8,
    /// The fading of a device; in place of the round, how often it was redrawn before.
    Fading = 9,
    /// Channel errors of a device's update (the signal uplink draws for all at device 0).
    Channel = 10,
    /// The noise on a device's label histogram (round is 0).
    Histogram = 11,
    /// Draws of an optimizer of transmit powers; the optimizer's number is in place of the round.
    Power = 12,
    /// Digits of a step of training before the first round; the step is in place of the round.
    Pretrain = 13,
    /// Draws of an audit of mechanisms and canaries; their use is in place of the round.
    Audit = 14,
    /// Draws of an inversion of gradients; their use is in place of the round.
    Inversion = 15,
    /// Draws of a membership attack; their use is in place of the round.
    Membership = 16,
    /// Calibration images of batch norm (round and device are 0).
    Calibration = 17,
    /// Angle of a device's images (round is 0), and the noise on a record, whose place in the training
    /// set, from 1, is in place of the round.
    FeatureSkew = 18,
}

/// The stream for one purpose, one round and one device.
pub fn stream(seed: u64, purpose: Purpose, round: u64, device: u64) -> Stream {
    let mut key = [0u8; 32];
    for (slot, number) in key.chunks_exact_mut(8).zip([seed, purpose as u64, round, device]) {
        slot.copy_from_slice(&number.to_le_bytes());
    }
    Stream::from_seed(key)
}

/// Source of noise and batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Entropy {
    /// The run's seed: a simulation, no guarantee against anyone who knows the seed.
    #[default]
    Seed,
    /// The operating system: real releases, which no seed repeats.
    Os,
}

/// Source of what devices and channels draw in rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub entropy: Entropy,
    pub seed: u64,
}

impl Draws {
    /// The stream of a device in a round: that of the seed, or a new one of the operating system.
    pub fn stream(
        &self,
        purpose: Purpose,
        round: u32,
        device: u32,
    ) -> Result<Box<dyn Rng>, EntropyError> {
        Ok(match self.entropy {
            Entropy::Seed => Box::new(stream(self.seed, purpose, round.into(), device.into())),
            Entropy::Os => Box::new(os_stream()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_in_every_coordinate_and_repeat() {
        let first = |s, p, r, d| stream(s, p, r, d).next_u64();
        let base = first(1, Purpose::Batch, 2, 3);
        assert_eq!(base, first(1, Purpose::Batch, 2, 3));
        for other in [
            first(0, Purpose::Batch, 2, 3),
            first(1, Purpose::Partition, 2, 3),
            first(1, Purpose::Batch, 3, 3),
            first(1, Purpose::Batch, 2, 4),
        ] {
            assert_ne!(base, other);
        }
    }
}
