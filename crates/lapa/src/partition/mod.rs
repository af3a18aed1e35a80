//! Stage 2: who holds which samples.

/// The training samples of each device, disjoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Per device: indices into the training set.
    pub devices: Vec<DeviceData>,
}

/// What one device holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceData {
    /// Indices into the training set.
    pub samples: Vec<u32>,
    /// Samples per label.
    pub label_counts: Vec<u32>,
    /// Whether the scheme meant this device to hold all labels equally (only `mix` and `iid` say).
    pub iid: Option<bool>,
}
