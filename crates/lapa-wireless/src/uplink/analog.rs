//! Values sent as amplitudes.

use std::f64::consts::FRAC_1_SQRT_2;

use rand::{Rng, RngExt};
use rand_distr::StandardNormal;

use super::{MAGNITUDES, UplinkError, check_magnitude, check_sinr};
use crate::error::check;

/// One device's uplink without bits: every coordinate is the real part of one complex symbol,
/// s = v/c with a public scale c, and the base station reads v̂ = c·Re ŝ.
///
/// The error is c·√(1/(2γ))·N(0, 1), as only half of the complex noise falls on the real part.
/// Interference is taken for Gaussian noise of its power, half of it on the real part: right on the
/// average over the phases of those who interfere.
///
/// Differs from the paper (Section II-B): it prints the error as σ/(p‖h‖), without a scale and
/// without the half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Analog {
    noise_std: f64,
}

impl Analog {
    /// The uplink of a device that sends with scale c and is received with this SINR. An SINR of 0
    /// is an error: all noise, no value.
    pub fn new(scale: f64, sinr: f64) -> Result<Self, UplinkError> {
        let noise_std = Self::receiver_noise_std(scale, sinr)?;
        let fits = noise_std <= *MAGNITUDES.end();
        let noise_std = check("uplink noise", noise_std, fits, "at most 1e36")?;
        Ok(Self { noise_std })
    }

    /// c² = C²/q + σ² for updates g ∈ R^q with E‖g‖² ≤ C² and artificial noise of variance σ² on
    /// each coordinate. Then E|p·s|² ≤ p² on the average over coordinates and noise: a single
    /// symbol may be stronger (by up to a factor q, with all of g in one coordinate).
    pub fn scale(
        norm_bound: f64,
        dimension: usize,
        sigma_artificial: f64,
    ) -> Result<f64, UplinkError> {
        let allowed = "from 0 to 1e36";
        let fits = |value| (0.0..=*MAGNITUDES.end()).contains(&value);
        check("norm_bound", norm_bound, fits(norm_bound), allowed)?;
        check("sigma_artificial", sigma_artificial, fits(sigma_artificial), allowed)?;
        check("dimension", dimension as f64, dimension > 0, "1 or more")?;
        let scale = (norm_bound / (dimension as f64).sqrt()).hypot(sigma_artificial);
        Ok(check_magnitude("scale", scale)?)
    }

    /// c·√ν with ν = σ_n²/(2p²‖h‖²) = 1/(2·SNR): the error per coordinate that the receiver's noise
    /// alone causes. Only this, never interference, can be argued to protect privacy.
    pub fn receiver_noise_std(scale: f64, snr: f64) -> Result<f64, UplinkError> {
        check_magnitude("scale", scale)?;
        if check_sinr(snr)? == 0.0 {
            return Err(UplinkError::NoSignal);
        }
        Ok(scale * FRAC_1_SQRT_2 / snr.sqrt())
    }

    /// Standard deviation of the error on each coordinate.
    pub fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Replaces values by what the base station decodes.
    pub fn transmit<R: Rng + ?Sized>(&self, values: &mut [f32], rng: &mut R) {
        if self.noise_std > 0.0 {
            for value in values {
                let normal: f64 = rng.sample(StandardNormal);
                *value = (f64::from(*value) + self.noise_std * normal) as f32;
            }
        }
    }
}
