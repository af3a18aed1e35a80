//! Uplink signal: baseband symbols of all devices, superposed or one after the other.

use lapa_wireless::uplink::{
    Analog, Coding, Digital, DigitalConfig, Signal, SignalConfig, SymbolConfig, Symbols,
    UplinkError,
};
use rand::Rng;

use super::{Arrival, BuildUplink, Superposed, Uplink};
use crate::device::PrivateUpdate;
use crate::radio::settings::{Access, Transmit};
use crate::radio::{Link, Links, Received};

impl BuildUplink for SignalConfig {
    fn build(&self, transmit: &Transmit) -> Result<Uplink, UplinkError> {
        let coding = match self.symbols {
            SymbolConfig::Analog => Coding::Analog,
            SymbolConfig::Digital(digital) => digital.coding(transmit.modulation.into())?,
        };
        Ok(Uplink::Superposed(Box::new(Baseband { coding, access: transmit.access })))
    }

    fn digital(&self) -> Option<DigitalConfig> {
        match self.symbols {
            SymbolConfig::Analog => None,
            SymbolConfig::Digital(digital) => Some(digital),
        }
    }

    fn is_analog(&self) -> bool {
        self.symbols == SymbolConfig::Analog
    }
}

struct Baseband {
    coding: Coding,
    access: Access,
}

impl Baseband {
    /// Standard deviation of the noise on a device's coordinates, as the fast uplinks model it.
    fn sigma(&self, update: &PrivateUpdate, link: &Link) -> Result<f64, UplinkError> {
        let noise_std = match self.coding {
            Coding::Analog => Analog::new(update.scale(), link.sinr)?.noise_std(),
            Coding::Digital { quantizer, modulation } => {
                Digital::new(quantizer, modulation, link.sinr)?.noise_std()
            }
        };
        Ok(update.sigma().hypot(noise_std))
    }

    /// Sends the updates of devices that are on the air at the same time.
    fn send_group(
        &self,
        sent: Vec<PrivateUpdate>,
        links: &Links,
        group: &[Link],
        rng: &mut dyn Rng,
    ) -> Result<Vec<Arrival>, UplinkError> {
        let devices: Vec<u32> = group.iter().map(|link| link.device).collect();
        let signal = Signal {
            channels: links.channels_of(&devices),
            powers: links.powers_of(&devices),
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
        let sigmas = sent.iter().zip(group).map(|(update, link)| self.sigma(update, link));
        let sigmas: Vec<f64> = sigmas.collect::<Result<_, _>>()?;
        let mut gradients: Vec<Vec<f32>> =
            sent.into_iter().map(PrivateUpdate::into_gradient).collect();
        let reports = signal.transmit(&mut gradients, rng)?;
        let received = devices.into_iter().zip(gradients).zip(sigmas).zip(reports);
        let arrivals = received.map(|(((device, gradient), sigma), report)| Arrival {
            received: Received { device, gradient, sigma },
            cut: report.cut,
        });
        Ok(arrivals.collect())
    }
}

impl Superposed for Baseband {
    fn coding(&self) -> Coding {
        self.coding
    }

    fn send(
        &self,
        updates: Vec<PrivateUpdate>,
        links: &Links,
        on_air: &[Link],
        rng: &mut dyn Rng,
    ) -> Result<Vec<Arrival>, UplinkError> {
        let together = match self.access {
            Access::Noma => on_air.len().max(1),
            Access::Orthogonal => 1,
        };
        let mut arrivals = Vec::with_capacity(updates.len());
        let mut updates = updates.into_iter();
        for group in on_air.chunks(together) {
            let sent = updates.by_ref().take(group.len()).collect();
            arrivals.extend(self.send_group(sent, links, group, rng)?);
        }
        Ok(arrivals)
    }
}
