//! Stage 6: what the base station makes of what it received.

pub mod fedadp;
mod fedavg;
pub mod histogram;
mod model;
pub mod noise_aware;
mod rule;
pub mod selection;
mod softmax;
pub mod wasserstein;

#[cfg(test)]
mod noise_aware_tests;
#[cfg(test)]
mod tests;

pub use fedadp::FedAdp;
pub use fedavg::fedavg;
pub use histogram::{Histograms, NoisyHistograms};
pub use model::{GlobalDelta, GlobalModel};
pub use noise_aware::NoiseAwareConfig;
pub use rule::{Rule, Weighting, WeightingState};
pub use selection::Threshold;
pub use wasserstein::{GroundMetric, WassersteinConfig, default_floor};
