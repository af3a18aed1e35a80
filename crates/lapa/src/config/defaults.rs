//! Every default value of the configuration, and nothing else.

use super::experiment::{Clip, Norm, Profile, Update};
use crate::data::DataName;

pub(super) const ROUNDS: u32 = 150;
pub(super) const SEED: u64 = 0;
pub(super) const THREADS: u32 = 0;
pub(super) const PARTICIPATION: f64 = 1.0;
pub(super) const EVALUATE_EVERY: u32 = 5;
pub(super) const CHECKPOINT_EVERY: u32 = 10;

pub(super) const DATA: DataName = DataName::Mnist;

pub(super) const IID: u32 = 5;
pub(super) const NON_IID: u32 = 10;
pub(super) const DEVICES: u32 = IID + NON_IID;
pub(super) const LABELS: [u32; 2] = [1, 2];
pub(super) const IID_SAMPLES: [u32; 2] = [3000, 5000];
pub(super) const NON_IID_SAMPLES: [u32; 2] = [3000, 5000];
pub(super) const CONCENTRATION: f64 = 0.5;
pub(super) const SHARDS: u32 = 2;

pub(super) const BATCH_FRACTION: f64 = 0.1;

pub(super) fn norm(profile: Profile) -> Norm {
    match profile {
        Profile::Certified => Norm::Group,
        Profile::Paper => Norm::Batch,
    }
}

pub(super) fn clip(profile: Profile) -> Clip {
    match profile {
        Profile::Certified => Clip::Sample,
        Profile::Paper => Clip::Device,
    }
}

pub(super) fn clip_norm(profile: Profile) -> f64 {
    match profile {
        Profile::Certified => 1.0,
        Profile::Paper => 5.0,
    }
}

pub(super) fn learning_rate(data: &DataName) -> f64 {
    match data {
        DataName::FashionMnist => 0.008,
        DataName::Mnist | DataName::Synthetic | DataName::Idx(_) => 0.01,
    }
}

pub(super) fn momentum(update: Update) -> f64 {
    match update {
        Update::Gradient => 0.9,
        Update::Epoch => 0.0,
    }
}
