//! The scheme `iid`: a shuffled training set.

use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dirichlet::Shares;
use super::range::{OneOrPair, optional_pair};
use super::sizes::{count, draw, fitting_share, labels, middle, total, valid};
use super::{DEVICES, MOST_DEVICES, PartitionError, PartitionScheme, Plan};
use crate::seed::Stream;

/// A shuffled training set cut into equal parts, into parts of `samples`, or into parts whose shares are
/// drawn from a Dirichlet distribution (Li, Diao, Chen and He, "Federated learning on non-IID data silos:
/// an experimental study", 2022, quantity skew).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Parameters of scheme iid.")]
pub struct Iid {
    /// Number of devices.
    #[schemars(range(min = 1, max = MOST_DEVICES))]
    pub devices: u32,
    /// Samples of a device. Default: an equal part of the whole training set.
    #[serde(deserialize_with = "optional_pair", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OneOrPair>", extend("examples" = [[3000, 5000]]))]
    pub samples: Option<[u32; 2]>,
    /// Quantity skew: sizes are shares of the training set from a symmetric Dirichlet distribution of this
    /// concentration; the smaller, the more uneven. Default: sizes are equal, or by samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.001, max = 1e6), extend("examples" = [0.5]))]
    pub sizes_concentration: Option<f64>,
}

impl Default for Iid {
    fn default() -> Self {
        Self { devices: DEVICES, samples: None, sizes_concentration: None }
    }
}

impl PartitionScheme for Iid {
    fn devices(&self) -> u32 {
        self.devices
    }

    fn devices_key(&self) -> &'static str {
        "`partition.iid.devices`"
    }

    fn check(&self) -> Result<(), PartitionError> {
        if self.samples.is_some() && self.sizes_concentration.is_some() {
            return Err(PartitionError::TwoSizes);
        }
        self.samples.map_or(Ok(()), |range| valid("iid.samples", range).map(drop))
    }

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut [u32; 2])> {
        self.samples.iter_mut().map(|range| ("iid.samples", range)).collect()
    }

    fn largest_samples(&self) -> Option<u32> {
        self.samples.map(|[_, max]| max)
    }

    fn middle_samples(&self) -> Option<u32> {
        self.samples.map(|range| middle(range).round().max(1.0) as u32)
    }

    fn is_iid(&self, _device: u32) -> Option<bool> {
        Some(true)
    }

    fn plan(&self, supply: &[u32], rng: &mut Stream) -> Result<Plan, PartitionError> {
        let (samples, devices) = (total(supply), u64::from(self.devices));
        let sizes: Vec<usize> = match (self.samples, self.sizes_concentration) {
            (None, Some(concentration)) => {
                let (key, devices) = ("iid.sizes_concentration", self.devices);
                let shares = Shares { scheme: "iid", key, concentration, devices };
                let sizes = shares.draw(&[samples as u32], rng)?;
                sizes.iter().map(|sizes| sizes[0] as usize).collect()
            }
            (None, None) => {
                let bound = |device: u64| device * samples / devices;
                (0..devices).map(|device| (bound(device + 1) - bound(device)) as usize).collect()
            }
            (Some(range), _) => {
                let range = valid("iid.samples", range)?;
                let sizes = draw(&vec![range; self.devices as usize], samples, rng)?;
                let keep = fitting_share(&sizes, samples);
                sizes.iter().map(|size| size.shrunk(keep).drawn as usize).collect()
            }
        };
        let mut shuffled = labels(supply);
        shuffled.shuffle(rng);
        let mut rest = shuffled.as_slice();
        let deal = |size| {
            let held;
            (held, rest) = rest.split_at(size);
            count(held, supply.len())
        };
        Ok(sizes.into_iter().map(deal).collect())
    }
}
