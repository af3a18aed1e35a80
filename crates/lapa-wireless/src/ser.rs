//! Symbol error rates of modulations, and their inverse.

use std::f64::consts::FRAC_1_SQRT_2;
use std::fmt::{self, Display};
use std::str::FromStr;

use thiserror::Error;

/// Square constellations.
const QAM_ORDERS: [u32; 6] = [4, 16, 64, 256, 1024, 4096];

/// A constellation, Gray-coded, its symbols equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// Two symbols on one axis.
    Bpsk,
    /// Two levels on each of two axes.
    Qpsk,
    /// √M levels on each of two axes.
    Qam(QamOrder),
}

/// M, the number of symbols of a square QAM: 4, 16, 64, 256, 1024 or 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QamOrder(u32);

/// There is no such modulation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModulationError {
    /// No square QAM has this order.
    #[error("QAM order = {order}: expected 4, 16, 64, 256, 1024 or 4096")]
    Order {
        /// M
        order: u32,
    },
    /// No modulation has this name.
    #[error(
        "modulation = {name:?}: expected bpsk, qpsk or M-qam with M = 4, 16, 64, 256, 1024 or 4096"
    )]
    Name {
        /// The name.
        name: String,
    },
}

/// No SINR has this symbol error rate.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "symbol error rate = {value}: expected a number above 0 and at most {largest} for {modulation}"
)]
pub struct SerError {
    /// The rate.
    pub value: f64,
    /// The modulation.
    pub modulation: Modulation,
    /// Its rate without any signal.
    pub largest: f64,
}

impl Modulation {
    /// Square QAM with `order` symbols.
    pub fn qam(order: u32) -> Result<Self, ModulationError> {
        if QAM_ORDERS.contains(&order) {
            Ok(Self::Qam(QamOrder(order)))
        } else {
            Err(ModulationError::Order { order })
        }
    }

    /// log₂ M
    pub fn bits_per_symbol(self) -> u32 {
        match self {
            Self::Bpsk => 1,
            Self::Qpsk => 2,
            Self::Qam(QamOrder(order)) => order.ilog2(),
        }
    }

    /// 1, or 2 when both the real and the imaginary part carry bits.
    pub fn axes(self) -> u32 {
        if self == Self::Bpsk { 1 } else { 2 }
    }

    /// Levels on each axis.
    pub fn levels_per_axis(self) -> u32 {
        1 << (self.bits_per_symbol() / self.axes())
    }

    /// Q(x), the chance that the noise on one axis crosses one decision boundary, for a linear
    /// SINR γ (mean symbol energy over noise): BPSK Q(√(2γ)), QPSK Q(√γ), M-QAM Q(√(3γ/(M−1)))
    /// (Proakis and Salehi, "Digital Communications", 5th edition, section 4.3).
    ///
    /// ½ for γ ≤ 0, 0 for ∞, NaN for NaN.
    pub fn axis_error(self, sinr: f64) -> f64 {
        if sinr < 0.0 { 0.5 } else { q_function((self.scale() * sinr).sqrt()) }
    }

    /// The chance that a symbol is taken for another, for a linear SINR γ: BPSK Q, QPSK 2Q − Q²,
    /// M-QAM 4aQ − 4a²Q² with a = 1 − 1/√M and Q of [`Self::axis_error`] (ibid.).
    /// Relative precision holds in the tail.
    ///
    /// 1 − 1/M for γ ≤ 0, 0 for ∞, NaN for NaN.
    pub fn symbol_error_rate(self, sinr: f64) -> f64 {
        let one_axis = 2.0 * self.inner_share() * self.axis_error(sinr);
        if self.axes() == 1 { one_axis } else { one_axis * (2.0 - one_axis) }
    }

    /// The linear SINR with a symbol error rate over 0 and up to 1 − 1/M, which has 0.
    pub fn sinr_for(self, ser: f64) -> Result<f64, SerError> {
        let largest = self.largest_ser();
        if !(ser > 0.0 && ser <= largest) {
            return Err(SerError { value: ser, modulation: self, largest });
        }
        let a = self.inner_share();
        // The error rate of an axis, and how far it is from `a`, its largest: each keeps its
        // digits where the other has lost them.
        let (axis, missing) = if self.axes() == 1 {
            (ser, a - ser)
        } else {
            let right = (1.0 - ser).sqrt();
            (ser / (1.0 + right), (largest - ser) / (right + (1.0 - a)))
        };
        let x = upper_quantile(axis / (2.0 * a), missing / (2.0 * a));
        Ok(x * x / self.scale())
    }

