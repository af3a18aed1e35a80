//! Errors of partitions.

use thiserror::Error;

use super::{IDLE_BYTES, MOST_DEVICES};
use crate::shape::Shape;

/// A partition that the training set does not allow. The texts name the keys to change.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PartitionError {
    /// There is nobody to give samples to.
    #[error("the partition has no devices: at least 1 is needed")]
    NoDevices,

    /// Some device would stay empty.
    #[error(
        "{key} = {devices}: expected at most {samples}, the number of training samples, since every \
         device needs one of its own; use fewer devices, or partition.scheme = \"virtual\", whose \
         devices share records"
    )]
    MoreDevicesThanSamples {
        /// Key of the number of devices.
        key: &'static str,
        /// Devices asked for.
        devices: u32,
        /// Samples in the training set.
        samples: usize,
    },

    /// Even the smallest sizes do not fit.
    #[error(
        "[partition]: the {devices} devices need at least {needed} samples in total, but the training set has \
         {samples}: lower the number of devices or the minimum of their samples"
    )]
    NotEnoughSamples {
        /// Devices asked for.
        devices: usize,
        /// Sum of their smallest sizes.
        needed: u64,
        /// Samples in the training set.
        samples: u64,
    },

    /// More labels per device than there are.
    #[error(
        "`partition.mix.labels` requires up to {labels} labels, but the data set has {classes}"
    )]
    MoreLabelsThanClasses {
        /// Labels asked for.
        labels: u32,
        /// Labels of the data set.
        classes: usize,
    },

    /// A device cannot hold more labels than samples.
    #[error(
        "`partition.mix.labels` requires at least {labels} labels, but `partition.mix.non_iid_samples` \
         allows devices of {samples} samples"
    )]
    MoreLabelsThanSamples {
        /// Fewest labels of a device.
        labels: u32,
        /// Fewest samples of a device.
        samples: u32,
    },

    /// The non-IID devices do not find enough samples among few labels.
    #[error(
        "cannot give each of {devices} non-IID devices at least {min_samples} samples of \
         at most {max_labels} labels: next to the {iid} IID devices, the {classes} labels have \
         {fewest} to {most} samples left. Raise the maximum of `partition.mix.labels`, or lower the \
         minimum of `partition.mix.non_iid_samples` or `partition.mix.iid_samples`, or use fewer devices"
    )]
    LabelsDoNotFit {
        /// Non-IID devices.
        devices: u32,
        /// IID devices.
        iid: u32,
        /// Fewest samples of a non-IID device.
        min_samples: u32,
        /// Most labels of a non-IID device.
        max_labels: u32,
        /// Labels of the data set.
        classes: usize,
        /// Samples that the IID devices, at their smallest, leave of the scarcest label.
        fewest: u32,
        /// The same for the most plentiful label.
        most: u32,
    },

    /// Too few devices, or too many.
    #[error(
        "`partition.mix.iid` = {iid} and `partition.mix.non_iid` = {non_iid} make {devices} devices: \
         expected from 1 to {MOST_DEVICES}{}",
        crowd(sum(*iid, *non_iid)).map_or_else(String::new, |memory| format!(" ({memory})")),
        devices = sum(*iid, *non_iid)
    )]
    Mix {
        /// IID devices.
        iid: u32,
        /// Non-IID devices.
        non_iid: u32,
    },

    /// The Dirichlet draws always leave a device without samples.
    #[error(
        "with `partition.{key}` = {concentration}, every draw (tried: {draws}) left some of the \
         {devices} devices (`partition.{scheme}.devices`) without any of the {samples} samples: raise \
         the concentration, use fewer devices, or partition.scheme = \"virtual\", whose devices share \
         records"
    )]
    EmptyDevice {
        /// Scheme.
        scheme: &'static str,
        /// Key of the concentration, after `partition.`.
        key: &'static str,
        /// Concentration of the Dirichlet distribution.
        concentration: f64,
        /// Devices asked for.
        devices: u32,
        /// Samples in the training set.
        samples: u64,
        /// Draws made.
        draws: u32,
    },

    /// No Dirichlet distribution has this concentration.
    #[error("`partition.{key}` = {concentration}: expected a finite number above 0")]
    Concentration {
        /// Its key, after `partition.`.
        key: &'static str,
        /// The concentration.
        concentration: f64,
    },

    /// The shards would be empty, or there would be none.
    #[error(
        "`partition.shards.devices` = {devices} with `partition.shards.per_device` = {per_device} each: \
         expected at least one shard per device, and no more shards in total than the {samples} training \
         samples; use fewer of either, or partition.scheme = \"virtual\", whose devices share records"
    )]
    Shards {
        /// Devices asked for.
        devices: u32,
        /// Shards of each.
        per_device: u32,
        /// Samples in the training set.
        samples: u64,
    },

    /// Devices share records, where each record should be on one device.
    #[error(
        "`partition.scheme` = \"virtual\": its devices share records; this needs devices that have no \
         record in common (mix, dirichlet, shards, iid or column)"
    )]
    Shared,

    /// The same, where each record should have the features of its device.
    #[error(
        "`partition.scheme` = \"virtual\": its devices share records, so that `partition.rotation` and \
         `partition.noise` cannot give each device features of its own"
    )]
    SharedSkew,

    /// There are no devices in the data.
    #[error(
        "`partition.scheme` = \"column\": the data set has no column of devices; expected a column `device` \
         (csv:PATH, parquet:PATH) or an array device_train (npz:PATH)"
    )]
    NoColumn,

    /// Another number of devices in the data.
    #[error(
        "`partition.column.devices` = {devices}, but the column of the training set has {found} different \
         devices: set partition.column.devices = {found}"
    )]
    ColumnDevices {
        /// Devices asked for.
        devices: u32,
        /// Devices in the column.
        found: u32,
    },

    /// Nothing that could be turned.
    #[error("`partition.rotation` turns images, and the samples are of {}", shape.of_image())]
    NoImages {
        /// Shape of the samples.
        shape: Shape,
    },

    /// Sizes by two rules.
    #[error(
        "`partition.iid.sizes_concentration` does not go with `partition.iid.samples`: the one draws the \
         sizes of the devices, the other sets them"
    )]
    TwoSizes,

    /// A device might draw more samples than a label has.
    #[error(
        "`partition.virtual.samples` allows devices of {samples} samples, which may all be of one label: \
         expected at most {rarest}, the samples of the rarest label; lower partition.virtual.samples"
    )]
    RareLabel {
        /// Most samples of a device.
        samples: u32,
        /// Samples of the rarest label.
        rarest: usize,
    },

    /// Not a range.
    #[error("`partition.{key}` = [{min}, {max}]: expected [min, max] with 1 ≤ min ≤ max")]
    Range {
        /// The key.
        key: &'static str,
        /// Its first number.
        min: u32,
        /// Its second number.
        max: u32,
    },
}

fn sum(iid: u32, non_iid: u32) -> u64 {
    u64::from(iid) + u64::from(non_iid)
}

/// Memory of more devices than there may be, in words.
pub(crate) fn crowd(devices: u64) -> Option<String> {
    (devices > MOST_DEVICES.into()).then(|| {
        let bytes = devices.saturating_mul(IDLE_BYTES) as f64;
        format!("this many devices take {:.1} GB even if none of them takes part", bytes / 1e9)
    })
}

impl PartitionError {
    /// Advice for a contradiction in a configuration.
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::Range { .. } => "write the smaller number first",
            Self::TwoSizes => "remove one of them",
            Self::SharedSkew => {
                "remove partition.rotation and partition.noise, or use another scheme"
            }
            _ => "change partition.mix.iid or partition.mix.non_iid",
        }
    }

    /// The key of `[partition]` that is to be changed, where there is one.
    pub(crate) fn key(&self) -> Option<&'static str> {
        match self {
            Self::Range { key, .. } => Some(key),
            Self::Mix { .. } => Some("mix.iid"),
            Self::TwoSizes => Some("iid.sizes_concentration"),
            _ => None,
        }
    }
}
