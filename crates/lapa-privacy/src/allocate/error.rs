//! What an allocator refuses.

/// Why there is no allocator with these settings, or none in this state.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllocateError {
    /// A number is out of its range.
    #[error("{name} is {value}: allowed is {allowed}")]
    Parameter {
        /// Which number.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// An allocator of the paper's basis alone.
    #[error("optimal-split shares one pot over the devices: it needs epsilon")]
    OnePot,
    /// The state was taken from another allocator.
    #[error("the state belongs to the allocator {found}: expected {expected}")]
    OtherAllocator {
        /// The allocator to be restored.
        expected: &'static str,
        /// The one the state was taken from.
        found: &'static str,
    },
}

/// Refuses a number that is not as it should be.
pub(super) fn check(
    name: &'static str,
    value: f64,
    fine: bool,
    allowed: &'static str,
) -> Result<(), AllocateError> {
    if fine { Ok(()) } else { Err(AllocateError::Parameter { name, value, allowed }) }
}

pub(super) fn positive(name: &'static str, value: f64) -> Result<f64, AllocateError> {
    check(name, value, value > 0.0 && value.is_finite(), "a finite number above 0")?;
    Ok(value)
}

pub(super) fn not_negative(name: &'static str, value: f64) -> Result<(), AllocateError> {
    check(name, value, value >= 0.0 && value.is_finite(), "a finite number from 0")
}

pub(super) fn count(name: &'static str, value: u32) -> Result<u32, AllocateError> {
    check(name, value.into(), value > 0, "at least 1")?;
    Ok(value)
}
