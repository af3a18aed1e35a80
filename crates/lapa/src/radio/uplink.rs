//! Uplinks: ideal, analog, digital or as signals, and their airtime and energy.

use lapa_wireless::units::{Hertz, Joule, Second};
use lapa_wireless::uplink::{
    Analog, Coding, Digital, DigitalConfig, Signal, SignalConfig, SymbolConfig, Symbols,
    UplinkError, airtime, energy,
};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Link, Links, Received, error_free};
use crate::config::{Access, Transmit};
use crate::device::PrivateUpdate;

/// The uplinks of a configuration, each with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UplinkConfig {
    /// Every value arrives as it was sent.
    #[default]
    Ideal,
    /// A coordinate is an amplitude; it arrives with the receiver's noise.
    Analog,
    /// Coordinates are quantized to bits; symbols err at the link's rate.
    Digital(DigitalConfig),
    /// Baseband symbols of all devices are superposed and decoded one by one: slow and exact.
    Signal(SignalConfig),
}

impl UplinkConfig {
    /// The parameters of digital symbols; `None` where coordinates are not sent as bits.
    pub fn digital(&self) -> Option<DigitalConfig> {
        match *self {
            Self::Digital(digital)
            | Self::Signal(SignalConfig { symbols: SymbolConfig::Digital(digital) }) => {
                Some(digital)
            }
            Self::Ideal | Self::Analog | Self::Signal(_) => None,
        }
    }

    /// True if coordinates are sent as amplitudes, so that the receiver's noise is on them.
    pub fn is_analog(&self) -> bool {
        *self != Self::Ideal && self.digital().is_none()
    }
}

/// The uplink of a run.
#[derive(Clone, Debug)]
pub struct Uplink {
    config: UplinkConfig,
    coding: Coding,
    access: Access,
    symbol_rate: Hertz,
}

/// What a round costs on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Airtime {
    /// How long the channel is busy.
    pub time: Second,
    /// What all devices together radiate, at most.
    pub energy: Joule,
}

/// An update that arrived, and how many of its values the quantizer had to cut.
pub(crate) struct Arrival {
    pub received: Received,
    pub cut: usize,
}

impl Uplink {
    /// The uplink of a configuration.
    pub fn new(transmit: &Transmit) -> Result<Self, UplinkError> {
        let coding = match transmit.uplink.digital() {
            Some(digital) => digital.coding(transmit.modulation.into())?,
            None => Coding::Analog,
        };
        let symbol_rate = Hertz(transmit.symbol_rate_hz);
        Ok(Self { config: transmit.uplink, coding, access: transmit.access, symbol_rate })
    }

    /// Bytes that one update takes; see [`Coding::payload_bytes`].
    pub fn bytes(&self, coordinates: usize) -> u64 {
        self.coding.payload_bytes(coordinates) as u64
    }

    /// What it costs that devices with these links send updates; nothing on the ideal uplink.
    pub fn airtime(&self, coordinates: usize, links: &[Link]) -> Result<Airtime, UplinkError> {
        if self.config == UplinkConfig::Ideal || links.is_empty() {
            return Ok(Airtime { time: Second(0.0), energy: Joule(0.0) });
        }
        let one = airtime(self.coding.symbols(coordinates), self.symbol_rate)?;
        let time = match self.access {
            Access::Noma => one,
            Access::Orthogonal => Second(one.0 * links.len() as f64),
        };
        let energy = links.iter().map(|link| energy(link.power, one).0).sum();
        Ok(Airtime { time, energy: Joule(energy) })
    }

    /// True if each device is simulated alone ([`Uplink::send`]), false if all at once.
    pub(crate) fn is_separable(&self) -> bool {
        !matches!(self.config, UplinkConfig::Signal(_))
    }

    /// Sends one device's update over its link.
    pub(crate) fn send(
        &self,
        update: PrivateUpdate,
        link: &Link,
        rng: &mut dyn Rng,
    ) -> Result<Arrival, UplinkError> {
        if self.config == UplinkConfig::Ideal {
            return Ok(Arrival { received: error_free(link.device, update), cut: 0 });
        }
        let carrier = self.carrier(update.scale(), link)?;
        let sigma = update.sigma().hypot(carrier.noise_std());
        let mut gradient = update.into_gradient();
        let cut = match carrier {
            Carrier::Analog(analog) => {
                analog.transmit(&mut gradient, rng);
                0
            }
            Carrier::Digital(digital) => digital.transmit(&mut gradient, rng).cut,
        };
        Ok(Arrival { received: Received { device: link.device, gradient, sigma }, cut })
    }

    /// Sends the updates of all devices as baseband signals: superposed, or one after the other.
    pub(crate) fn send_signals(
        &self,
        updates: Vec<PrivateUpdate>,
        links: &Links,
        devices: &[Link],
        rng: &mut dyn Rng,
    ) -> Result<Vec<Arrival>, UplinkError> {
        // What a device sends alone is a group of one.
        let groups = match self.access {
            Access::Noma => devices.len().max(1),
            Access::Orthogonal => 1,
        };
        let mut arrivals = Vec::with_capacity(updates.len());
        let mut updates = updates.into_iter();
        for group in devices.chunks(groups) {
            let sent: Vec<PrivateUpdate> = updates.by_ref().take(group.len()).collect();
            let ids: Vec<u32> = group.iter().map(|link| link.device).collect();
            let signal = Signal {
                channels: links.channels_of(&ids),
                powers: links.powers_of(&ids),
                noma: links.noma(),
                symbols: match self.coding {
                    Coding::Analog => {
                        Symbols::Analog { scales: sent.iter().map(PrivateUpdate::scale).collect() }
                    }
                    Coding::Digital { quantizer, modulation } => {
                        Symbols::Digital { quantizer, modulation }
                    }
                },
            };
            let sigmas: Vec<f64> = sent
                .iter()
                .zip(group)
                .map(|(update, link)| {
                    // As the fast uplinks model it.
                    let carrier = self.carrier(update.scale(), link)?;
                    Ok(update.sigma().hypot(carrier.noise_std()))
                })
                .collect::<Result<_, UplinkError>>()?;
            let mut gradients: Vec<Vec<f32>> =
                sent.into_iter().map(PrivateUpdate::into_gradient).collect();
            let reports = signal.transmit(&mut gradients, rng)?;
            let received = ids.into_iter().zip(gradients).zip(sigmas);
            for (((device, gradient), sigma), report) in received.zip(reports) {
                let received = Received { device, gradient, sigma };
                arrivals.push(Arrival { received, cut: report.cut });
            }
        }
        Ok(arrivals)
    }

    /// What carries one device's update over its link.
    fn carrier(&self, scale: f64, link: &Link) -> Result<Carrier, UplinkError> {
        Ok(match self.coding {
            Coding::Analog => Carrier::Analog(Analog::new(scale, link.sinr)?),
            Coding::Digital { quantizer, modulation } => {
                Carrier::Digital(Digital::new(quantizer, modulation, link.sinr)?)
            }
        })
    }
}

/// One device's link, as the fast uplinks see it.
enum Carrier {
    Analog(Analog),
    Digital(Digital),
}

impl Carrier {
    /// What the link adds to an update's noise.
    fn noise_std(&self) -> f64 {
        match self {
            Self::Analog(analog) => analog.noise_std(),
            Self::Digital(digital) => digital.noise_std(),
        }
    }
}
