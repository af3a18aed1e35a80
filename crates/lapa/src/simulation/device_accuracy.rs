//! Accuracy of each device, which only a simulation can know: the labels of a device are private.

use std::convert::Infallible;

use super::Simulation;
use crate::config::Entropy;
use crate::model::Confusion;
use crate::observe::{DeviceAccuracy, OneDevice};

/// Devices whose labels are counted in a row by one thread.
const BLOCK: usize = 1024;

impl Simulation {
    /// The accuracy of each device, from those of the classes and from how many samples of each it
    /// holds. Classes that are not tested do not count. `None` with the operating system's entropy,
    /// where runs are meant to protect someone: no noise covers these numbers.
    pub(crate) fn device_accuracy(&self, confusion: &Confusion) -> Option<DeviceAccuracy> {
        if self.experiment().run.entropy == Entropy::Os {
            return None;
        }
        let class_accuracy = confusion.class_accuracy();
        let (records, labels) = (self.records(), &self.data().train.labels);
        let of = |device: usize| {
            let counts = records.label_counts(device as u32, labels, class_accuracy.len());
            let (mut right, mut tested) = (0.0, 0.0);
            for (&count, accuracy) in counts.iter().zip(&class_accuracy) {
                if let Some(accuracy) = accuracy {
                    right += f64::from(count) * accuracy;
                    tested += f64::from(count);
                }
            }
            let samples = counts.iter().sum();
            let accuracy = right / tested;
            (tested > 0.0).then_some(OneDevice { device: device as u32, samples, accuracy })
        };
        let all = records.devices();
        let blocks: Result<Vec<Vec<OneDevice>>, Infallible> =
            self.devices.pool.for_each(&vec![1; all.div_ceil(BLOCK)], |_, block| {
                let first = block * BLOCK;
                Ok((first..all.min(first + BLOCK)).filter_map(of).collect())
            });
        let Ok(blocks) = blocks;
        DeviceAccuracy::of(blocks.concat())
    }
}
