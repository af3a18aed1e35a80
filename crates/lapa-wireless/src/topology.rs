//! Positions of the base station and the devices.

use std::fmt::{self, Display};

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use thiserror::Error;

use crate::units::Meter;

/// A point; z is the height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Along the x axis.
    pub x: Meter,
    /// Along the y axis.
    pub y: Meter,
    /// Height.
    pub z: Meter,
}

impl Position {
    /// The length of the straight line to another point.
    pub fn distance(&self, other: &Self) -> Meter {
        let [x, y, z] = self.minus(other);
        Meter(x.hypot(y).hypot(z))
    }

    /// The angle from the x axis at which `base` sees this point in the horizontal plane, in
    /// radians from −π to π; 0 for a point right above or below.
    pub fn azimuth_from(&self, base: &Self) -> f64 {
        let [x, y, _] = self.minus(base);
        y.atan2(x)
    }

    fn minus(&self, other: &Self) -> [f64; 3] {
        [self.x.0 - other.x.0, self.y.0 - other.y.0, self.z.0 - other.z.0]
    }

    fn is_finite(&self) -> bool {
        [self.x, self.y, self.z].iter().all(|meter| meter.0.is_finite())
    }
}

impl Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {}) m", self.x.0, self.y.0, self.z.0)
    }
}

/// A rectangle on the ground, at height 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Limits along the x axis.
    pub x: [Meter; 2],
    /// Limits along the y axis.
    pub y: [Meter; 2],
    /// Number of devices here, relative to the shares of the other regions.
    pub share: u32,
}

/// Place of one device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// Its place.
    pub position: Position,
    /// Its region, counted from 0, if it was placed by region.
    pub region: Option<u32>,
}

/// The base station and all devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The base station.
    pub base_station: Position,
    /// The devices; no device stands where the base station is.
    pub devices: Vec<Placement>,
}

/// Error of a topology.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TopologyError {
    /// Nobody is there.
    #[error("devices = 0: expected at least 1")]
    NoDevices,
    /// There is nowhere to place a device.
    #[error("none of {0} regions has devices: expected at least one region with 1 device or more")]
    NoShare(usize),
    /// A region is no rectangle.
    #[error(
        "region {region} spans {from} m to {to} m along {axis}: expected finite numbers in increasing order"
    )]
    Bounds {
        /// Its index, from 0.
        region: usize,
        /// The axis.
        axis: char,
        /// Its first end.
        from: f64,
        /// Its second end.
        to: f64,
    },
    /// The base station is nowhere.
    #[error("base station at {0}: expected finite numbers")]
    BaseStation(Position),
    /// A device is where the base station is, or has no finite distance from it.
    #[error(
        "device {device} at {position} is {distance} m from the base station: expected a finite distance above 0"
    )]
    Distance {
        /// Its index, from 0.
        device: usize,
        /// Its place.
        position: Position,
        /// Its distance in meters.
        distance: f64,
    },
}

impl Topology {
    /// Devices at given places, in that order.
    pub fn at(base_station: Position, positions: Vec<Position>) -> Result<Self, TopologyError> {
        let devices =
            positions.into_iter().map(|position| Placement { position, region: None }).collect();
        Self::checked(base_station, devices)
    }

    /// Devices spread over regions in proportion to their shares (whole devices by largest
    /// remainder, the earlier region first), uniformly within each. Which device lives in which
    /// region is random.
    pub fn in_regions<R: Rng + ?Sized>(
        base_station: Position,
        regions: &[Region],
        devices: u32,
        rng: &mut R,
    ) -> Result<Self, TopologyError> {
        for (index, region) in regions.iter().enumerate() {
            for (axis, [from, to]) in [('x', region.x), ('y', region.y)] {
                let (from, to) = (from.0, to.0);
                if !(from.is_finite() && to.is_finite() && from <= to) {
                    return Err(TopologyError::Bounds { region: index, axis, from, to });
                }
            }
        }
        if regions.iter().all(|region| region.share == 0) {
            return Err(TopologyError::NoShare(regions.len()));
        }
        let mut homes: Vec<u32> = split(devices, regions)
            .into_iter()
            .zip(0..)
            .flat_map(|(count, region)| std::iter::repeat_n(region, count as usize))
            .collect();
        homes.shuffle(rng);
        let devices = homes
            .into_iter()
            .map(|home| {
                let Region { x, y, .. } = regions[home as usize];
                let (x, y) = (uniform(x, rng), uniform(y, rng));
                Placement { position: Position { x, y, z: Meter(0.0) }, region: Some(home) }
            })
            .collect();
        Self::checked(base_station, devices)
    }

