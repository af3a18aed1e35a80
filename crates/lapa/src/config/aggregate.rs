//! `[aggregate]`: selection and weights.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::aggregate::RuleConfig;
use crate::radio::{BelowThreshold, NoneSelected, Threshold};

/// Selection of devices, and their weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Aggregate {
    /// Weights of the devices.
    pub rule: RuleConfig,
    /// Links that are good enough.
    pub threshold: Threshold,
    /// Part in a round of devices whose links are not good enough.
    pub below_threshold: BelowThreshold,
    /// Outcome of a round in which no device has a link that is good enough.
    pub none_selected: NoneSelected,
    /// Weights of the devices that send sum to 1. With false they keep the denominator of all devices
    /// of the round, as eq. (22) prints it, and the step is shorter.
    pub renormalize: bool,
}

impl Default for Aggregate {
    fn default() -> Self {
        Self {
            rule: RuleConfig::default(),
            threshold: Threshold::default(),
            below_threshold: BelowThreshold::default(),
            none_selected: NoneSelected::default(),
            renormalize: true,
        }
    }
}
