//! The links of the devices: public numbers that follow from positions, fading and power.

use lapa_wireless::OutOfRange;
use lapa_wireless::channel::Channels;
use lapa_wireless::fading::Fading;
use lapa_wireless::noma::{Noma, NomaError};
use lapa_wireless::path_loss::PathLoss;
use lapa_wireless::ser::Modulation;
use lapa_wireless::topology::{Placement, Position, Region, Topology, TopologyError};
use lapa_wireless::units::{Db, Hertz, Meter, Watt};

use super::settings::{Access, Places, Powers};
use super::{Setting, Threshold};
use crate::seed::{Purpose, stream};

/// −200 dB: below it nothing is heard, and amplitudes would arrive with noise out of all range.
const LEAST_SINR: f64 = 1e-20;

/// Most channel coefficients of the devices that send in a round: 1 GiB of complex numbers.
const MOST_COEFFICIENTS: u64 = 1 << 26;
/// Bytes of a complex number.
const COEFFICIENT: u64 = 16;
const GIB: u64 = 1 << 30;

/// Invalid links.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Superposed signals without channels.
    #[error("an uplink that receives all devices together needs their links")]
    NoLinks,
    /// More channel coefficients than memory should hold.
    #[error(
        "{devices} devices that send in one round, with `radio.antennas` = {antennas}, make {} channel \
         coefficients, which take {:.1} GiB: at most {MOST_COEFFICIENTS} ({} GiB) are allowed; lower \
         run.participation (`lapa link` takes all devices), the number of devices or radio.antennas",
        devices * antennas,
        (devices * antennas * COEFFICIENT) as f64 / GIB as f64,
        MOST_COEFFICIENTS * COEFFICIENT / GIB
    )]
    TooMany {
        /// Devices that send.
        devices: u64,
        /// Antennas of the base station.
        antennas: u64,
    },
    /// Devices cannot be placed.
    #[error("[radio]: {0}")]
    Topology(#[from] TopologyError),
    /// Path loss has no value.
    #[error("[radio]: {0}")]
    PathLoss(#[from] OutOfRange),
    /// The receiver cannot separate the devices.
    #[error("[transmit]: {0}")]
    Noma(#[from] NomaError),
}

/// The link of one device in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// The device.
    pub device: u32,
    /// Transmit power |p_k|².
    pub power: Watt,
    /// p_k²‖h_k‖²/σ_n²: what the receiver's noise alone leaves.
    pub snr: f64,
    /// Signal to interference and noise after the receiver.
    pub sinr: f64,
    /// Symbol error rate at that SINR.
    pub ser: f64,
    /// Variance of the receiver's noise on a real coordinate, for amplitudes of unit power:
    /// ν = σ_n²/(2p_k²‖h_k‖²), or twice that with `transmit.analog.variance` = "full".
    pub receiver_noise: f64,
}

impl Link {
    /// The link of an uplink without radio: nothing is lost.
    pub fn ideal(device: u32) -> Self {
        let clear = f64::INFINITY;
        Self { device, power: Watt(0.0), snr: clear, sinr: clear, ser: 0.0, receiver_noise: 0.0 }
    }

    /// True if the link is good enough. One of which nothing arrives never is.
    pub fn passes(&self, threshold: &Threshold) -> bool {
        self.sinr >= LEAST_SINR && threshold.passes(self.sinr, self.ser)
    }
}

/// The error with the number of the device in place of its place in the list.
fn of_device(error: NomaError, devices: &[u32]) -> NomaError {
    let named = |place: usize| devices.get(place).map_or(place, |&device| device as usize);
    match error {
        NomaError::Power { device, power } => NomaError::Power { device: named(device), power },
        NomaError::Snr { device, snr } => NomaError::Snr { device: named(device), snr },
        NomaError::RankDeficient { device, undecoded, antennas } => {
            NomaError::RankDeficient { device: named(device), undecoded, antennas }
        }
        other => other,
    }
}

/// Positions of an experiment's devices, and their channels.
pub struct Links {
    seed: u64,
    topology: Topology,
    path_loss: PathLoss,
    fading: Fading,
    redraw_every: u32,
    powers: Powers,
    noma: Noma,
    modulation: Modulation,
    /// Part of the receiver's noise that falls on a coordinate.
    noise_part: f64,
    antennas: usize,
    /// Number of the channels' draw.
    redrawn: u64,
}

impl Links {
    /// Places the devices; channels are drawn when they are asked for.
    pub fn new(setting: Setting<'_>) -> Result<Self, LinkError> {
        let Setting { radio, transmit, devices, seed, .. } = setting;
        let position = |&[x, y, z]: &[f64; 3]| Position { x: Meter(x), y: Meter(y), z: Meter(z) };
        let base_station = position(&radio.base_station);
        let topology = match &radio.places {
            Places::Positions(positions) => {
                Topology::at(base_station, positions.iter().map(position).collect())?
            }
            Places::Regions(regions) => {
                let regions: Vec<Region> = regions
                    .iter()
                    .map(|spec| Region {
                        x: spec.x.map(Meter),
                        y: spec.y.map(Meter),
                        share: spec.devices,
                    })
                    .collect();
                let mut rng = stream(seed, Purpose::Topology, 0, 0);
                Topology::in_regions(base_station, &regions, devices, &mut rng)?
            }
        };
        Ok(Self {
            seed,
            topology,
            path_loss: PathLoss::new(
                Hertz(radio.carrier_hz),
                radio.path_loss_exponent,
                Db(radio.base_gain_dbi),
                Db(radio.device_gain_dbi),
            )?,
            fading: radio.fading,
            redraw_every: radio.redraw_every,
            powers: transmit.power_w.clone(),
            noma: Noma {
                receiver: transmit.receiver,
                // Devices that send one after the other do not disturb each other.
                perfect_sic: transmit.perfect_sic || transmit.access == Access::Orthogonal,
                order: transmit.sic_order,
                noise: Watt(radio.noise_power_w),
            },
            modulation: transmit.modulation.into(),
            noise_part: transmit.uplink.noise_part(),
            antennas: radio.antennas as usize,
            redrawn: 0,
        })
    }

    /// The links of `devices` in a round in which all of them send.
    pub fn draw(&mut self, round: u32, devices: &[u32]) -> Result<Vec<Link>, LinkError> {
        let (sending, antennas) = (devices.len() as u64, self.antennas as u64);
        if sending * antennas > MOST_COEFFICIENTS {
            return Err(LinkError::TooMany { devices: sending, antennas });
        }
        self.redrawn = match self.redraw_every {
            0 => 0,
            every => u64::from(round.saturating_sub(1) / every),
        };
        let powers = self.powers_of(devices);
        let links = self.noma.links(&self.channels_of(devices), &powers);
        let links = links.map_err(|error| of_device(error, devices))?;
        let links = devices.iter().zip(powers).zip(links);
        Ok(links
            .map(|((&device, power), link)| Link {
                device,
                power,
                snr: link.snr,
                sinr: link.sinr,
                ser: self.modulation.symbol_error_rate(link.sinr),
                receiver_noise: self.noise_part / link.snr,
            })
            .collect())
    }

    /// The powers of some devices.
    pub fn powers_of(&self, devices: &[u32]) -> Vec<Watt> {
        devices.iter().map(|&device| Watt(self.powers.of(device))).collect()
    }

    /// The channels of some devices, in the round last asked for: each is drawn from a stream of its
    /// own, so that devices that do not send cost nothing.
    pub fn channels_of(&self, devices: &[u32]) -> Channels {
        let base = &self.topology.base_station;
        let mut channels = Channels::new(devices.len(), self.antennas);
        for (row, &device) in devices.iter().enumerate() {
            let position = &self.placement(device).position;
            let gain = self.path_loss.gain(position.distance(base));
            let mut rng = stream(self.seed, Purpose::Fading, self.redrawn, device.into());
            let azimuth = position.azimuth_from(base);
            self.fading.draw(gain, azimuth, channels.of_mut(row), &mut rng);
        }
        channels
    }

    /// Separation of the devices at the base station.
    pub fn noma(&self) -> Noma {
        self.noma
    }

    /// Position of the base station.
    pub fn base_station(&self) -> Position {
        self.topology.base_station
    }

    /// Position of a device.
    pub fn placement(&self, device: u32) -> Placement {
        self.topology.devices[device as usize]
    }

    /// Distance of a device from the base station.
    pub fn distance(&self, device: u32) -> Meter {
        self.placement(device).position.distance(&self.topology.base_station)
    }

    /// The path loss of a device, above 0 where power is lost.
    pub fn path_loss(&self, device: u32) -> Db {
        self.path_loss.loss(self.distance(device))
    }

    /// ‖h_k‖² of a device, in the round last asked for.
    pub fn gain(&self, device: u32) -> f64 {
        self.channels_of(&[device]).gain(0)
    }
}
