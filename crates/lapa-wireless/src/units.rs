//! Units as types: a number of decibels cannot be taken for a number of watts.

/// Power in watts.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Watt(pub f64);

/// Power in decibels above a milliwatt.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Dbm(pub f64);

/// A ratio of powers in decibels.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Db(pub f64);

/// Frequency, or symbols per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Hertz(pub f64);

/// Length in meters.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Meter(pub f64);

/// Time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Second(pub f64);

/// Energy in joules.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Joule(pub f64);

impl Db {
    /// 10·log₁₀ of a ratio of powers; −∞ for 0.
    pub fn of(ratio: f64) -> Self {
        Self(10.0 * ratio.log10())
    }

    /// The ratio of powers.
    pub fn ratio(self) -> f64 {
        10f64.powf(self.0 / 10.0)
    }
}

impl From<Watt> for Dbm {
    fn from(power: Watt) -> Self {
        Self(Db::of(power.0 * 1e3).0)
    }
}

impl From<Dbm> for Watt {
    fn from(power: Dbm) -> Self {
        Self(1e-3 * Db(power.0).ratio())
    }
}

impl std::ops::Mul<Second> for Watt {
    type Output = Joule;

    fn mul(self, time: Second) -> Joule {
        Joule(self.0 * time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_conversions_hold() {
        for (watt, dbm) in [(1.0, 30.0), (1e-3, 0.0), (1e-13, -100.0), (2.0, 33.010_299_956_639_81)]
        {
            assert!((Dbm::from(Watt(watt)).0 - dbm).abs() < 1e-12);
            assert!((Watt::from(Dbm(dbm)).0 / watt - 1.0).abs() < 1e-12);
        }
        assert!((Db::of(2.0).0 - 3.010_299_956_639_812).abs() < 1e-12);
        assert_eq!(Db::of(0.0), Db(f64::NEG_INFINITY));
        assert_eq!(Watt(2.0) * Second(3.0), Joule(6.0));
    }
}
