//! Uplink digital: coordinates are quantized to bits.

use lapa_wireless::ser::Modulation;
use lapa_wireless::uplink::{Coding, Digital, DigitalConfig, Quantizer, UplinkError};
use rand::Rng;

use super::{Arrival, BuildUplink, PerLink, Uplink};
use crate::device::PrivateUpdate;
use crate::radio::Link;
use crate::radio::settings::Transmit;

impl BuildUplink for DigitalConfig {
    fn build(&self, transmit: &Transmit) -> Result<Uplink, UplinkError> {
        let quantizer = Quantizer::new(self.bits, self.range)?;
        let modulation = transmit.modulation.into();
        Ok(Uplink::PerLink(Box::new(Bits { quantizer, modulation })))
    }

    fn digital(&self) -> Option<DigitalConfig> {
        Some(*self)
    }
}

struct Bits {
    quantizer: Quantizer,
    modulation: Modulation,
}

impl PerLink for Bits {
    fn coding(&self) -> Option<Coding> {
        let Self { quantizer, modulation } = *self;
        Some(Coding::Digital { quantizer, modulation })
    }

    fn send(
        &self,
        update: PrivateUpdate,
        link: &Link,
        rng: &mut dyn Rng,
    ) -> Result<Arrival, UplinkError> {
        let digital = Digital::new(self.quantizer, self.modulation, link.sinr)?;
        let noise_std = digital.noise_std();
        Ok(Arrival::new(update, link, noise_std, |gradient| digital.transmit(gradient, rng).cut))
    }
}
