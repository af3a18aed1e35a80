//! What is out of its range.

/// A number out of its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} = {value}: expected {allowed}")]
pub struct OutOfRange {
    /// Which number.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What is allowed.
    pub allowed: &'static str,
}
