//! Accuracy of each device, for its own mix of labels.

use serde::{Deserialize, Serialize};

use super::Quantiles;

/// Devices that are listed one by one; of more, both ends are.
pub const MOST_LISTED: usize = 100;
/// Devices of each end.
pub const END: usize = 10;

/// Accuracy of devices on test samples weighted to their own shares of labels: Σ_c (n_kc/n_k)·a_c, with
/// n_kc samples of class c on device k and a_c the accuracy of the class. Not observable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceAccuracy {
    /// Devices with a sample of a class that is tested.
    pub count: u32,
    /// Over all of them.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// The devices from the worst to the best; of more than 100 the ten worst and the ten best.
    pub devices: Vec<OneDevice>,
}

/// Accuracy of one device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct OneDevice {
    /// The device, from 0.
    pub device: u32,
    /// Samples the device holds.
    pub samples: u32,
    /// Its accuracy.
    pub accuracy: f64,
}

impl DeviceAccuracy {
    /// Of these devices; `None` without any.
    pub fn of(mut devices: Vec<OneDevice>) -> Option<Self> {
        let quantiles = Quantiles::of(devices.iter().map(|one| one.accuracy))?;
        devices.sort_by(|a, b| a.accuracy.total_cmp(&b.accuracy).then(a.device.cmp(&b.device)));
        let count = devices.len();
        if count > MOST_LISTED {
            devices.drain(END..count - END);
        }
        Some(Self { count: count as u32, quantiles, devices })
    }

    /// True if only the ends are listed.
    pub fn is_cut(&self) -> bool {
        self.devices.len() < self.count as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(count: u32) -> Vec<OneDevice> {
        let accuracy = |device: u32| f64::from(device * 37 % 101) / 101.0;
        let one = |device| OneDevice { device, samples: 9, accuracy: accuracy(device) };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_worst_come_first_and_of_many_both_ends() {
        assert_eq!(DeviceAccuracy::of(Vec::new()), None);
        let few = DeviceAccuracy::of(devices(100)).unwrap();
        assert!(!few.is_cut() && few.devices.is_sorted_by_key(|one| one.accuracy));
        let many = DeviceAccuracy::of(devices(101)).unwrap();
        assert!(many.is_cut() && many.devices.len() == 20 && many.count == 101);
        // 37 is prime to 101: every share once.
        let shares: Vec<f64> = (0..10).chain(91..101).map(|i| f64::from(i) / 101.0).collect();
        assert_eq!(many.devices.iter().map(|one| one.accuracy).collect::<Vec<_>>(), shares);
        assert_eq!((many.quantiles.min, many.quantiles.median), (0.0, 50.0 / 101.0));
        let text = serde_json::to_string(&many).unwrap();
        assert!(text.starts_with("{\"count\":101,\"min\":0.0,\"q25\""), "{text}");
        assert_eq!(serde_json::from_str::<DeviceAccuracy>(&text).unwrap(), many);
    }
}
