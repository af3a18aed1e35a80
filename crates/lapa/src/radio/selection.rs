//! Selection of devices by the quality of their links.
//!
//! Differs from the paper: the weights of eq. (22) keep the denominator of all K devices, so those
//! that are left do not add up to 1 as eq. (2) demands. Here weights are computed over the selected
//! devices alone, which for weights of the form a_k / Σ_j a_j is to renormalize; the angles of FedAdp
//! are then those to the mean of the selected. `aggregate.renormalize = false` is the printed form.
//! Devices that fall short do not send; with `aggregate.below_threshold = "weight-zero"` they are
//! received with weight 0.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Link;

/// The devices of a round by the quality of their links. It follows from public numbers alone.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// Links of devices that send.
    pub chosen: Vec<Link>,
    /// Devices that send and fall short of the threshold, so that their weight is 0.
    pub weightless: Vec<u32>,
    /// Links of devices that skip the round.
    pub skipped: Vec<Link>,
}

/// Quality that a device's link must reach in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum Threshold {
    /// Every device is selected.
    #[default]
    None,
    /// Only devices with at most this symbol error rate send. Default: all devices send.
    #[serde(rename = "ser_threshold")]
    Ser(#[schemars(range(min = 1e-12, max = 1), extend("examples" = [0.1]))] f64),
    /// Only devices with at least this SINR send, γ_k ≥ γ_th of eq. (22). Default: all devices send.
    #[serde(rename = "sinr_threshold_db")]
    SinrDb(#[schemars(range(min = -300, max = 300), extend("examples" = [4.3]))] f64),
}

impl Threshold {
    /// True if a device of this SINR (a ratio, not dB) and symbol error rate is selected. A link
    /// whose figure is not a number is not.
    pub fn passes(&self, sinr: f64, ser: f64) -> bool {
        match *self {
            Self::None => true,
            Self::Ser(most) => ser <= most,
            Self::SinrDb(least) => sinr >= 10f64.powf(least / 10.0),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("a signal above 0"),
            Self::Ser(most) => write!(f, "aggregate.ser_threshold = {most}"),
            Self::SinrDb(least) => write!(f, "aggregate.sinr_threshold_db = {least}"),
        }
    }
}

/// Rule by which devices are selected.
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    /// Links that are good enough.
    pub threshold: Threshold,
    /// Part in a round of devices whose links are not.
    pub below_threshold: BelowThreshold,
    /// Outcome of a round in which no device has one.
    pub none_selected: NoneSelected,
}

/// Part in a round of devices whose links are not good enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BelowThreshold {
    /// They skip the round: they compute nothing and are not charged.
    #[default]
    Skip,
    /// They learn, are charged and send; what is received of them has weight 0.
    WeightZero,
}

/// Round in which no device has a link that is good enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoneSelected {
    /// The model stays as it is.
    #[default]
    Skip,
    /// The run ends with an error.
    Error,
}

#[cfg(test)]
mod tests {
    use super::Threshold::{None, Ser, SinrDb};

    #[test]
    fn a_threshold_is_passed_when_it_is_met() {
        for (threshold, sinr, ser, passes) in [
            (None, 0.0, 1.0, true),
            (None, f64::NAN, f64::NAN, true),
            (Ser(1e-2), 0.0, 1e-2, true),
            (Ser(1e-2), 1e9, 1.01e-2, false),
            (Ser(1e-2), 1e9, f64::NAN, false),
            (SinrDb(20.0), 100.0, 1.0, true),
            (SinrDb(20.0), 99.9, 0.0, false),
            (SinrDb(-10.0), 0.11, 1.0, true),
            (SinrDb(-10.0), 0.09, 0.0, false),
            (SinrDb(0.0), 0.0, 0.0, false),
            (SinrDb(0.0), f64::INFINITY, 0.0, true),
            (SinrDb(0.0), f64::NAN, 0.0, false),
        ] {
            assert_eq!(threshold.passes(sinr, ser), passes, "{threshold:?} {sinr} {ser}");
        }
    }
}
