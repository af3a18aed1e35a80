//! The condition on the learning rate.

use lapa::config::BoundForm;
use lapa::observe::number;
use serde::Serialize;

use super::setting::{BoundError, Constants};

/// λ against the limit below which the bound converges, A < 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateCondition {
    constants: Constants,
    squared_weights: f64,
}

/// The limit for one dissimilarity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateLimit {
    /// δ
    #[serde(with = "number")]
    pub dissimilarity: f64,
    /// Limit of λ.
    #[serde(with = "number")]
    pub limit: f64,
    /// True if λ is below the limit.
    pub holds: bool,
}

impl RateCondition {
    /// λ < 2/(Lδ²ΣG_k²) as printed after Theorem 1, λ < 2/(Lδ²) corrected.
    ///
    /// Differs from the paper: corrected, ΣG_k² is not there, as in
    /// [`corrected_contraction`](super::corrected_contraction). The printed limit is larger by
    /// 1/ΣG_k², the number of devices if all weigh the same.
    pub fn new(
        form: BoundForm,
        constants: &Constants,
        squared_weights: f64,
    ) -> Result<Self, BoundError> {
        constants.check_with(squared_weights)?;
        let squared_weights = match form {
            BoundForm::Printed => squared_weights,
            BoundForm::Corrected => 1.0,
        };
        Ok(Self { constants: *constants, squared_weights })
    }

    /// Limit of λ.
    pub fn limit(&self) -> f64 {
        self.at(1.0).limit
    }

    /// True if λ is below the limit.
    pub fn holds(&self) -> bool {
        self.at(1.0).holds
    }

    /// Limits for multiples of δ, each raised to at least 1. The limit falls by 1/δ² as the devices differ
    /// more: the paper's statement that heterogeneous data want a smaller learning rate.
    pub fn tightening(&self, multiples: &[f64]) -> Vec<RateLimit> {
        multiples.iter().map(|&multiple| self.at(multiple)).collect()
    }

    fn at(&self, multiple: f64) -> RateLimit {
        let dissimilarity = (multiple * self.constants.dissimilarity).max(1.0);
        let square = dissimilarity * dissimilarity;
        let limit = 2.0 / (self.constants.smoothness * square * self.squared_weights);
        RateLimit { dissimilarity, limit, holds: self.constants.learning_rate < limit }
    }
}