    fn checked(base_station: Position, devices: Vec<Placement>) -> Result<Self, TopologyError> {
        if !base_station.is_finite() {
            return Err(TopologyError::BaseStation(base_station));
        }
        if devices.is_empty() {
            return Err(TopologyError::NoDevices);
        }
        for (device, Placement { position, .. }) in devices.iter().enumerate() {
            let distance = position.distance(&base_station).0;
            if !(distance > 0.0 && distance.is_finite()) {
                return Err(TopologyError::Distance { device, position: *position, distance });
            }
        }
        Ok(Self { base_station, devices })
    }
}

/// Numbers of devices of the regions.
fn split(devices: u32, regions: &[Region]) -> Vec<u32> {
    let total: u64 = regions.iter().map(|region| u64::from(region.share)).sum();
    let parts = regions.iter().map(|region| u64::from(devices) * u64::from(region.share));
    let mut counts: Vec<u32> = parts.clone().map(|part| (part / total) as u32).collect();
    let mut by_remainder: Vec<(u64, usize)> = parts.map(|part| part % total).zip(0..).collect();
    by_remainder.sort_by_key(|&(remainder, region)| (std::cmp::Reverse(remainder), region));
    let left = devices - counts.iter().sum::<u32>();
    for (_, region) in &by_remainder[..left as usize] {
        counts[*region] += 1;
    }
    counts
}

