//! A privacy budget.

use serde::{Deserialize, Serialize};

use crate::error::{AccountError, check_delta};
use crate::range::positive;

/// (ε, δ), fixed before round 1: ε > 0 and finite, 0 < δ < 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Budget {
    epsilon: f64,
    delta: f64,
}

impl Budget {
    /// Refuses what is no budget.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, AccountError> {
        Ok(Self { epsilon: positive("epsilon", epsilon)?, delta: check_delta(delta)? })
    }

    /// ε
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// δ
    pub fn delta(&self) -> f64 {
        self.delta
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    epsilon: f64,
    delta: f64,
}

impl TryFrom<Unchecked> for Budget {
    type Error = AccountError;

    fn try_from(budget: Unchecked) -> Result<Self, AccountError> {
        Self::new(budget.epsilon, budget.delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_checked_too() {
        let read = |text: &str| serde_json::from_str::<Budget>(text);
        let budget = Budget::new(8.0, 1e-5).unwrap();
        assert_eq!(read(&serde_json::to_string(&budget).unwrap()).unwrap(), budget);
        for (text, message) in [
            (r#"{"epsilon":0,"delta":1e-5}"#, "epsilon = 0: expected a finite number above 0"),
            (r#"{"epsilon":1,"delta":1}"#, "delta = 1: expected a number above 0 and below 1"),
            (r#"{"epsilon":1,"delta":0.1,"rho":1}"#, "unknown field `rho`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(Budget::new(f64::INFINITY, 0.1).is_err() && Budget::new(f64::NAN, 0.1).is_err());
    }
}
