//! `[radio]`, `[transmit]` and `[aggregate]`, checked and complete.

use lapa_wireless::fading::Fading;
use lapa_wireless::noma::Receiver;
use lapa_wireless::ser::Modulation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::radio::Threshold;
use crate::station::aggregate::GroundMetric;

/// `[radio]`: where the devices are, and what lies between them and the base station.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Radio {
    /// Position of the base station, [x, y, z] in meters.
    pub base_station: [f64; 3],
    /// Position of each device, [x, y, z] in meters; absent with `regions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<Vec<[f64; 3]>>,
    /// Antennas of the base station, N_a.
    pub antennas: u32,
    /// Carrier frequency f_c.
    pub carrier_hz: f64,
    /// Path loss exponent P.
    pub path_loss_exponent: f64,
    /// Antenna gain of the base station, G_BS.
    pub base_gain_dbi: f64,
    /// Antenna gain of a device, G_D.
    pub device_gain_dbi: f64,
    /// Noise power at each antenna, σ_n².
    pub noise_power_w: f64,
    /// How the antennas' coefficients vary.
    pub fading: Fading,
    /// Rounds for which fading stays the same; 0 means all.
    pub redraw_every: u32,
    /// Rectangles in which devices are placed; absent with `positions`. (Last, as TOML wants it.)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<Vec<RegionSpec>>,
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

/// `[transmit]`: how updates are sent, with which power, and how they are decoded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transmit {
    /// How updates are sent.
    pub uplink: UplinkName,
    /// Transmit power |p_k|².
    pub power_w: Powers,
    /// The most that a device may send with, P_0.
    pub max_power_w: f64,
    /// Who sends when.
    pub access: Access,
    /// How the base station separates devices that send at once.
    pub receiver: Receiver,
    /// Whether interference is taken to be cancelled without a rest.
    pub perfect_sic: bool,
    /// What symbol error rates are about, and what the digital uplink sends.
    pub modulation: ModulationName,
    /// Symbols per second.
    pub symbol_rate_hz: f64,
    /// `signal`: what the symbols carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<SymbolKind>,
    /// Digital symbols: bits per coordinate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<u32>,
    /// Digital symbols: coordinates are quantized from −range to range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<f64>,
}

impl Transmit {
    /// Whether coordinates are sent as amplitudes, so that the receiver's noise is on them.
    pub fn is_analog(&self) -> bool {
        match self.uplink {
            UplinkName::Analog => true,
            UplinkName::Signal => self.symbols == Some(SymbolKind::Analog),
            UplinkName::Ideal | UplinkName::Digital => false,
        }
    }
}

/// How updates are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UplinkName {
    /// Every value arrives as it was sent.
    #[default]
    Ideal,
    /// A coordinate is an amplitude; it arrives with the receiver's noise.
    Analog,
    /// Coordinates are quantized to bits; symbols err at the link's rate.
    Digital,
    /// Baseband symbols of all devices are superposed and decoded one by one: slow and exact.
    Signal,
}

/// What the symbols of the signal uplink carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SymbolKind {
    /// Amplitudes, as analog.
    #[default]
    Analog,
    /// Bits, as digital.
    Digital,
}

/// Who sends when.
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

/// The power of all devices, or of each.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Powers {
    /// The same for all, in watts.
    All(f64),
    /// One for each device, in watts.
    Each(Vec<f64>),
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

/// `[aggregate]`: whom the base station listens to, and with which weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aggregate {
    /// How devices are weighted.
    pub rule: Rule,
    /// `wasserstein`: the distance between labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<GroundMetric>,
    /// `wasserstein`: distances below this count as this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// `noise-aware`: what noise counts beside labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_weight: Option<f64>,
    /// `wasserstein` and `noise-aware`: how label histograms reach the base station.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histograms: Option<Histograms>,
    /// `noisy` histograms: their share of each device's budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram_share: Option<f64>,
    /// Only devices with at most this symbol error rate send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ser_threshold: Option<f64>,
    /// Only devices with at least this SINR send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinr_threshold_db: Option<f64>,
    /// What happens in a round without a device that may send.
    pub none_selected: NoneSelected,
}

impl Aggregate {
    /// Which links are good enough.
    pub fn threshold(&self) -> Threshold {
        match (self.ser_threshold, self.sinr_threshold_db) {
            (Some(ser), _) => Threshold::Ser(ser),
            (None, Some(sinr)) => Threshold::SinrDb(sinr),
            (None, None) => Threshold::None,
        }
    }
}

/// How devices are weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// By their numbers of samples.
    #[default]
    Fedavg,
    /// By samples and the angle between a device's update and the mean one (the paper's BEDA).
    Fedadp,
    /// By samples and how far a device's labels are from all devices' labels (the paper's rule).
    Wasserstein,
    /// So that labels are mixed as over all devices and little noise is left.
    NoiseAware,
}

impl Rule {
    /// Whether weights go by label histograms.
    pub fn reads_labels(self) -> bool {
        match self {
            Self::Fedavg | Self::Fedadp => false,
            Self::Wasserstein | Self::NoiseAware => true,
        }
    }
}

/// How label histograms reach the base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Histograms {
    /// Once, before round 1, with noise that is charged to each device's budget.
    Noisy,
    /// Exact, and declared to be no secret: the guarantee does not cover labels.
    Public,
    /// Exact, as in the paper: epsilon is infinite.
    Exact,
}

/// What happens in a round in which no device has a link that is good enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoneSelected {
    /// The model stays as it is.
    #[default]
    Skip,
    /// The run ends with an error.
    Error,
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