/// A weighted mean, for the difference of the ends may be more than f64 holds.
fn uniform<R: Rng + ?Sized>([from, to]: [Meter; 2], rng: &mut R) -> Meter {
    let share: f64 = rng.random();
    Meter(((1.0 - share) * from.0 + share * to.0).clamp(from.0, to.0))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha12Rng;

    use super::*;

    /// The paper's base station (section V-A): 10 m up, 50 m beside the origin.
    fn paper_base_station() -> Position {
        point(-50.0, 0.0, 10.0)
    }

    /// Regions I and II of the paper (section V-A), of 7 and 8 devices.
    fn paper_regions() -> [Region; 2] {
        [region([-10.0, 0.0], [-5.0, 5.0], 7), region([10.0, 20.0], [-5.0, 5.0], 8)]
    }

    fn point(x: f64, y: f64, z: f64) -> Position {
        Position { x: Meter(x), y: Meter(y), z: Meter(z) }
    }

    fn region(x: [f64; 2], y: [f64; 2], share: u32) -> Region {
        Region { x: x.map(Meter), y: y.map(Meter), share }
    }

    fn paper(devices: u32, seed: u64) -> Topology {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        Topology::in_regions(paper_base_station(), &paper_regions(), devices, &mut rng).unwrap()
    }

    fn within([from, to]: [Meter; 2], place: Meter) -> bool {
        from <= place && place <= to
    }

    fn counts(topology: &Topology, regions: usize) -> Vec<u32> {
        let mut counts = vec![0; regions];
        for device in &topology.devices {
            counts[device.region.unwrap() as usize] += 1;
        }
        counts
    }

    #[test]
    fn distances_and_azimuths_are_those_of_known_triangles() {
        let base = point(1.0, 2.0, 3.0);
        assert_eq!(point(3.0, 5.0, 9.0).distance(&base), Meter(7.0));
        assert_eq!(base.distance(&point(3.0, 5.0, 9.0)), Meter(7.0));
        for (x, y, azimuth) in [
            (1.0, 0.0, 0.0),
            (1.0, 1.0, FRAC_PI_4),
            (0.0, 2.0, FRAC_PI_2),
            (-3.0, 0.0, PI),
            (0.0, -1.0, -FRAC_PI_2),
            (0.0, 0.0, 0.0),
        ] {
            let device = point(1.0 + x, 2.0 + y, -8.0);
            assert!((device.azimuth_from(&base) - azimuth).abs() < 1e-15);
        }
    }

    #[test]
    fn the_paper_has_seven_and_eight_devices_inside_their_regions() {
        let mut first_homes = [0; 2];
        for seed in 0..200 {
            let topology = paper(15, seed);
            assert_eq!(topology, paper(15, seed));
            assert_eq!(counts(&topology, 2), [7, 8]);
            for device in &topology.devices {
                let home = &paper_regions()[device.region.unwrap() as usize];
                assert!(within(home.x, device.position.x) && within(home.y, device.position.y));
                assert_eq!(device.position.z, Meter(0.0));
            }
            first_homes[topology.devices[0].region.unwrap() as usize] += 1;
        }
        // Binomial(200, 7/15): 35 more or fewer than 93.3 has a chance of α < 1e-6.
        assert!((59..=128).contains(&first_homes[0]), "{first_homes:?}");
    }

    /// α = 1e-6: the mean of n uniform numbers on [−1, 1] has standard deviation 1/√(3n), that of
    /// their squares 2/√(45n).
    #[test]
    fn a_hundred_thousand_devices_are_split_by_share_and_uniform() {
        let topology = paper(100_000, 1);
        assert_eq!(counts(&topology, 2), [46_667, 53_333]);
        for (home, region) in paper_regions().iter().enumerate() {
            for (axis, place) in [
                (region.x, (|p: &Position| p.x.0) as fn(&Position) -> f64),
                (region.y, |p: &Position| p.y.0),
            ] {
                let scaled: Vec<f64> = topology
                    .devices
                    .iter()
                    .filter(|device| device.region == Some(home as u32))
                    .map(|device| (place(&device.position) - axis[0].0) / 5.0 - 1.0)
                    .collect();
                let n = scaled.len() as f64;
                let mean = scaled.iter().sum::<f64>() / n;
                let square = scaled.iter().map(|s| s * s).sum::<f64>() / n;
                assert!(mean.abs() < 4.9 * (1.0 / (3.0 * n)).sqrt(), "{mean}");
                assert!((square - 1.0 / 3.0).abs() < 4.9 * 2.0 / (45.0 * n).sqrt(), "{square}");
            }
        }
    }

    #[test]
    fn given_places_are_kept() {
        let places = vec![point(0.0, 1.0, 2.0), point(-50.0, 0.0, 0.0)];
        let topology = Topology::at(paper_base_station(), places.clone()).unwrap();
        let kept: Vec<Position> = topology.devices.iter().map(|d| d.position).collect();
        assert_eq!(kept, places);
        assert!(topology.devices.iter().all(|device| device.region.is_none()));
    }

    #[test]
    fn bad_input_is_named() {
        let base = paper_base_station();
        let place = |regions: &[Region], devices| {
            let mut rng = ChaCha12Rng::seed_from_u64(0);
            Topology::in_regions(base, regions, devices, &mut rng).unwrap_err().to_string()
        };
        let unit = [0.0, 1.0];
        assert_eq!(place(&paper_regions(), 0), "devices = 0: expected at least 1");
        assert!(place(&[], 5).starts_with("none of 0 regions has devices: "));
        assert!(place(&[region(unit, unit, 0)], 5).starts_with("none of 1 regions has devices: "));
        assert!(
            place(&[region(unit, unit, 1), region(unit, [2.0, 1.0], 0)], 5)
                .starts_with("region 1 spans 2 m to 1 m along y")
        );
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for x in [[bad, 1.0], [0.0, bad]] {
                assert!(place(&[region(x, unit, 1)], 5).starts_with("region 0 spans "));
            }
        }
        // Farther apart than f64 can tell.
        let wide = [-f64::MAX, f64::MAX];
        assert!(place(&[region(wide, wide, 1)], 100).contains("is inf m from the base station"));

        let at = |base, device| Topology::at(base, vec![device]).unwrap_err();
        assert_eq!(
            at(base, base).to_string(),
            "device 0 at (-50, 0, 10) m is 0 m from the base station: expected a finite distance \
             above 0"
        );
        for bad in [f64::NAN, f64::INFINITY] {
            let nowhere = point(0.0, bad, 0.0);
            assert!(matches!(at(base, nowhere), TopologyError::Distance { device: 0, .. }));
            assert!(matches!(at(nowhere, base), TopologyError::BaseStation { .. }));
        }
        assert_eq!(Topology::at(base, vec![]), Err(TopologyError::NoDevices));
    }

    proptest! {
        /// Largest remainder: a region's count is its exact part rounded down or up, and of two
        /// regions the one with the larger fraction is not rounded down when the other is
        /// rounded up.
        #[test]
        fn every_device_is_in_its_region_and_every_region_has_its_part(
            corners in prop::collection::vec((-1e3..1e3f64, 0.0..50.0f64, any::<u32>()), 1..8),
            small_shares in any::<bool>(),
            devices in 1..3000u32,
            seed in any::<u64>(),
        ) {
            let regions: Vec<Region> = corners
                .iter()
                .map(|&(from, side, share)| {
                    let share = if small_shares { share % 4 } else { share };
                    region([from, from + side], [-from, side - from], share)
                })
                .collect();
            let total: u64 = regions.iter().map(|r| u64::from(r.share)).sum();
            prop_assume!(total > 0);
            let mut rng = ChaCha12Rng::seed_from_u64(seed);
            let topology =
                Topology::in_regions(paper_base_station(), &regions, devices, &mut rng).unwrap();
            prop_assert_eq!(topology.devices.len(), devices as usize);
            for device in &topology.devices {
                let home = &regions[device.region.unwrap() as usize];
                prop_assert!(within(home.x, device.position.x));
                prop_assert!(within(home.y, device.position.y));
            }
            let mut smallest_up = u64::MAX;
            let mut largest_down = 0;
            for (count, region) in counts(&topology, regions.len()).into_iter().zip(&regions) {
                let part = u64::from(devices) * u64::from(region.share);
                let whole = part / total;
                prop_assert!((whole..=whole + 1).contains(&u64::from(count)));
                if u64::from(count) > whole {
                    smallest_up = smallest_up.min(part % total);
                } else {
                    largest_down = largest_down.max(part % total);
                }
            }
            prop_assert!(largest_down <= smallest_up);
        }
    }
}
