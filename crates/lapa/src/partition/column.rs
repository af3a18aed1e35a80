//! The scheme `column`: devices that the data name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DEVICES, DeviceData, MOST_DEVICES, Partition, PartitionError, PartitionScheme, Plan};
use crate::data::Dataset;
use crate::seed::Stream;

/// A device for each value of the column `device` of the training set, in the order of the values:
/// the writers of handwriting, the wearers of sensors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(description = "Parameters of scheme column.")]
pub struct Column {
    /// Number of devices: of different values in the column.
    #[schemars(range(min = 1, max = MOST_DEVICES))]
    pub devices: u32,
}

impl Default for Column {
    fn default() -> Self {
        Self { devices: DEVICES }
    }
}

impl PartitionScheme for Column {
    fn devices(&self) -> u32 {
        self.devices
    }

    fn devices_key(&self) -> &'static str {
        "`partition.column.devices`"
    }

    fn plan(&self, _: &[u32], _: &mut Stream) -> Result<Plan, PartitionError> {
        Err(PartitionError::NoColumn)
    }

    fn column(&self) -> Option<&Self> {
        Some(self)
    }
}

impl Column {
    /// The records of each device.
    pub(super) fn partition(&self, data: &Dataset) -> Result<Partition, PartitionError> {
        let of = data.devices.as_ref().ok_or(PartitionError::NoColumn)?;
        let found = of.iter().max().map_or(0, |last| last + 1);
        if found != self.devices {
            return Err(PartitionError::ColumnDevices { devices: self.devices, found });
        }
        let empty =
            || DeviceData { samples: Vec::new(), label_counts: vec![0; data.classes], iid: None };
        let mut devices: Vec<DeviceData> = (0..found).map(|_| empty()).collect();
        for (sample, (&device, &label)) in (0..).zip(of.iter().zip(&data.train.labels)) {
            let held = &mut devices[device as usize];
            held.samples.push(sample);
            held.label_counts[usize::from(label)] += 1;
        }
        Ok(Partition { devices })
    }
}
