//! Stage 5: what the base station has of what a device sent.

mod links;
mod uplink;

pub use links::{Link, LinkError, Links};
pub use uplink::{Airtime, Uplink, UplinkConfig};

use crate::privatize::PrivateUpdate;

/// What the base station holds of one device's update. Weights, allocators, logs and checkpoints
/// read this and public numbers only.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    gradient: Vec<f32>,
    sigma: f64,
}

impl Received {
    /// The noisy gradient.
    pub fn gradient(&self) -> &[f32] {
        &self.gradient
    }

    /// Declared standard deviation of the noise on each coordinate, artificial and of the link; 0
    /// where there is none.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// What arrived over a network from a device that declared this noise.
    pub(crate) fn new(gradient: Vec<f32>, sigma: f64) -> Self {
        Self { gradient, sigma }
    }

    /// Gives the memory back for the next round.
    pub(crate) fn into_gradient(self) -> Vec<f32> {
        self.gradient
    }

    #[cfg(test)]
    pub(crate) fn example(gradient: &[f32]) -> Self {
        Self { gradient: gradient.into(), sigma: 0.0 }
    }
}

/// Sends an update over an error-free link.
///
/// What a device has computed cannot be sent as it is; only the privatize stage makes a
/// [`PrivateUpdate`]:
///
/// ```compile_fail,E0308
/// let raw = lapa::learn::LocalUpdate::default();
/// let received = lapa::transmit::error_free(raw);
/// ```
pub fn error_free(update: PrivateUpdate) -> Received {
    let sigma = update.sigma();
    Received { gradient: update.into_gradient(), sigma }
}
