//! The scheme `shards`: pieces of the label-sorted training set.

use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sizes::{count, labels, total};
use super::{DEVICES, MOST_DEVICES, PartitionError, PartitionScheme, Plan};
use crate::seed::Stream;

/// The label-sorted training set cut into equal shards, `per_device` of them dealt at random to
/// each device (McMahan et al., "Communication-efficient learning of deep networks from
/// decentralized data", 2017). Uses the whole training set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Parameters of scheme shards.")]
pub struct Shards {
    /// Number of devices.
    #[schemars(range(min = 1, max = MOST_DEVICES))]
    pub devices: u32,
    /// Label-sorted shards dealt to each device.
    #[schemars(range(min = 1))]
    pub per_device: u32,
}

impl Default for Shards {
    fn default() -> Self {
        Self { devices: DEVICES, per_device: 2 }
    }
}

impl PartitionScheme for Shards {
    fn devices(&self) -> u32 {
        self.devices
    }

    fn devices_key(&self) -> &'static str {
        "`partition.shards.devices`"
    }

    fn plan(&self, supply: &[u32], rng: &mut Stream) -> Result<Plan, PartitionError> {
        let shards = u64::from(self.devices) * u64::from(self.per_device);
        let samples = total(supply);
        if shards == 0 || shards > samples {
            return Err(PartitionError::Shards {
                devices: self.devices,
                per_device: self.per_device,
                samples,
            });
        }
        let mut order: Vec<u64> = (0..shards).collect();
        order.shuffle(rng);
        let sorted = labels(supply);
        let bound = |shard: u64| (shard * samples / shards) as usize;
        let deal = |hand: &[u64]| {
            let held = hand.iter().flat_map(|&shard| &sorted[bound(shard)..bound(shard + 1)]);
            count(held, supply.len())
        };
        Ok(order.chunks(self.per_device as usize).map(deal).collect())
    }
}
