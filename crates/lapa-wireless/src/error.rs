//! Numbers out of their range.

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

/// The value, if it fits.
pub(crate) fn check(
    name: &'static str,
    value: f64,
    fits: bool,
    allowed: &'static str,
) -> Result<f64, OutOfRange> {
    if fits { Ok(value) } else { Err(OutOfRange { name, value, allowed }) }
}
