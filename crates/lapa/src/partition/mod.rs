//! Stage 2: who holds which samples.
//!
//! A scheme first plans how many samples of each label every device gets (`mix`, `schemes`); the
//! samples themselves are then dealt from one shuffled pool per label. So devices never share a
//! sample, whatever the scheme.

mod error;
mod few_labels;
mod mix;
mod schemes;
mod sizes;
#[cfg(test)]
mod tests;

pub use error::PartitionError;

use crate::config::{PartitionSpec, Scheme};
use crate::seed::{Purpose, stream};
use rand::seq::SliceRandom;
use serde::Serialize;

/// The training samples of each device, disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Per device: indices into the training set.
    pub devices: Vec<DeviceData>,
}

/// What one device holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceData {
    /// Indices into the training set, ascending.
    pub samples: Vec<u32>,
    /// Samples per label.
    pub label_counts: Vec<u32>,
    /// Whether the scheme meant this device to hold all labels equally (only `mix` and `iid` say).
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

impl Partition {
    /// The partition as a table, one row per device.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(device, data): (u32, &DeviceData)| Row {
            device,
            kind: match data.iid {
                Some(true) => "iid",
                Some(false) => "non-iid",
                None => "-",
            },
            samples: data.samples.len() as u32,
            label_counts: data.label_counts.clone(),
        };
        (0..).zip(&self.devices).map(row).collect()
    }
}

/// Splits a training set, given by its labels, over devices.
///
/// The same specification, labels and seed give the same partition. In a `mix` the IID devices
/// come first.
///
/// # Panics
///
/// If a label is not below `classes`, which every [`Dataset`](crate::data::Dataset) promises.
pub fn partition(
    spec: &PartitionSpec,
    labels: &[u8],
    classes: usize,
    seed: u64,
) -> Result<Partition, PartitionError> {
    let mut rng = stream(seed, Purpose::Partition, 0, 0);
    if spec.devices == 0 {
        return Err(PartitionError::NoDevices);
    }
    if spec.devices as usize > labels.len() {
        return Err(PartitionError::MoreDevicesThanSamples {
            devices: spec.devices,
            samples: labels.len(),
        });
    }
    let mut pools = vec![Vec::new(); classes];
    for (index, &label) in (0..).zip(labels) {
        pools[usize::from(label)].push(index);
    }
    let supply: Vec<u32> = pools.iter().map(|pool| pool.len() as u32).collect();
    let plan = match spec.scheme {
        Scheme::Mix => mix::plan(spec, &supply, &mut rng)?,
        Scheme::Dirichlet => schemes::dirichlet(spec, &supply, &mut rng)?,
        Scheme::Shards => schemes::shards(spec, &supply, &mut rng)?,
        Scheme::Iid => schemes::iid(spec, &supply, &mut rng)?,
    };
    let iid = |device| match spec.scheme {
        Scheme::Mix => spec.iid.map(|iid| device < iid),
        Scheme::Iid => Some(true),
        Scheme::Dirichlet | Scheme::Shards => None,
    };

    pools.iter_mut().for_each(|pool| pool.shuffle(&mut rng));
    let devices = (0..).zip(plan).map(|(device, label_counts)| {
        let mut samples = Vec::new();
        for (pool, &count) in pools.iter_mut().zip(&label_counts) {
            samples.extend(pool.drain(pool.len() - count as usize..));
        }
        samples.sort_unstable();
        DeviceData { samples, label_counts, iid: iid(device) }
    });
    Ok(Partition { devices: devices.collect() })
}

/// Samples of each label, per device.
type Plan = Vec<Vec<u32>>;

/// A key that the scheme cannot do without. The configuration always gives it.
fn required<T>(
    value: Option<T>,
    scheme: &'static str,
    key: &'static str,
) -> Result<T, PartitionError> {
    value.ok_or(PartitionError::MissingKey { scheme, key })
}
