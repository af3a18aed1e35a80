//! `[radio]` and `[transmit]`.

use lapa_wireless::fading::Fading;
use lapa_wireless::noma::{Receiver, SicOrder};
use lapa_wireless::ser::Modulation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UplinkConfig;

/// Power of a device, where it may send with so much.
pub(crate) const POWER_W: f64 = 0.075;

/// Places of the devices, and the channel between them and the base station. `lapa link` shows the
/// links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Radio {
    /// Position of the base station, [x, y, z] in meters.
    #[schemars(inner(range(min = -1e6, max = 1e6)))]
    pub base_station: [f64; 3],
    /// Places of the devices.
    pub places: Places,
    /// Antennas N_a of the base station, half a wavelength apart.
    #[schemars(range(min = 1, max = 1024))]
    pub antennas: u32,
    /// Carrier frequency f_c.
    #[schemars(range(min = 1e3, max = 1e12))]
    pub carrier_hz: f64,
    /// Path loss exponent; 2 is free space.
    #[schemars(range(min = 1, max = 10))]
    pub path_loss_exponent: f64,
    /// Antenna gain of the base station in dBi.
    #[schemars(range(min = -100, max = 100))]
    pub base_gain_dbi: f64,
    /// Antenna gain of a device in dBi.
    #[schemars(range(min = -100, max = 100))]
    pub device_gain_dbi: f64,
    /// Noise power at each antenna in watts. The paper prints 1e-3, with which no device is heard.
    #[schemars(range(min = 1e-25, max = 1))]
    pub noise_power_w: f64,
    /// Variation of the antennas' coefficients.
    pub fading: Fading,
    /// Rounds for which fading stays the same; 0 means for the whole run.
    pub redraw_every: u32,
}

impl Default for Radio {
    /// The paper's Section V-A. Noise is −100 dBm: the paper prints 10⁻³ W, at which the best device
    /// has an SNR of −70 dB.
    fn default() -> Self {
        let y = [-5.0, 5.0];
        Self {
            base_station: [-50.0, 0.0, 10.0],
            places: Places::Regions(vec![
                RegionSpec { x: [-10.0, 0.0], y, devices: 7 },
                RegionSpec { x: [10.0, 20.0], y, devices: 8 },
            ]),
            antennas: 15,
            carrier_hz: 915e6,
            path_loss_exponent: 3.76,
            base_gain_dbi: 5.0,
            device_gain_dbi: 0.0,
            noise_power_w: 1e-13,
            fading: Fading::Rayleigh,
            redraw_every: 0,
        }
    }
}

/// Places of the devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Places {
    /// Position of each device, [x, y, z] in meters; instead of regions.
    Positions(
        #[schemars(
            length(min = 1),
            inner(inner(range(min = -1e6, max = 1e6))),
            extend("examples" = [[[0.0, 0.0, 0.0]]])
        )]
        Vec<[f64; 3]>,
    ),
    /// Rectangles on the ground, in meters. Devices are dealt to them at random, in proportion to
    /// `devices`, and placed at random inside.
    Regions(#[schemars(length(min = 1))] Vec<RegionSpec>),
}

/// A rectangle on the ground.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegionSpec {
    /// Smallest and largest x in meters.
    pub x: [f64; 2],
    /// Smallest and largest y in meters.
    pub y: [f64; 2],
    /// Devices are dealt to the regions in proportion to this number.
    pub devices: u32,
}

/// Transmission of updates, its power and its receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Transmit {
    /// Transmission of updates.
    pub uplink: UplinkConfig,
    /// Transmit power in watts: of every device, or a list with one number for each device. The
    /// default follows control.power.
    pub power_w: Powers,
    /// The most that a device may send with, in watts.
    #[schemars(range(min = 1e-12, max = 1e6))]
    pub max_power_w: f64,
    /// Access of the devices to the channel.
    pub access: Access,
    /// Receiver that separates devices which send at once.
    pub receiver: Receiver,
    /// True assumes perfect interference cancellation, as the paper does.
    pub perfect_sic: bool,
    /// Order in which devices that send at once are decoded; without effect where no interference is
    /// left.
    pub sic_order: SicOrder,
    /// Public scale of updates that are sent as amplitudes.
    pub scale: Scale,
    /// Modulation of digital symbols, to which symbol error rates refer.
    pub modulation: ModulationName,
    /// Symbols per second; airtime and energy go by it.
    #[schemars(range(min = 1, max = 1e12))]
    pub symbol_rate_hz: f64,
}

