//! Records of the devices of a simulation.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::{Drawn, Partition, PartitionError, PartitionScheme, Row, Skew, deal};
use crate::data::Dataset;

/// Records of each device: dealt, so that no two devices have one in common, or drawn and shared.
#[derive(Clone, Debug)]
pub enum Records {
    /// Every record is on one device at most.
    Dealt(Partition),
    /// Devices draw their records when they need them.
    Drawn(Drawn),
}

impl Records {
    /// The records of a data set as a scheme has them, skewed by device; only those of devices of
    /// their own can be skewed.
    pub fn new(
        scheme: &dyn PartitionScheme,
        skew: Skew,
        data: &mut Dataset,
        seed: u64,
    ) -> Result<Self, PartitionError> {
        let Some(shared) = scheme.shared() else {
            return deal(scheme, skew, data, seed).map(Self::Dealt);
        };
        if skew != Skew::default() {
            return Err(PartitionError::SharedSkew);
        }
        Drawn::new(shared, &data.train.labels, data.classes, seed).map(Self::Drawn)
    }

    /// Devices.
    pub fn devices(&self) -> usize {
        match self {
            Self::Dealt(partition) => partition.devices.len(),
            Self::Drawn(drawn) => drawn.len(),
        }
    }

    /// The partition, if no two devices have a record in common.
    pub fn dealt(&self) -> Option<&Partition> {
        match self {
            Self::Dealt(partition) => Some(partition),
            Self::Drawn(_) => None,
        }
    }

    /// Number of samples of a device.
    pub fn size(&self, device: u32) -> u32 {
        match self {
            Self::Dealt(partition) => partition.devices[device as usize].samples.len() as u32,
            Self::Drawn(drawn) => drawn.size(device),
        }
    }

    /// Numbers of samples of all devices.
    pub fn sizes(&self) -> Vec<u32> {
        (0..self.devices() as u32).map(|device| self.size(device)).collect()
    }

    /// Samples of a device, ascending.
    pub fn of(&self, device: u32) -> Cow<'_, [u32]> {
        match self {
            Self::Dealt(partition) => Cow::Borrowed(&partition.devices[device as usize].samples),
            Self::Drawn(drawn) => Cow::Owned(drawn.of(device)),
        }
    }

    /// Samples of each label on a device.
    pub fn label_counts(&self, device: u32, labels: &[u8], classes: usize) -> Vec<u32> {
        let mut counts = vec![0; classes];
        for &sample in &*self.of(device) {
            counts[usize::from(labels[sample as usize])] += 1;
        }
        counts
    }

    /// A device as a line of a table.
    pub fn row(&self, device: u32, labels: &[u8], classes: usize) -> Row {
        let iid = self.dealt().and_then(|partition| partition.devices[device as usize].iid);
        Row {
            device,
            kind: match iid {
                Some(true) => "iid",
                Some(false) => "non-iid",
                None => "-",
            },
            samples: self.size(device),
            label_counts: self.label_counts(device, labels, classes),
        }
    }

    /// A digest of who holds which records: of the records themselves, or of the way they are drawn.
    pub(crate) fn digest(&self) -> [u8; 32] {
        match self {
            Self::Dealt(partition) => digest(partition.devices.iter().map(|d| &*d.samples)),
            Self::Drawn(drawn) => Sha256::digest(drawn.description()).into(),
        }
    }
}

/// Digest of the records that each device holds.
pub(crate) fn digest<'a>(devices: impl Iterator<Item = &'a [u32]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for samples in devices {
        hash.update((samples.len() as u64).to_le_bytes());
        samples.iter().for_each(|sample| hash.update(sample.to_le_bytes()));
    }
    hash.finalize().into()
}
