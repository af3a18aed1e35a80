//! The public scale of an update that is sent as amplitudes.

use lapa_privacy::{Adjacency, ClipUnit, Release, Sampling};
use lapa_wireless::uplink::{Analog, UplinkError};

use crate::config::{Experiment, Update};

/// c with c² = B²/q + σ_art², where B² bounds E‖g‖² over the q coordinates
/// ([`Analog::scale`]): then s = g̃/c keeps to E|s|² ≤ 1, and a device of power p² to
/// E|p·s|² ≤ p², the paper's eq. (5). One coordinate goes into one complex symbol.
///
/// - Device-level clip: B = C.
/// - A gradient of clipped samples: B = C; a Poisson batch of b samples is divided by b̄, and
///   `E[b²]/b̄² ≤ 1 + 1/b̄`. Where |D_k| is not public it may be `excess` times the public n̂ that the
///   sum is divided by.
/// - A local epoch of clipped samples: the sum of `steps` of them.
///
/// Differs from the paper: it assumes E|s|² = 1 of gradients that it does not scale. The norm of
/// the gradient itself cannot be the scale, since it is private.
pub fn power_scale(
    release: &Release,
    steps: u32,
    excess: f64,
    coordinates: usize,
) -> Result<f64, UplinkError> {
    let factor = match (release.clip, release.sampling) {
        (ClipUnit::Device, _) => 1.0,
        (ClipUnit::Sample, Sampling::Poisson { .. }) => {
            excess * (1.0 + 1.0 / release.denominator).sqrt()
        }
        (ClipUnit::Sample, Sampling::Full) => excess * f64::from(steps),
        (ClipUnit::Sample, Sampling::Fixed) => f64::from(steps),
    };
    let sigma = release.noise.parts().sqrt() * release.sigma_artificial;
    Analog::scale(factor * release.clip_norm, coordinates, sigma)
}

/// Receiver noise that counts as privacy, on an update sent as amplitudes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trusted {
    /// κν: artificial noise of variance σ² raises the scale, and with it the receiver's noise, so
    /// that it counts for (1 + κν)σ².
    pub fraction: f64,
    /// κνc₀²: without artificial noise.
    pub variance: f64,
    /// σ_c²: artificial noise up to this variance does not raise the scale.
    pub within: f64,
}

/// Updates sent as amplitudes: their public scale, and the noise they arrive with.
#[derive(Clone, Debug)]
pub(super) struct Amplitudes {
    /// Local gradients that an upload sums.
    steps: u32,
    /// Largest ratio of a device's samples to its public number.
    excess: f64,
    /// Coordinates of an update, q.
    coordinates: usize,
    /// κ
    trust: f64,
    /// σ_c: the scale is made for at least this much artificial noise.
    within: f64,
}

impl Amplitudes {
    /// `None` where updates are sent otherwise.
    pub fn new(experiment: &Experiment, coordinates: usize) -> Option<Self> {
        experiment.transmit.uplink.is_analog().then(|| Self {
            steps: match experiment.learn.update {
                Update::Gradient => 1,
                Update::Epoch => {
                    let batches = (1.0 / experiment.learn.batch_fraction).round().max(1.0) as u32;
                    batches.saturating_mul(experiment.learn.local_epochs)
                }
            },
            excess: excess(experiment),
            coordinates,
            trust: experiment.channel_trust(),
            within: 0.0,
        })
    }

    /// The same with one scale for all artificial noise up to `sigma`, of `transmit.scale` = "fixed":
    /// c² = B²/q + max(σ_art², σ_c²). The receiver's noise on the gradient is then constant, as the
    /// paper's Section IV-A says, and the power stays within eq. (5) whatever the noise.
    pub fn within(self, sigma: f64) -> Self {
        Self { within: sigma, ..self }
    }

    /// The same with c = 1 for all artificial noise that leaves room for it, σ_art² ≤ 1 − B²/q, of
    /// `transmit.scale` = "unit". B is the largest of the devices.
    pub fn unit<'a>(
        self,
        releases: impl Iterator<Item = &'a Release>,
    ) -> Result<Self, UplinkError> {
        let mut room = 1f64;
        for release in releases {
            let quiet = Release { sigma_artificial: 0.0, ..release.clone() };
            room = room.min(1.0 - self.scale(&quiet)?.powi(2));
        }
        Ok(self.within(room.max(0.0).sqrt()))
    }

    /// σ_c², see [`Amplitudes::within`].
    pub fn within_squared(&self) -> f64 {
        self.within * self.within
    }

    /// c of a release; see [`power_scale`].
    pub fn scale(&self, release: &Release) -> Result<f64, UplinkError> {
        let least = self.within / release.noise.parts().sqrt();
        let sigma_artificial = release.sigma_artificial.max(least);
        let release = Release { sigma_artificial, ..release.clone() };
        power_scale(&release, self.steps, self.excess, self.coordinates)
    }

    /// c over that of a release without artificial noise, where one scale for all releases is too small
    /// for this one.
    pub fn beyond(&self, release: &Release) -> Result<Option<f64>, UplinkError> {
        let quiet = Release { sigma_artificial: 0.0, ..release.clone() };
        let factor = self.scale(release)? / self.scale(&quiet)?;
        Ok((self.within > 0.0 && factor > 1.0).then_some(factor))
    }

    /// Part of the receiver's noise that may be counted, relative to the variance of the artificial
    /// noise and on an update without artificial noise.
    pub fn trusted(&self, release: &Release, receiver_noise: f64) -> Result<Trusted, UplinkError> {
        let quiet = Release { sigma_artificial: 0.0, ..release.clone() };
        let fraction = self.trust * receiver_noise;
        let variance = fraction * self.scale(&quiet)?.powi(2);
        Ok(Trusted { fraction, variance, within: self.within_squared() })
    }

    /// c√ν: standard deviation of the receiver's noise on each coordinate.
    pub fn channel_noise(&self, release: &Release, variance: f64) -> Result<f64, UplinkError> {
        Ok(self.scale(release)? * variance.sqrt())
    }

    /// Declares the channel's noise, and how much of it may be counted.
    pub fn declare(&self, release: &mut Release, receiver_noise: f64) -> Result<(), UplinkError> {
        release.sigma_channel = self.channel_noise(release, receiver_noise)?;
        release.kappa = self.trust;
        Ok(())
    }
}

/// The largest configured size over the public one where sizes are not public, else 1.
fn excess(experiment: &Experiment) -> f64 {
    let scheme = &experiment.partition.scheme;
    let hidden = experiment.adjacency() == Adjacency::AddRemove;
    match (scheme.middle_samples(), scheme.largest_samples()) {
        (Some(middle), Some(largest)) if hidden => f64::from(largest) / f64::from(middle),
        _ => 1.0,
    }
}
