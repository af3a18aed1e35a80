//! Uplinks: the seam, the uplinks of a configuration, airtime and energy.

mod analog;
mod digital;
mod ideal;
mod signal;

pub use analog::{AnalogConfig, Variance};
pub use ideal::IdealConfig;

use lapa_privacy::choices;
use lapa_wireless::units::{Hertz, Joule, Second};
use lapa_wireless::uplink::{
    Coding, DigitalConfig, SignalConfig, UplinkError, airtime as time_on_air, energy,
};
use rand::Rng;

use super::settings::{Access, Transmit};
use super::{Link, Links, Received};
use crate::device::PrivateUpdate;

choices! {
    /// Uplinks of a configuration, each with its parameters.
    #[derive(Copy)]
    pub enum UplinkConfig: BuildUplink {
        /// Every value arrives as it was sent.
        Ideal(IdealConfig),
        /// A coordinate is an amplitude; it arrives with the receiver's noise.
        Analog(AnalogConfig),
        /// Coordinates are quantized to bits; symbols err at the link's rate.
        Digital(DigitalConfig),
        /// Baseband symbols of all devices are superposed and decoded one by one: slow and exact.
        Signal(SignalConfig),
    }
}

impl Default for UplinkConfig {
    fn default() -> Self {
        Self::Ideal(IdealConfig {})
    }
}

/// Parameters that an uplink is built from.
pub trait BuildUplink {
    /// The uplink, with the modulation and access of `transmit`.
    fn build(&self, transmit: &Transmit) -> Result<Uplink, UplinkError>;

    /// Parameters of digital symbols; `None` where coordinates are not sent as bits.
    fn digital(&self) -> Option<DigitalConfig> {
        None
    }

    /// True if every value arrives as it was sent, and nothing is on the air.
    fn is_ideal(&self) -> bool {
        false
    }

    /// True if coordinates are sent as amplitudes, so that the receiver's noise is on them.
    fn is_analog(&self) -> bool {
        false
    }

    /// Part of the receiver's noise variance that is on a coordinate: that of a symbol's real part.
    fn noise_part(&self) -> f64 {
        0.5
    }
}

/// An uplink: carries private updates to the base station.
pub enum Uplink {
    /// Each device alone, given its SINR.
    PerLink(Box<dyn PerLink>),
    /// All devices at once, over one channel.
    Superposed(Box<dyn Superposed>),
}

/// An uplink that models each device's link alone.
pub trait PerLink: Send + Sync {
    /// The coding of coordinates as symbols; `None` where nothing is on the air.
    fn coding(&self) -> Option<Coding>;

    /// Sends one device's update over its link.
    fn send(
        &self,
        update: PrivateUpdate,
        link: &Link,
        rng: &mut dyn Rng,
    ) -> Result<Arrival, UplinkError>;
}

/// An uplink that receives all devices together.
pub trait Superposed: Send + Sync {
    /// The coding of coordinates as symbols.
    fn coding(&self) -> Coding;

    /// Sends the updates of devices with the links `on_air`, in the same order.
    fn send(
        &self,
        updates: Vec<PrivateUpdate>,
        links: &Links,
        on_air: &[Link],
        rng: &mut dyn Rng,
    ) -> Result<Vec<Arrival>, UplinkError>;
}

impl Uplink {
    fn coding(&self) -> Option<Coding> {
        match self {
            Self::PerLink(uplink) => uplink.coding(),
            Self::Superposed(uplink) => Some(uplink.coding()),
        }
    }

    /// Bytes of one update; see [`Coding::payload_bytes`].
    pub fn bytes(&self, coordinates: usize) -> u64 {
        self.coding().unwrap_or(Coding::Analog).payload_bytes(coordinates) as u64
    }

    /// Airtime and energy of updates that devices with these links send.
    pub fn airtime(
        &self,
        transmit: &Transmit,
        coordinates: usize,
        links: &[Link],
    ) -> Result<Airtime, UplinkError> {
        let Some(coding) = self.coding().filter(|_| !links.is_empty()) else {
            return Ok(Airtime { time: Second(0.0), energy: Joule(0.0) });
        };
        let one = time_on_air(coding.symbols(coordinates), Hertz(transmit.symbol_rate_hz))?;
        let time = match transmit.access {
            Access::Noma => one,
            Access::Orthogonal => Second(one.0 * links.len() as f64),
        };
        let energy = links.iter().map(|link| energy(link.power, one).0).sum();
        Ok(Airtime { time, energy: Joule(energy) })
    }
}

/// Cost of a round on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Airtime {
    /// Time for which the channel is busy.
    pub time: Second,
    /// Energy that all devices together radiate, at most.
    pub energy: Joule,
}

/// An update that arrived, and how many of its values the quantizer had to cut.
pub struct Arrival {
    pub(super) received: Received,
    pub(super) cut: usize,
}

impl Arrival {
    /// An update that arrived over a link, which adds noise of standard deviation `noise_std`.
    /// `carry` changes the values as the link does, and counts those that it cut.
    pub fn new(
        update: PrivateUpdate,
        link: &Link,
        noise_std: f64,
        carry: impl FnOnce(&mut [f32]) -> usize,
    ) -> Self {
        let sigma = update.sigma().hypot(noise_std);
        let mut gradient = update.into_gradient();
        let cut = carry(&mut gradient);
        Self { received: Received { device: link.device, gradient, sigma }, cut }
    }
}
