//! Aggregation: weights of the devices, their weighted sum, the step of the global model.

pub mod divergence;
pub mod fedadp;
mod fedavg;
pub mod histogram;
mod label_release;
mod model;
pub mod noise_aware;
mod rule;
mod softmax;
pub mod wasserstein;

#[cfg(test)]
mod tests;

pub use divergence::{JsConfig, KlConfig};
pub use fedadp::{FedAdp, FedadpConfig, Reference};
pub use fedavg::{FedavgConfig, fedavg};
pub use label_release::{Histograms, NoisyHistograms};
pub use model::{GlobalDelta, GlobalModel};
pub use noise_aware::NoiseAwareConfig;
pub use rule::{BuildRule, Rule, RuleConfig, Weighting, WeightingState};
pub use wasserstein::{GroundMetric, WassersteinConfig, default_floor};
