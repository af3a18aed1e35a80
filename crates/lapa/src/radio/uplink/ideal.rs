//! Uplink ideal: every value arrives as it was sent.

use lapa_wireless::uplink::{Coding, UplinkError};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, BuildUplink, PerLink, Uplink};
use crate::device::PrivateUpdate;
use crate::radio::Link;
use crate::radio::settings::Transmit;

/// Parameters of uplink ideal: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdealConfig {}

impl BuildUplink for IdealConfig {
    fn build(&self, _: &Transmit) -> Result<Uplink, UplinkError> {
        Ok(Uplink::PerLink(Box::new(Ideal)))
    }

    fn is_ideal(&self) -> bool {
        true
    }
}

struct Ideal;

impl PerLink for Ideal {
    fn coding(&self) -> Option<Coding> {
        None
    }

    fn send(
        &self,
        update: PrivateUpdate,
        link: &Link,
        _: &mut dyn Rng,
    ) -> Result<Arrival, UplinkError> {
        Ok(Arrival::new(update, link, 0.0, |_| 0))
    }
}
