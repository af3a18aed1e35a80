//! Numbers and their ranges.

/// A number out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} = {value}: expected {allowed}")]
pub struct OutOfRange {
    /// Name of the number.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Allowed values.
    pub allowed: &'static str,
}

/// The value, if it is `fine`.
pub(crate) fn check(
    name: &'static str,
    value: f64,
    fine: bool,
    allowed: &'static str,
) -> Result<f64, OutOfRange> {
    if fine { Ok(value) } else { Err(OutOfRange { name, value, allowed }) }
}

pub(crate) fn positive(name: &'static str, value: f64) -> Result<f64, OutOfRange> {
    check(name, value, value > 0.0 && value.is_finite(), "a finite number above 0")
}

pub(crate) fn not_negative(name: &'static str, value: f64) -> Result<f64, OutOfRange> {
    check(name, value, value >= 0.0 && value.is_finite(), "a finite number from 0")
}

pub(crate) fn count(name: &'static str, value: u32) -> Result<u32, OutOfRange> {
    check(name, value.into(), value > 0, "at least 1")?;
    Ok(value)
}
