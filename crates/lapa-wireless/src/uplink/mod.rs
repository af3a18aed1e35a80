//! Uplinks: transmission of updates, and their decoding by the base station.
//!
//! [`Analog`] and [`Digital`] are quick models of one device's link, given its SINR. [`Signal`] sends
//! the symbols of all devices over one channel at once and decodes them: slow, but nothing about
//! noise or interference is assumed. [`Coding`] says what a transmission costs.

mod analog;
mod bits;
mod constellation;
mod cost;
mod digital;
mod quantizer;
mod signal;

pub use analog::Analog;
pub use cost::{Coding, airtime, energy};
pub use digital::{Digital, DigitalConfig, DigitalReport};
pub use quantizer::Quantizer;
pub use signal::{Signal, SignalConfig, SymbolConfig, Symbols};

use crate::error::{OutOfRange, check};
use crate::noma::NomaError;

/// Error of an uplink.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UplinkError {
    /// A parameter out of its range.
    #[error(transparent)]
    Parameter(#[from] OutOfRange),
    /// Nothing arrives: an analog value cannot be decoded.
    #[error("the SINR is 0: an analog uplink needs a signal")]
    NoSignal,
    /// Nothing arrives of one of several devices.
    #[error("no signal from device {device}: leave it out, or raise its power")]
    Silent {
        /// The device.
        device: usize,
    },
    /// One scale and one update of the same length is wanted for each device.
    #[error("{name}: {value} given, {expected} expected")]
    Count {
        /// Name of the things counted.
        name: &'static str,
        /// Given number.
        value: usize,
        /// Expected number.
        expected: usize,
    },
    /// There is no receiver that separates the devices.
    #[error(transparent)]
    Noma(#[from] NomaError),
}

/// Scales and ranges that leave f32 room on both sides.
const MAGNITUDES: std::ops::RangeInclusive<f64> = 1e-36..=1e36;

/// A scale or a range.
fn check_magnitude(name: &'static str, value: f64) -> Result<f64, OutOfRange> {
    check(name, value, MAGNITUDES.contains(&value), "from 1e-36 to 1e36")
}

/// A signal-to-noise ratio; ∞ is a link without noise.
fn check_sinr(value: f64) -> Result<f64, OutOfRange> {
    check("sinr", value, value >= 0.0, "0 or more")
}
