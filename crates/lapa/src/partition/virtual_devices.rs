//! The scheme `virtual`: devices draw their records from one training set, and share them.

use rand::RngExt;
use rand::seq::index;
use rand_distr::{Distribution, Gamma, weighted::WeightedIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::{OneOrPair, pair};
use super::sizes::{middle, valid};
use super::{MOST_DEVICES, PartitionError, PartitionScheme, Plan};
use crate::seed::{Purpose, Stream, stream};

/// Each device draws its records from the whole training set, with a label mix of its own, so that
/// there may be more devices than samples. Devices share records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Parameters of scheme virtual.")]
pub struct Virtual {
    /// Number of devices.
    #[schemars(range(min = 1, max = MOST_DEVICES))]
    pub devices: u32,
    /// Samples of a device.
    #[serde(deserialize_with = "pair")]
    #[schemars(with = "OneOrPair")]
    pub samples: [u32; 2],
    /// Concentration of a device's label shares; the smaller, the more uneven.
    #[schemars(range(min = 0.001, max = 1e6))]
    pub concentration: f64,
}

impl Default for Virtual {
    fn default() -> Self {
        Self { devices: 1000, samples: [50, 150], concentration: 0.5 }
    }
}

impl PartitionScheme for Virtual {
    fn devices(&self) -> u32 {
        self.devices
    }

    fn check(&self) -> Result<(), PartitionError> {
        valid("virtual.samples", self.samples).map(drop)
    }

    fn largest_samples(&self) -> Option<u32> {
        Some(self.samples[1])
    }

    fn middle_samples(&self) -> Option<u32> {
        Some(middle(self.samples).round().max(1.0) as u32)
    }

    fn plan(&self, _: &[u32], _: &mut Stream) -> Result<Plan, PartitionError> {
        Err(PartitionError::Shared)
    }

    fn shared(&self) -> Option<&Virtual> {
        Some(self)
    }
}

/// Records that devices draw when they need them, each from a stream of its own: a device that does
/// not take part costs nothing.
#[derive(Clone, Debug)]
pub struct Drawn {
    scheme: Virtual,
    seed: u64,
    /// Samples of each label.
    pools: Vec<Vec<u32>>,
}

impl Drawn {
    /// The records of a training set, given by its labels.
    pub(super) fn new(
        scheme: &Virtual,
        labels: &[u8],
        classes: usize,
        seed: u64,
    ) -> Result<Self, PartitionError> {
        scheme.check()?;
        let mut pools = vec![Vec::new(); classes];
        for (index, &label) in (0..).zip(labels) {
            pools[usize::from(label)].push(index);
        }
        pools.retain(|pool: &Vec<u32>| !pool.is_empty());
        let rarest = pools.iter().map(Vec::len).min().unwrap_or_default();
        // A device may draw all of its samples from one label.
        if scheme.samples[1] as usize > rarest {
            return Err(PartitionError::RareLabel { samples: scheme.samples[1], rarest });
        }
        Ok(Self { scheme: scheme.clone(), seed, pools })
    }

    /// Devices.
    pub fn len(&self) -> usize {
        self.scheme.devices as usize
    }

    /// True without devices, which a configuration does not allow.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that the records follow from, beside the training set.
    pub(super) fn description(&self) -> String {
        format!("{:?} with seed {}", self.scheme, self.seed)
    }

    /// Number of samples of a device.
    pub fn size(&self, device: u32) -> u32 {
        self.begin(device).0
    }

    /// The size of a device, and the stream that its records follow from.
    fn begin(&self, device: u32) -> (u32, Stream) {
        let mut rng = stream(self.seed, Purpose::Partition, 1, device.into());
        let [min, max] = self.scheme.samples;
        (rng.random_range(min..=max), rng)
    }

    /// Records of a device, ascending: label shares by a symmetric Dirichlet distribution, as
    /// normalized Gamma draws; labels by these shares; samples of a label without replacement.
    pub fn of(&self, device: u32) -> Vec<u32> {
        let (size, mut rng) = self.begin(device);
        let gamma = Gamma::new(self.scheme.concentration, 1.0);
        let mut shares: Vec<f64> = match gamma {
            Ok(gamma) => self.pools.iter().map(|_| gamma.sample(&mut rng)).collect(),
            Err(_) => vec![1.0; self.pools.len()],
        };
        // Small concentrations may leave shares of 0 only.
        if !shares.iter().any(|&share| share > 0.0) {
            let one = rng.random_range(0..shares.len());
            shares[one] = 1.0;
        }
        let mut counts = vec![0usize; self.pools.len()];
        if let Ok(labels) = WeightedIndex::new(&shares) {
            (0..size).for_each(|_| counts[labels.sample(&mut rng)] += 1);
        }
        let mut samples = Vec::with_capacity(size as usize);
        for (pool, count) in self.pools.iter().zip(counts) {
            let drawn = index::sample(&mut rng, pool.len(), count);
            samples.extend(drawn.into_iter().map(|at| pool[at]));
        }
        samples.sort_unstable();
        samples
    }
}
