//! Several devices at once: superposition, successive cancellation, receivers, SINR.
//!
//! The base station hears y = Σ_k p_k·h_k·s_k + n with n ~ CN(0, σ²) at each antenna and p_k² the
//! power of device k. It decodes the devices one after the other ([`SicOrder`]): those decoded before
//! are cancelled, those decoded later interfere.

mod basis;
mod cholesky;

use basis::Basis;
use cholesky::Cholesky;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channel::{Channels, Complex64};
use crate::units::Watt;

/// The linear receiver that each step of the cancellation uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receiver {
    /// r_k = h_k^H, as in the paper: best against noise, blind to the other devices.
    Matched,
    /// Least squares: nulls every device not yet decoded. Needs an antenna for each of them.
    ZeroForcing,
    /// The largest SINR of all linear receivers, r_k = h_k^H·R⁻¹ with R the covariance of the noise
    /// and of the devices not yet decoded.
    Mmse,
}

/// Order of decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SicOrder {
    /// By descending received power p_k²‖h_k‖², ties by index.
    #[default]
    Power,
    /// By index, as the paper prints eq. (6).
    Index,
}

/// The base station's side of an uplink that all devices share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noma {
    /// Receiver that separates a device from those not yet decoded.
    pub receiver: Receiver,
    /// All interference is cancelled, also that of devices decoded later, as the paper assumes.
    /// Nothing is left to null, so every receiver is then the matched one: SINR = p_k²‖h_k‖²/σ².
    pub perfect_sic: bool,
    /// Order of decoding.
    pub order: SicOrder,
    /// σ², the noise power at each antenna.
    pub noise: Watt,
}

/// Link of a device. The ratios are linear, not decibels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// p_k²‖h_k‖²/σ²: signal-to-noise ratio of the device alone.
    pub snr: f64,
    /// Signal to interference and noise ratio beside the devices decoded later; never above the SNR.
    pub sinr: f64,
    /// Place in the order of decoding, from 0.
    pub position: u32,
}

/// Successive interference cancellation of the base station.
#[derive(Clone, Debug, PartialEq)]
pub struct Sic {
    /// The devices in the order of decoding.
    pub order: Vec<u32>,
    /// Row k is the combiner w_k: ŝ_k = w_k^H·y once the devices before k are taken out of y, with
    /// w_k^H·h_k·p_k = 1, so that the error ŝ_k − s_k has power 1/SINR. 0 for a device that is not
    /// heard.
    pub receivers: Channels,
}

/// Error of a receiver.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NomaError {
    /// No thermal noise, or no number.
    #[error("noise power = {} W: expected a finite number above 0", .0.0)]
    Noise(Watt),
    /// Nothing to receive with.
    #[error("the channels have no antenna: expected at least 1")]
    NoAntenna,
    /// Not one power per device.
    #[error("{powers} transmit powers for {devices} devices: expected one per device")]
    Powers {
        /// Powers given.
        powers: usize,
        /// Devices that have a channel.
        devices: usize,
    },
    /// No power.
    #[error("transmit power of device {device} = {} W: expected a finite number from 0", .power.0)]
    Power {
        /// The device.
        device: usize,
        /// Its power.
        power: Watt,
    },
    /// A channel that is no number, or one out of all proportion to the noise.
    #[error(
        "SNR of device {device} = {snr:e}: expected at most 1e100; \
         check its channel, its power and the noise"
    )]
    Snr {
        /// The device.
        device: usize,
        /// Its SNR.
        snr: f64,
    },
    /// Zero forcing cannot tell a device from those decoded later.
    #[error(
        "zero forcing cannot separate device {device} from the {undecoded} decoded after it with \
         {antennas} antennas: use more antennas, fewer devices at once, the MMSE or matched \
         receiver, or assume perfect cancellation"
    )]
    RankDeficient {
        /// The device whose channel is a combination of the others.
        device: usize,
        /// Devices heard that are decoded after it.
        undecoded: usize,
        /// Antennas of the base station.
        antennas: usize,
    },
}

/// Far beyond any link, and such that no sum or product of the pass leaves the range of f64.
const MAX_SNR: f64 = 1e100;

/// Below it a device counts as silent: its combiner could leave the range of f64.
const MIN_SNR: f64 = 1e-100;

/// Smallest share ‖P⊥h‖²/‖h‖² of a channel that nulling may leave. At 1e-10 (a loss of 100 dB, an
/// angle of 1e-5) rounding moves the SINR by about 1e-10 of itself; for a channel within the span
/// of the others, rounding leaves about 1e-31.
const MIN_SHARE: f64 = 1e-10;

impl Noma {
    /// Links of the devices, in their order. Work and memory are linear in devices.
    ///
    /// SINR: p_k²|r_k·h_k|² / (Σ_{i after k} p_i²|r_k·h_i|² + ‖r_k‖²σ²), the paper's eq. (6).
    /// Differs from the paper: the devices are in the order of decoding; [`SicOrder::Index`] is the
    /// paper's.
    pub fn links(&self, channels: &Channels, powers: &[Watt]) -> Result<Vec<Link>, NomaError> {
        let mut links = vec![Link::default(); powers.len()];
        self.pass(channels, powers, |device, link, _| links[device] = link)?;
        Ok(links)
    }

    /// The order of decoding and the combiners, to decode signals with.
    pub fn sic(&self, channels: &Channels, powers: &[Watt]) -> Result<Sic, NomaError> {
        let mut receivers = Channels::new(powers.len(), channels.antennas());
        let order = self.pass(channels, powers, |device, _, combiner| {
            receivers.of_mut(device).copy_from_slice(combiner);
        })?;
        Ok(Sic { order, receivers })
    }

