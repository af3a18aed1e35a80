//! Uplink analog: a coordinate is an amplitude.

use lapa_wireless::uplink::{Analog, Coding, UplinkError};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, BuildUplink, PerLink, Uplink};
use crate::config::Transmit;
use crate::device::PrivateUpdate;
use crate::radio::Link;

/// Parameters of uplink analog: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalogConfig {}

impl BuildUplink for AnalogConfig {
    fn build(&self, _: &Transmit) -> Result<Uplink, UplinkError> {
        Ok(Uplink::PerLink(Box::new(Amplitudes)))
    }

    fn is_analog(&self) -> bool {
        true
    }
}

struct Amplitudes;

impl PerLink for Amplitudes {
    fn coding(&self) -> Option<Coding> {
        Some(Coding::Analog)
    }

    fn send(
        &self,
        update: PrivateUpdate,
        link: &Link,
        rng: &mut dyn Rng,
    ) -> Result<Arrival, UplinkError> {
        let analog = Analog::new(update.scale(), link.sinr)?;
        Ok(Arrival::new(update, link, analog.noise_std(), |gradient| {
            analog.transmit(gradient, rng);
            0
        }))
    }
}
