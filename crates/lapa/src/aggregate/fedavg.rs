//! Rule fedavg: weights by data volume.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BuildRule, Rule};
use crate::radio::Received;

/// Parameters of rule fedavg: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FedavgConfig {}

impl BuildRule for FedavgConfig {
    fn build(&self, _: usize) -> Box<dyn Rule> {
        Box::new(FedAvg)
    }
}

/// FedAvg as a rule.
struct FedAvg;

impl Rule for FedAvg {
    fn weights(&mut self, samples: &[u32], _: &[Received]) -> Vec<f64> {
        fedavg(samples)
    }

    fn reads_updates(&self) -> bool {
        false
    }
}

/// FedAvg (McMahan et al. 2017): G_k = |D_k| / Σ_j |D_j| over the devices of the round, so that
/// ΣG_k = 1 as in the paper's eq. (2).
///
/// `samples` are public numbers: |D_k|, or n̂ where |D_k| is not public.
pub fn fedavg(samples: &[u32]) -> Vec<f64> {
    let total: f64 = samples.iter().map(|&samples| f64::from(samples)).sum();
    samples.iter().map(|&samples| f64::from(samples) / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fedavg_weighs_by_samples() {
        assert_eq!(fedavg(&[30, 10]), [0.75, 0.25]);
        assert_eq!(fedavg(&[]), [0.0; 0]);
    }
}
