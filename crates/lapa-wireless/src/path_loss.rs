//! Path loss: the part of a signal that arrives over a distance.

use std::f64::consts::PI;

use crate::error::{OutOfRange, check};
use crate::units::{Db, Hertz, Meter};

/// c in meters per second.
const SPEED_OF_LIGHT: f64 = 299_792_458.0;

/// Far beyond any antenna; ratios stay far from what f64 cannot hold.
const LARGEST_GAIN: f64 = 300.0;

/// The law of a carrier, a path loss exponent and two antenna gains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLoss {
    carrier: Hertz,
    exponent: f64,
    base_gain: Db,
    device_gain: Db,
}

impl PathLoss {
    /// The carrier f_c, the exponent P, and the antenna gains G_BS and G_D over an isotropic
    /// antenna.
    pub fn new(
        carrier: Hertz,
        exponent: f64,
        base_gain: Db,
        device_gain: Db,
    ) -> Result<Self, OutOfRange> {
        for (name, value) in [("carrier", carrier.0), ("exponent", exponent)] {
            check(name, value, value > 0.0 && value.is_finite(), "a finite number above 0")?;
        }
        for (name, Db(value)) in [("base_gain", base_gain), ("device_gain", device_gain)] {
            check(name, value, value.abs() <= LARGEST_GAIN, "from -300 to 300 dB")?;
        }
        Ok(Self { carrier, exponent, base_gain, device_gain })
    }

    /// The paper's (section V-A): 915 MHz, P = 3.76, 5 dBi at the base station, 0 dBi at devices.
    pub fn paper() -> Self {
        Self { carrier: Hertz(915e6), exponent: 3.76, base_gain: Db(5.0), device_gain: Db(0.0) }
    }

    /// Received over sent power, G_BS·G_D·(c/(4πf_c d))^P (the paper's PL_DB, eq. (39)).
    ///
    /// Differs from the paper: nearer than c/(4πf_c), 2.6 cm at 915 MHz, where the printed power
    /// would rise without bound, it stays at G_BS·G_D.
    pub fn gain(&self, distance: Meter) -> f64 {
        let spread = SPEED_OF_LIGHT / self.carrier.0 / (4.0 * PI) / distance.0;
        let antennas = Db(self.base_gain.0 + self.device_gain.0).ratio();
        antennas * spread.min(1.0).powf(self.exponent)
    }

    /// The gain as a loss, −10·log₁₀: a positive number of decibels where less arrives than was
    /// sent.
    pub fn loss(&self, distance: Meter) -> Db {
        Db(-Db::of(self.gain(distance)).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 1e-13
    }

    /// From the base station of the paper to the origin it is √2600 m; worked out with 40 digits.
    #[test]
    fn hand_computed_values_hold() {
        let paper = PathLoss::paper();
        assert!(close(paper.gain(Meter(2600f64.sqrt())), 1.332_672_838_661_542_8e-12));
        assert!(close(paper.loss(Meter(2600f64.sqrt())).0, 118.752_764_535_890_58));
        assert!(close(paper.gain(Meter(100.0)), 1.058_945_089_000_018_1e-13));
        assert!(close(paper.loss(Meter(100.0)).0, 129.751_265_594_039_2));
    }

    /// Free space at 2.4 GHz over 100 m: 80.05 dB (Friis).
    #[test]
    fn free_space_is_the_formula_of_friis() {
        let free = PathLoss::new(Hertz(2.4e9), 2.0, Db(0.0), Db(0.0)).unwrap();
        assert!(close(free.loss(Meter(100.0)).0, 80.052_008_056_115_5));
        let antennas = PathLoss::new(Hertz(2.4e9), 2.0, Db(3.0), Db(-1.5)).unwrap();
        assert!(close(antennas.loss(Meter(100.0)).0, 78.552_008_056_115_5));
    }

    #[test]
    fn ten_times_farther_loses_ten_times_the_exponent_in_decibels() {
        let law = PathLoss::paper();
        for distance in [0.1, 1.0, 37.0, 1e5] {
            let more = law.loss(Meter(10.0 * distance)).0 - law.loss(Meter(distance)).0;
            assert!(close(more, 37.6), "{more}");
        }
    }

    #[test]
    fn the_gain_is_bounded_near_and_0_at_infinity() {
        let law = PathLoss::paper();
        for distance in [0.0, f64::MIN_POSITIVE, 1e-3, 0.026] {
            assert_eq!(law.gain(Meter(distance)), Db(5.0).ratio());
        }
        assert!(law.gain(Meter(0.0261)) < Db(5.0).ratio());
        assert_eq!(law.gain(Meter(f64::INFINITY)), 0.0);
        assert_eq!(law.loss(Meter(f64::INFINITY)), Db(f64::INFINITY));
        for carrier in [f64::MIN_POSITIVE, f64::MAX] {
            let extreme = PathLoss::new(Hertz(carrier), 300.0, Db(300.0), Db(300.0)).unwrap();
            for distance in [0.0, f64::MIN_POSITIVE, 1.0, f64::MAX] {
                let gain = extreme.gain(Meter(distance));
                assert!((0.0..f64::MAX).contains(&gain), "{carrier} Hz, {distance} m: {gain}");
            }
        }
    }

    #[test]
    fn bad_numbers_are_named() {
        let new = |carrier, exponent, base, device| {
            PathLoss::new(Hertz(carrier), exponent, Db(base), Db(device)).map_err(|e| e.to_string())
        };
        assert_eq!(new(915e6, 3.76, 5.0, 0.0), Ok(PathLoss::paper()));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = format!("carrier = {bad}: expected a finite number above 0");
            assert_eq!(new(bad, 3.76, 5.0, 0.0), Err(error));
            assert!(new(915e6, bad, 5.0, 0.0).unwrap_err().starts_with("exponent = "));
        }
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY, 301.0] {
            assert!(new(915e6, 3.76, bad, 0.0).unwrap_err().starts_with("base_gain = "));
            assert!(new(915e6, 3.76, 5.0, bad).unwrap_err().starts_with("device_gain = "));
        }
    }
}
