//! Uplink analog: a coordinate is an amplitude.

use lapa_wireless::uplink::{Analog, Coding, UplinkError};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrival, BuildUplink, PerLink, Uplink};
use crate::device::PrivateUpdate;
use crate::radio::Link;
use crate::radio::settings::Transmit;

/// Parameters of uplink analog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AnalogConfig {
    /// Variance of the receiver's noise on a coordinate.
    pub variance: Variance,
}

/// Variance of the receiver's noise on a coordinate, as a part of σ²c²/(p²‖h‖²).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variance {
    /// A half: a coordinate is the real part of a symbol.
    #[default]
    Half,
    /// All of it, as the paper prints the decoded symbol (Section II-B). Basis certified counts no
    /// such noise.
    Full,
}

impl BuildUplink for AnalogConfig {
    fn build(&self, _: &Transmit) -> Result<Uplink, UplinkError> {
        Ok(Uplink::PerLink(Box::new(Amplitudes { part: self.noise_part() })))
    }

    fn noise_part(&self) -> f64 {
        match self.variance {
            Variance::Half => 0.5,
            Variance::Full => 1.0,
        }
    }

    fn is_analog(&self) -> bool {
        true
    }
}

struct Amplitudes {
    part: f64,
}

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
        // All of the noise on a coordinate is the half at half the SINR.
        let analog = Analog::new(update.scale(), link.sinr * (0.5 / self.part))?;
        Ok(Arrival::new(update, link, analog.noise_std(), |gradient| {
            analog.transmit(gradient, rng);
            0
        }))
    }
}
