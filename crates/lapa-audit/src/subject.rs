//! Subject of an audit.

use lapa::budget::PrivacySummary;
use lapa::config::{Entropy, Experiment};
use lapa::data::Dataset;
use lapa::error::FederationError;
use lapa::model::Network;
use lapa::optimize::PowerChoice;

use crate::AuditError;

/// Network of an experiment for images as in `data`.
pub(crate) fn network(experiment: &Experiment, data: &Dataset) -> Result<Network, FederationError> {
    let shape = data.train.shape;
    lapa::model::network(&experiment.model, shape, data.classes)
        .map_err(|source| FederationError::Model { shape, source: source.into() })
}

/// Privacy statement of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statement {
    /// The paper's sum over all devices.
    pub epsilon_claimed_total: f64,
    /// Proven ε of the worst device.
    pub epsilon_provable: f64,
    /// δ of both.
    pub delta: f64,
}

impl From<&PrivacySummary> for Statement {
    fn from(summary: &PrivacySummary) -> Self {
        Self {
            epsilon_claimed_total: summary.epsilon_claimed_total,
            epsilon_provable: summary.epsilon_provable,
            delta: summary.delta,
        }
    }
}

/// An experiment that can be repeated, with its data.
pub struct Subject {
    /// The experiment, as it is repeated.
    pub(crate) experiment: Experiment,
    pub(crate) data: Dataset,
}

impl Subject {
    /// Repeats nothing that would spend a real budget: entropy must be the seed's. What is repeated
    /// is recorded in memory, never on the experiment's own ledger.
    pub fn new(mut experiment: Experiment, data: Dataset) -> Result<Self, AuditError> {
        if experiment.run.entropy == Entropy::Os {
            return Err(AuditError::RealReleases);
        }
        experiment.run.ledger = None;
        if experiment.control.needs_pilot() {
            // Powers change what the channel adds, not what a device may release.
            experiment.control.power = PowerChoice::Equal;
        }
        let data = data.with_features(experiment.model.feature_map(), &mut |_| {});
        Ok(Self { data: data.map_err(FederationError::from)?, experiment })
    }
}
