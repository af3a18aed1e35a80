//! Partitions: the division of the training samples over devices.
//!
//! A [`PartitionScheme`] first plans how many samples of each label every device gets; the samples
//! themselves are then dealt from one shuffled pool per label. So devices never share a sample,
//! whatever the scheme, but `virtual`. [`Scheme`] lists the schemes that a configuration can name.

mod column;
mod dirichlet;
mod error;
mod few_labels;
mod iid;
mod mix;
mod range;
mod records;
mod shards;
mod sizes;
mod skew;
#[cfg(test)]
mod tests;
mod virtual_devices;

pub use column::Column;
pub use dirichlet::Dirichlet;
pub use error::PartitionError;
pub(crate) use error::crowd;
pub use iid::Iid;
pub use mix::Mix;
pub use records::Records;
pub(crate) use records::digest;
pub use shards::Shards;
pub use skew::Skew;
pub use virtual_devices::{Drawn, Virtual};

use crate::data::Dataset;
use crate::seed::{Purpose, Stream, stream};
use lapa_privacy::choices;
use rand::seq::SliceRandom;
use serde::Serialize;

/// Most devices: each has a place, a channel and an account in the ledger.
pub const MOST_DEVICES: u32 = 1_000_000;
/// Bytes of a device that takes no part, as `lapa bench --only scale` measures them.
pub(crate) const IDLE_BYTES: u64 = 62;
/// The paper's number of devices.
const DEVICES: u32 = 15;

choices! {
    /// Schemes of a configuration, each with its parameters.
    pub enum Scheme: PartitionScheme {
        /// IID devices and devices with few labels: the paper's scheme.
        Mix(Mix),
        /// Label shares per device drawn from a Dirichlet distribution.
        Dirichlet(Dirichlet),
        /// The label-sorted training set cut into shards, a few dealt to each device.
        Shards(Shards),
        /// An equal part of a shuffled training set for every device.
        Iid(Iid),
        /// The devices that the data name in a column.
        Column(Column),
        /// Records drawn from the training set by each device, shared between devices.
        Virtual(Virtual),
    }
}

impl Default for Scheme {
    fn default() -> Self {
        Self::Mix(Mix::default())
    }
}

/// A way to divide the training set over devices.
pub trait PartitionScheme {
    /// Number of devices K.
    fn devices(&self) -> u32;

    /// Key of the number of devices, as errors show it.
    fn devices_key(&self) -> &'static str {
        "the number of devices"
    }

    /// Samples of each label for each device; `supply` has the number of samples of each label.
    fn plan(&self, supply: &[u32], rng: &mut Stream) -> Result<Plan, PartitionError>;

    /// Refuses parameters that contradict each other, whatever the data.
    fn check(&self) -> Result<(), PartitionError> {
        Ok(())
    }

    /// The scheme, if devices draw records that they share instead of a plan.
    fn shared(&self) -> Option<&Virtual> {
        None
    }

    /// The scheme, if the data name the device of each record.
    fn column(&self) -> Option<&Column> {
        None
    }

    /// Configured ranges of sizes, each with its key; empty if sizes are left open.
    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut [u32; 2])> {
        Vec::new()
    }

    /// The largest of the configured sizes; `None` if they are left open.
    fn largest_samples(&self) -> Option<u32> {
        None
    }

    /// The middle of the configured sizes, over all devices; `None` if they are left open.
    fn middle_samples(&self) -> Option<u32> {
        None
    }

    /// True for a device that is meant to hold all labels equally; `None` if the scheme makes no
    /// difference.
    fn is_iid(&self, _device: u32) -> Option<bool> {
        None
    }
}

/// The training samples of each device, disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Per device: indices into the training set.
    pub devices: Vec<DeviceData>,
}

/// Records of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceData {
    /// Indices into the training set, ascending.
    pub samples: Vec<u32>,
    /// Samples per label.
    pub label_counts: Vec<u32>,
    /// True if the scheme meant this device to hold all labels equally (only `mix` and `iid` say).
    pub iid: Option<bool>,
}

/// One line of the table that shows a partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Device, from 0.
    pub device: u32,
    /// `iid`, `non-iid`, or `-` where the scheme makes no difference.
    pub kind: &'static str,
    /// Samples the device holds.
    pub samples: u32,
    /// Samples per label.
    pub label_counts: Vec<u32>,
}

/// Splits a training set, given by its labels, over devices that have no record in common.
///
/// The same scheme, labels and seed give the same partition. In a `mix` the IID devices
/// come first.
///
/// # Panics
///
/// If a label is not below `classes`, which every [`Dataset`] promises.
pub fn partition(
    scheme: &dyn PartitionScheme,
    labels: &[u8],
    classes: usize,
    seed: u64,
) -> Result<Partition, PartitionError> {
    let mut rng = stream(seed, Purpose::Partition, 0, 0);
    let devices = scheme.devices();
    if scheme.shared().is_some() {
        return Err(PartitionError::Shared);
    }
    if devices == 0 {
        return Err(PartitionError::NoDevices);
    }
    if devices as usize > labels.len() {
        let (key, samples) = (scheme.devices_key(), labels.len());
        return Err(PartitionError::MoreDevicesThanSamples { key, devices, samples });
    }
    let mut pools = vec![Vec::new(); classes];
    for (index, &label) in (0..).zip(labels) {
        pools[usize::from(label)].push(index);
    }
    let supply: Vec<u32> = pools.iter().map(|pool| pool.len() as u32).collect();
    let plan = scheme.plan(&supply, &mut rng)?;

    pools.iter_mut().for_each(|pool| pool.shuffle(&mut rng));
    let devices = (0..).zip(plan).map(|(device, label_counts)| {
        let mut samples = Vec::new();
        for (pool, &count) in pools.iter_mut().zip(&label_counts) {
            samples.extend(pool.drain(pool.len() - count as usize..));
        }
        samples.sort_unstable();
        DeviceData { samples, label_counts, iid: scheme.is_iid(device) }
    });
    Ok(Partition { devices: devices.collect() })
}

/// Splits the training set of a data set over devices that have no record in common: as [`partition`]
/// does, or by the data's own column. Then skews the features of each device.
pub fn deal(
    scheme: &dyn PartitionScheme,
    skew: Skew,
    data: &mut Dataset,
    seed: u64,
) -> Result<Partition, PartitionError> {
    let partition = match scheme.column() {
        Some(column) => column.partition(data)?,
        None => partition(scheme, &data.train.labels, data.classes, seed)?,
    };
    skew.apply(data, &partition, seed)?;
    Ok(partition)
}

/// Samples of each label, per device.
pub type Plan = Vec<Vec<u32>>;