impl Default for Transmit {
    /// The paper names no powers. With these half the devices pass a symbol error rate of 10⁻²
    /// (lapa-wireless/tests/paper_setting.rs). The symbol rate is our choice.
    fn default() -> Self {
        Self {
            uplink: UplinkConfig::default(),
            power_w: Powers::All(POWER_W),
            max_power_w: 0.3,
            access: Access::default(),
            receiver: Receiver::Matched,
            perfect_sic: true,
            sic_order: SicOrder::default(),
            scale: Scale::default(),
            modulation: ModulationName::default(),
            symbol_rate_hz: 1e6,
        }
    }
}

/// Access of the devices to the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// All devices at once, separated by the receiver (the paper's NOMA). They share one receiver
    /// noise.
    #[default]
    Noma,
    /// One after the other: no interference, noise of its own for each, K times the airtime.
    Orthogonal,
}

/// Public scale c of updates that are sent as amplitudes: an update g̃ is sent as g̃/c.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// For the noise of the update itself: all power is used, and the receiver's noise on the
    /// gradient is larger while there is artificial noise.
    #[default]
    PerRelease,
    /// One scale, for the most noise that is expected: the receiver's noise on the gradient is
    /// constant, as in the paper. An update with more noise has its own scale, to keep to its power.
    Fixed(FixedScale),
    /// One scale of 1: coordinates are sent as they are, with the power that they happen to have, as
    /// Section II-B prints s_k. An update of more than all power has its own scale, to keep to it.
    Unit,
}

/// Parameters of a fixed scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FixedScale {
    /// Most noise that the scale makes room for, in units of the largest noise of round 1. A run warns
    /// of a release that needs more.
    #[schemars(range(min = 1, max = 1000))]
    pub room: f64,
}

impl Default for FixedScale {
    /// LAPA asks for up to 4.4 times the noise of round 1 in `experiments/paper/printed.toml`.
    fn default() -> Self {
        Self { room: 5.0 }
    }
}

/// The power of all devices, or of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Powers {
    /// The same for all, in watts.
    All(#[schemars(range(min = 0, max = 1e6))] f64),
    /// One for each device, in watts.
    Each(#[schemars(length(min = 1), inner(range(min = 0, max = 1e6)))] Vec<f64>),
}

impl Powers {
    /// The power of a device.
    pub fn of(&self, device: u32) -> f64 {
        match self {
            Self::All(power) => *power,
            Self::Each(powers) => powers.get(device as usize).copied().unwrap_or_default(),
        }
    }
}

/// The modulations of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModulationName {
    /// One bit per symbol.
    Bpsk,
    /// Two bits per symbol.
    #[default]
    Qpsk,
    /// Four bits per symbol.
    #[serde(rename = "16-qam")]
    Qam16,
    /// Six bits per symbol.
    #[serde(rename = "64-qam")]
    Qam64,
    /// Eight bits per symbol.
    #[serde(rename = "256-qam")]
    Qam256,
}

impl From<ModulationName> for Modulation {
    fn from(name: ModulationName) -> Self {
        // Unwrap safety: 16, 64 and 256 are squares of powers of two.
        let qam = |order| Self::qam(order).expect("a square constellation");
        match name {
            ModulationName::Bpsk => Self::Bpsk,
            ModulationName::Qpsk => Self::Qpsk,
            ModulationName::Qam16 => qam(16),
            ModulationName::Qam64 => qam(64),
            ModulationName::Qam256 => qam(256),
        }
    }
}