    /// 1 − 1/M: a guess.
    fn largest_ser(self) -> f64 {
        1.0 - 1.0 / f64::from(1 << self.bits_per_symbol())
    }

    /// a = 1 − 1/L: a level of L has 2a neighbors on average.
    fn inner_share(self) -> f64 {
        1.0 - 1.0 / f64::from(self.levels_per_axis())
    }

    /// x²/γ for half the distance x of two levels, over the noise's standard deviation on an axis.
    fn scale(self) -> f64 {
        let levels = f64::from(self.levels_per_axis());
        6.0 / f64::from(self.axes()) / (levels * levels - 1.0)
    }
}

impl Display for Modulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bpsk => f.write_str("bpsk"),
            Self::Qpsk => f.write_str("qpsk"),
            Self::Qam(QamOrder(order)) => write!(f, "{order}-qam"),
        }
    }
}

impl FromStr for Modulation {
    type Err = ModulationError;

    fn from_str(name: &str) -> Result<Self, ModulationError> {
        let qam = || QAM_ORDERS.into_iter().map(|order| Self::Qam(QamOrder(order)));
        [Self::Bpsk, Self::Qpsk]
            .into_iter()
            .chain(qam())
            .find(|modulation| modulation.to_string() == name)
            .ok_or_else(|| ModulationError::Name { name: name.to_owned() })
    }
}