    /// Visits the devices from the last decoded to the first with link and combiner, and gives the
    /// order of decoding.
    ///
    /// In units of the noise a device is heard as g = p·h/σ = √snr·u with ‖u‖ = 1. A receiver is a
    /// v with v^H·u = 1, and leaves of the SNR the share 1/(v^H·R·v), R = I + Σ g_i·g_i^H over the
    /// devices not yet decoded.
    fn pass(
        &self,
        channels: &Channels,
        powers: &[Watt],
        mut visit: impl FnMut(usize, Link, &[Complex64]),
    ) -> Result<Vec<u32>, NomaError> {
        let snrs = self.snrs(channels, powers)?;
        let mut order: Vec<u32> = (0..snrs.len() as u32).collect();
        let snr_of = |device: u32| snrs[device as usize];
        if self.order == SicOrder::Power {
            order.sort_unstable_by(|&a, &b| snr_of(b).total_cmp(&snr_of(a)).then(a.cmp(&b)));
        }

        let antennas = channels.antennas();
        let sigma = self.noise.0.sqrt();
        let mut covariance = Cholesky::identity(antennas);
        let mut nulled = Basis::new(antennas);
        let mut unit = vec![Complex64::ZERO; antennas];
        let mut combiner = vec![Complex64::ZERO; antennas];
        for (position, &device) in order.iter().enumerate().rev() {
            let (position, device) = (position as u32, device as usize);
            let snr = snrs[device];
            if snr == 0.0 {
                combiner.fill(Complex64::ZERO);
                visit(device, Link { position, ..Link::default() }, &combiner);
                continue;
            }
            let amplitude = snr.sqrt();
            for (u, h) in unit.iter_mut().zip(channels.of(device)) {
                *u = heard(*h, powers[device], sigma) / amplitude;
            }
            combiner.copy_from_slice(&unit);
            let share = self.receive(
                device,
                amplitude,
                &mut unit,
                &mut combiner,
                &mut covariance,
                &mut nulled,
            )?;
            scale(&mut combiner, 1.0 / (amplitude * sigma));
            // Rounding must not lift a device above what is heard of it alone.
            let link = Link { snr, sinr: snr * share.min(1.0), position };
            visit(device, link, &combiner);
        }
        Ok(order)
    }

    /// Share of the SNR of a device heard as g = amplitude·unit that the receiver leaves. `combiner`,
    /// which begins as `unit`, becomes the receiver; `unit` is used up.
    fn receive(
        &self,
        device: usize,
        amplitude: f64,
        unit: &mut [Complex64],
        combiner: &mut [Complex64],
        covariance: &mut Cholesky,
        nulled: &mut Basis,
    ) -> Result<f64, NomaError> {
        let share = match self.receiver {
            _ if self.perfect_sic => return Ok(1.0),
            Receiver::Matched => 1.0 / covariance.form(unit),
            Receiver::ZeroForcing => nulled.null(combiner),
            Receiver::Mmse => covariance.solve(combiner),
        };
        if self.receiver == Receiver::ZeroForcing {
            if share <= MIN_SHARE {
                let (undecoded, antennas) = (nulled.len(), unit.len());
                return Err(NomaError::RankDeficient { device, undecoded, antennas });
            }
            nulled.push(combiner, share);
        } else {
            covariance.add(unit, amplitude);
        }
        if self.receiver != Receiver::Matched {
            scale(combiner, 1.0 / share);
        }
        Ok(share)
    }

    /// p_k²‖h_k‖²/σ² of every device, once all input is known to be good.
    fn snrs(&self, channels: &Channels, powers: &[Watt]) -> Result<Vec<f64>, NomaError> {
        if !(self.noise.0 > 0.0 && self.noise.0.is_finite()) {
            return Err(NomaError::Noise(self.noise));
        }
        if channels.antennas() == 0 {
            return Err(NomaError::NoAntenna);
        }
        let devices = channels.devices();
        if powers.len() != devices {
            return Err(NomaError::Powers { powers: powers.len(), devices });
        }
        let sigma = self.noise.0.sqrt();
        let snr = |(device, &power): (usize, &Watt)| {
            if !(power.0 >= 0.0 && power.0.is_finite()) {
                return Err(NomaError::Power { device, power });
            }
            let heard = channels.of(device).iter().map(|&h| heard(h, power, sigma));
            let snr: f64 = heard.map(|g| g.norm_sqr()).sum();
            match snr {
                MIN_SNR..=MAX_SNR => Ok(snr),
                0.0..MIN_SNR => Ok(0.0),
                _ => Err(NomaError::Snr { device, snr }),
            }
        };
        powers.iter().enumerate().map(snr).collect()
    }
}

/// p·h/σ
fn heard(h: Complex64, power: Watt, sigma: f64) -> Complex64 {
    h * power.0.sqrt() / sigma
}

fn scale(vector: &mut [Complex64], factor: f64) {
    vector.iter_mut().for_each(|x| *x *= factor);
}

/// a^H·b
fn dot(a: &[Complex64], b: &[Complex64]) -> Complex64 {
    a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
}

/// y += a·x
fn axpy(a: Complex64, x: &[Complex64], y: &mut [Complex64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}

fn norm_sqr(x: &[Complex64]) -> f64 {
    x.iter().map(|x| x.norm_sqr()).sum()
}
