//! Noise, for a release that is on record.

use lapa_privacy::ledger::Recorded;
use lapa_privacy::sampler::{DiscreteGaussian, Grid, clip, release_gaussian};
use lapa_privacy::{Event, NoiseKind};
use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::NoiseError;
use super::learn::LocalUpdate;

/// A device's update with its noise: the only thing that can be sent.
#[derive(Debug, PartialEq)]
pub struct PrivateUpdate {
    gradient: Vec<f32>,
    sigma: f64,
    scale: f64,
}

impl PrivateUpdate {
    /// g̃ = g + N(0, σ²) on each coordinate (the paper's eq. (19)), with the σ on record; discrete
    /// noise goes onto the sum on the grid, before it is divided. `scale` is public, `room` is
    /// memory.
    ///
    /// Differs from the paper: real noise of variance σ² instead of CN(0, σ²). With `privacy.noise` =
    /// "complex-gaussian" the σ on record is that of the real part, σ/√2.
    pub(super) fn new(
        update: &LocalUpdate,
        (device, recorded): (u32, Recorded),
        scale: f64,
        grid: Option<&Grid>,
        rng: &mut dyn Rng,
        room: Vec<f32>,
    ) -> Result<Self, NoiseError> {
        let event = event_of(device, &recorded)?;
        let sigma = event.sigma_artificial();
        let mut gradient = room;
        match (event, grid) {
            (Event::Release(release), Some(grid)) => {
                let noise = grid.noise(sigma * release.denominator)?;
                gradient = grid.release(&update.grid_sum, &noise, rng, release.denominator)?;
            }
            _ => release_gaussian(&update.gradient, sigma, rng, &mut gradient)?,
        }
        Ok(Self { gradient, sigma, scale })
    }

    /// An update that was computed outside of the engine, clipped as a whole to `clip_norm`, with
    /// noise. One that is not finite counts as zero, since a refusal would tell of the records.
    pub(crate) fn of_whole(
        mut update: Vec<f32>,
        clip_norm: f64,
        recorded: (u32, Recorded),
        rng: &mut dyn Rng,
    ) -> Result<Self, NoiseError> {
        if clip(&mut update, clip_norm).is_err() {
            update.fill(0.0);
        }
        let gradient = update.into_iter().map(f64::from).collect();
        let local = LocalUpdate { gradient, ..LocalUpdate::default() };
        Self::new(&local, recorded, 1.0, None, rng, Vec::new())
    }

    /// Standard deviation of the noise on each coordinate.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The public scale c that it is divided by when it is sent as amplitudes: see
    /// [`power_scale`](crate::budget::power_scale).
    pub fn scale(&self) -> f64 {
        self.scale
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

/// The release on record, if it is of this device.
fn event_of(device: u32, recorded: &Recorded) -> Result<&Event, NoiseError> {
    if recorded.device() == device {
        return Ok(recorded.event());
    }
    Err(NoiseError::OtherDevice { device, recorded: recorded.device() })
}

/// Label counts with the noise of the histogram on record; 0 for every label if that is no
/// histogram.
pub(crate) fn noisy_counts(
    counts: &[u32],
    (device, recorded): (u32, Recorded),
    rng: &mut dyn Rng,
) -> Result<Vec<f64>, NoiseError> {
    let Event::Histogram(histogram) = event_of(device, &recorded)? else {
        return Ok(vec![0.0; counts.len()]);
    };
    let counts = counts.iter().map(|&count| f64::from(count));
    Ok(match histogram.noise {
        _ if histogram.sigma == 0.0 => counts.collect(),
        NoiseKind::Gaussian | NoiseKind::ComplexGaussian => counts
            .map(|count| count + histogram.sigma * rng.sample::<f64, _>(StandardNormal))
            .collect(),
        NoiseKind::DiscreteGaussian => {
            let noise = DiscreteGaussian::new(histogram.sigma)?;
            counts.map(|count| count + noise.sample(rng) as f64).collect()
        }
    })
}

/// Steps of the grid in the clipping norm.
const GRID_STEPS: f64 = (1 << 20) as f64;

/// The grid of discrete noise on samples of `clip_norm`.
pub(crate) fn grid(clip_norm: f64) -> Result<Grid, NoiseError> {
    Ok(Grid::new(clip_norm / GRID_STEPS, clip_norm, u32::MAX.into())?)
}
