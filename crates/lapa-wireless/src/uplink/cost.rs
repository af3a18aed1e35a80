//! Cost of a transmission.

use super::{Quantizer, UplinkError};
use crate::error::check;
use crate::ser::Modulation;
use crate::units::{Hertz, Joule, Second, Watt};

/// Coding of values as symbols.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coding {
    /// One symbol for each value.
    Analog,
    /// Bits of levels.
    Digital {
        /// Values to levels.
        quantizer: Quantizer,
        /// Bits to symbols.
        modulation: Modulation,
    },
}

impl Coding {
    /// Number of symbols for `values` values, the last one padded.
    pub fn symbols(self, values: usize) -> usize {
        match self {
            Self::Analog => values,
            Self::Digital { quantizer, modulation } => values
                .saturating_mul(quantizer.bits() as usize)
                .div_ceil(modulation.bits_per_symbol() as usize),
        }
    }

    /// Number of bytes for `values` values. Analog symbols carry no bits: the 4 bytes of each f32
    /// that they stand for are counted.
    pub fn payload_bytes(self, values: usize) -> usize {
        match self {
            Self::Analog => values.saturating_mul(size_of::<f32>()),
            Self::Digital { quantizer, .. } => {
                values.saturating_mul(quantizer.bits() as usize).div_ceil(8)
            }
        }
    }
}

/// Time on the air at a number of symbols per second. With NOMA all devices send at the same time.
pub fn airtime(symbols: usize, symbol_rate: Hertz) -> Result<Second, UplinkError> {
    let fits = symbol_rate.0 > 0.0 && symbol_rate.0.is_finite();
    let rate = check("symbol_rate", symbol_rate.0, fits, "a finite number above 0")?;
    Ok(Second(symbols as f64 / rate))
}

/// Energy of a device in that time: exact for digital symbols, which have unit mean power, and
/// an upper bound for analog ones.
pub fn energy(power: Watt, airtime: Second) -> Joule {
    power * airtime
}
