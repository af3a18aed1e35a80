//! Stage 4: noise, after its release is on record.
//!
//! The order within a round: the allocator asks for shares, the ledger grants them and records the
//! releases ([`Budgets::grant`]), the device learns, and only then is noise drawn
//! ([`PrivateUpdate::new`]). A device without a grant computes and sends nothing.

mod account;
mod allocator;
mod budgets;
mod histograms;
mod noise_control;
mod own;
mod readings;
mod report;
mod scale;
mod standing;
mod terms;

use lapa_privacy::mechanism::{Grid, release_gaussian};
use lapa_privacy::{Event, NoiseKind};
use rand::Rng;

pub use account::kind_of_costs;
pub use budgets::{Budgets, Decision, Granted};
pub use histograms::noisy_counts;
pub use noise_control::{NoiseRule, top_up};
pub use own::{OwnBudget, OwnSpending, Refusal};
pub use report::{PrivacySummary, round_up};
pub use scale::power_scale;
pub use standing::Spent;
pub use terms::PrivatizeError;
pub(crate) use terms::{of_whole_updates, public_samples};

use crate::config::Experiment;
use crate::learn::LocalUpdate;

/// A device's update with its noise: the only thing that can be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct PrivateUpdate {
    gradient: Vec<f32>,
    sigma: f64,
    scale: f64,
}

impl PrivateUpdate {
    /// g̃ = g + N(0, σ²) on each coordinate (the paper's eq. (19)), with the σ of a release that is
    /// on record; discrete noise goes onto the sum on the grid, before it is divided. `room` is
    /// memory for it.
    ///
    /// Differs from the paper: real noise of variance σ² instead of CN(0, σ²), of which a real
    /// coordinate carries only half.
    pub fn new(
        update: &LocalUpdate,
        granted: &Granted,
        grid: Option<&Grid>,
        rng: &mut dyn Rng,
        room: Vec<f32>,
    ) -> Result<Self, PrivatizeError> {
        let sigma = granted.sigma();
        let mut gradient = room;
        match (&granted.event, grid) {
            (Event::Release(release), Some(grid)) => {
                let noise = grid.noise(sigma * release.denominator)?;
                gradient = grid.release(&update.grid_sum, &noise, rng, release.denominator)?;
            }
            _ => release_gaussian(&update.gradient, sigma, rng, &mut gradient)?,
        }
        Ok(Self { gradient, sigma, scale: granted.scale })
    }

    /// Standard deviation of the noise on each coordinate.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The public scale c that it is divided by when it is sent as amplitudes: see
    /// [`power_scale`].
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// An update that was made before and kept: sent once more, it says nothing new.
    pub(crate) fn kept(gradient: Vec<f32>, sigma: f64) -> Self {
        Self { gradient, sigma, scale: 1.0 }
    }

    /// The noisy gradient.
    pub fn gradient(&self) -> &[f32] {
        &self.gradient
    }

    /// The noisy gradient, to be sent.
    pub fn into_gradient(self) -> Vec<f32> {
        self.gradient
    }
}

/// Steps of the grid in the clipping norm.
const GRID_STEPS: f64 = (1 << 20) as f64;

/// The grid of discrete noise; none for other noise.
pub fn grid(experiment: &Experiment) -> Result<Option<Grid>, PrivatizeError> {
    match (experiment.noise(), experiment.learn.clip_norm) {
        (NoiseKind::DiscreteGaussian, Some(clip_norm)) => {
            let most = u32::MAX.into();
            Ok(Some(Grid::new(clip_norm / GRID_STEPS, clip_norm, most)?))
        }
        _ => Ok(None),
    }
}