/// Q(x) = P(Z > x) for a standard normal Z.
pub fn q_function(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// The x with Q(x) = p. ∞ for p ≤ 0, −∞ for p ≥ 1, NaN for NaN.
pub fn inverse_q(p: f64) -> f64 {
    if p <= 0.0 {
        f64::INFINITY
    } else if p >= 1.0 {
        f64::NEG_INFINITY
    } else if p <= 0.5 {
        upper_quantile(p, 0.5 - p)
    } else if p > 0.5 {
        -upper_quantile(1.0 - p, p - 0.5)
    } else {
        p
    }
}

/// The x ≥ 0 with Q(x) = tail and P(0 < Z < x) = center, from the smaller of the two (they sum to
/// ½, so that the smaller one knows x better).
///
/// Bisection over all floating-point numbers: monotone in its argument whatever the last bit of
/// erfc does, and as precise where Q is subnormal as Q can be.
fn upper_quantile(tail: f64, center: f64) -> f64 {
    let is_left_of_quantile = |x: f64| {
        if center < tail {
            0.5 * libm::erf(x * FRAC_1_SQRT_2) < center
        } else {
            q_function(x) > tail
        }
    };
    // Non-negative numbers are in the order of their bits; Q(40) is 0 in floating point.
    let (mut left, mut right) = (0, 40f64.to_bits());
    while right - left > 1 {
        let middle = left + (right - left) / 2;
        if is_left_of_quantile(f64::from_bits(middle)) {
            left = middle;
        } else {
            right = middle;
        }
    }
    f64::from_bits(left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::Db;

    fn all() -> Vec<Modulation> {
        let qam = QAM_ORDERS.map(|order| Modulation::qam(order).unwrap());
        [&[Modulation::Bpsk, Modulation::Qpsk][..], &qam].concat()
    }

    fn assert_close(value: f64, expected: f64, tolerance: f64) {
        assert!((value / expected - 1.0).abs() <= tolerance, "{value:e} is not {expected:e}");
    }

    #[test]
    fn q_has_its_textbook_values() {
        for (x, q) in [
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (3.0, 0.001_349_898_031_630_094_6),
            (4.0, 3.167_124_183_311_992_4e-5),
            (6.0, 9.865_876_450_376_98e-10),
            (10.0, 7.619_853_024_160_525e-24),
            (20.0, 2.753_624_118_606_233_7e-89),
            (37.0, 5.725_571_222_524_577e-300),
        ] {
            assert_close(q_function(x), q, 1e-13);
            assert_close(q_function(-x), 1.0 - q, 1e-15);
        }
        assert_eq!(q_function(0.0), 0.5);
        assert_eq!(q_function(f64::INFINITY), 0.0);
        assert_eq!(q_function(f64::NEG_INFINITY), 1.0);
        assert!(q_function(f64::NAN).is_nan());
    }

    #[test]
    fn quantiles_have_their_textbook_values() {
        for (p, x) in [
            (0.45, 0.125_661_346_855_074_02),
            (0.25, 0.674_489_750_196_081_7),
            (1e-1, 1.281_551_565_544_600_4),
            (1e-2, 2.326_347_874_040_841),
            (1e-3, 3.090_232_306_167_813_6),
            (1e-6, 4.753_424_308_822_899),
            (1e-9, 5.997_807_015_007_686_5),
            (1e-20, 9.262_340_089_798_407),
            (1e-100, 21.273_453_560_965_326),
            (1e-300, 37.047_096_299_361_2),
        ] {
            assert_close(inverse_q(p), x, 1e-14);
        }
        // Near ½, where Q has lost its digits.
        for (center, x) in [
            (2f64.powi(-30), 2.334_479_498_333_298_3e-9),
            (2f64.powi(-50), 2.226_333_139_737_413_7e-15),
        ] {
            assert_close(inverse_q(0.5 - center), x, 1e-14);
            assert_close(inverse_q(0.5 + center), -x, 1e-14);
        }
        // Subnormal.
        assert_close(inverse_q(1e-310), 37.663_060_331_949_524, 1e-12);
        assert_eq!(inverse_q(0.5), 0.0);
        assert_eq!([inverse_q(0.0), inverse_q(-1.0)], [f64::INFINITY; 2]);
        assert_eq!([inverse_q(1.0), inverse_q(2.0)], [f64::NEG_INFINITY; 2]);
        assert!(inverse_q(f64::NAN).is_nan());
        assert!((38.0..39.0).contains(&inverse_q(f64::from_bits(1))));
    }

    /// Decibels at error rates 1e-1, 1e-2 and 1e-3, as rounded to two decimals.
    #[test]
    fn error_rates_need_their_known_decibels() {
        for (modulation, decibels) in [
            (Modulation::Bpsk, [-0.86, 4.32, 6.79]),
            (Modulation::Qpsk, [4.26, 8.22, 10.35]),
            (Modulation::qam(16).unwrap(), [12.20, 15.66, 17.63]),
            (Modulation::qam(64).unwrap(), [18.76, 22.05, 23.97]),
        ] {
            for (ser, expected) in [1e-1, 1e-2, 1e-3].into_iter().zip(decibels) {
                let Db(needed) = Db::of(modulation.sinr_for(ser).unwrap());
                assert!((needed - expected).abs() <= 0.005, "{modulation} at {ser}: {needed}");
            }
        }
    }

    /// Solved with 40 digits.
    #[test]
    fn the_inverse_is_precise_in_the_tail_and_at_the_top() {
        let top = |m: f64| 1.0 - 1.0 / m - 2f64.powi(-40);
        for (name, ser, sinr) in [
            ("bpsk", 0.45, 0.007_895_387_046_715_609),
            ("bpsk", 1e-9, 17.986_844_494_637_708),
            ("bpsk", 1e-100, 226.279_913_205_274_1),
            ("bpsk", top(2.0), 2.598_664_535_588_496_7e-24),
            ("qpsk", 0.45, 0.420_354_311_654_181_13),
            ("qpsk", 1e-9, 37.324_893_050_874_77),
            ("qpsk", top(4.0), 5.197_329_071_167_539_6e-24),
            ("16-qam", 1e-9, 190.579_207_742_287_74),
            ("16-qam", top(16.0), 4.619_848_063_234_825e-23),
            ("4096-qam", 1e-3, 16_497.164_124_141_178),
        ] {
            let modulation: Modulation = name.parse().unwrap();
            assert_close(modulation.sinr_for(ser).unwrap(), sinr, 1e-13);
        }
    }

    /// Against the printed forms with their powers and differences.
    #[test]
    fn rates_follow_the_printed_formulas() {
        for sinr in [0.0f64, 1e-3, 0.3, 1.0, 7.0, 20.0] {
            let q = q_function(sinr.sqrt());
            let bpsk = q_function((2.0 * sinr).sqrt());
            assert_close(Modulation::Bpsk.symbol_error_rate(sinr), bpsk, 1e-14);
            assert_close(Modulation::Qpsk.symbol_error_rate(sinr), 2.0 * q - q * q, 1e-14);
            assert_close(Modulation::Qpsk.axis_error(sinr), q, 1e-15);
            for order in QAM_ORDERS {
                let m = f64::from(order);
                let (a, q) = (1.0 - 1.0 / m.sqrt(), q_function((3.0 * sinr / (m - 1.0)).sqrt()));
                let qam = Modulation::qam(order).unwrap();
                let expected = 4.0 * a * q - 4.0 * a * a * q * q;
                assert_close(qam.symbol_error_rate(sinr), expected, 1e-13);
                assert_close(qam.axis_error(sinr), q, 1e-14);
            }
        }
    }

    #[test]
    fn ends_are_defined() {
        for modulation in all() {
            let largest = 1.0 - 0.5f64.powi(modulation.bits_per_symbol() as i32);
            for none in [0.0, -0.0, -1.0, f64::NEG_INFINITY] {
                assert_eq!(modulation.symbol_error_rate(none), largest);
                assert_eq!(modulation.axis_error(none), 0.5);
            }
            for much in [1e9, f64::MAX, f64::INFINITY] {
                assert_eq!(modulation.symbol_error_rate(much), 0.0);
            }
            assert!(modulation.symbol_error_rate(f64::NAN).is_nan());
            assert_eq!(modulation.sinr_for(largest), Ok(0.0));
            assert!(modulation.sinr_for(f64::from_bits(1)).unwrap().is_finite());
            for bad in [0.0, -0.1, largest.next_up(), 1.0, f64::NAN, f64::INFINITY] {
                let error = modulation.sinr_for(bad).unwrap_err();
                assert_eq!(error.largest, largest);
            }
        }
        assert_eq!(
            Modulation::Qpsk.sinr_for(0.8).unwrap_err().to_string(),
            "symbol error rate = 0.8: expected a number above 0 and at most 0.75 for qpsk"
        );
    }

    #[test]
    fn constellations_have_their_sizes_and_names() {
        let names =
            ["bpsk", "qpsk", "4-qam", "16-qam", "64-qam", "256-qam", "1024-qam", "4096-qam"];
        let sizes = [(1, 1, 2), (2, 2, 2), (2, 2, 2), (4, 2, 4), (6, 2, 8), (8, 2, 16)];
        for (modulation, name) in all().into_iter().zip(names) {
            assert_eq!(modulation.to_string(), name);
            assert_eq!(name.parse(), Ok(modulation));
        }
        for (m, size) in all().into_iter().zip(sizes) {
            assert_eq!((m.bits_per_symbol(), m.axes(), m.levels_per_axis()), size);
        }
        for bad in [0, 1, 2, 8, 32, 65_536] {
            assert_eq!(Modulation::qam(bad), Err(ModulationError::Order { order: bad }));
        }
        for bad in ["", "QPSK", "8-qam", "16qam", "016-qam", "-qam"] {
            let error = bad.parse::<Modulation>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("modulation = {bad:?}: expected bpsk")));
        }
    }

    proptest! {
        #[test]
        fn the_inverse_returns_and_falls(
            index in 0..8usize, exponent in -300.0..0.0f64, factor in 0.5..1.0f64
        ) {
            let modulation = all()[index];
            let ser = modulation.largest_ser() * 10f64.powf(exponent);
            let sinr = modulation.sinr_for(ser).unwrap();
            assert_close(modulation.symbol_error_rate(sinr), ser, 2e-12);
            prop_assert!(modulation.sinr_for(ser * factor).unwrap() > sinr);
        }

        /// For rates of use also the other way round.
        #[test]
        fn the_inverse_of_a_rate_is_its_sinr(index in 0..8usize, x in 0.1..35.0f64) {
            let modulation = all()[index];
            let sinr = x * x / modulation.scale();
            let back = modulation.sinr_for(modulation.symbol_error_rate(sinr)).unwrap();
            assert_close(back, sinr, 1e-12);
        }

        /// Not even neighboring numbers are out of order.
        #[test]
        fn quantiles_never_rise(p in 0.0..1.0f64, steps in 0..100u64) {
            let next = f64::from_bits(p.to_bits() + steps);
            prop_assert!(inverse_q(next) <= inverse_q(p));
        }
    }
}
