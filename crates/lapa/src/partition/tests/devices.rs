//! Devices with sizes, records and features of their own.

use super::*;
use crate::data::digits;
use crate::shape::Shape;

#[test]
fn a_column_of_devices_is_the_partition() {
    let mut data = digits(6, 1);
    let deal = |data: &mut Dataset, devices| deal(&Column { devices }, Skew::default(), data, 1);
    assert_eq!(deal(&mut data, 3), Err(PartitionError::NoColumn));
    data.devices = Some(vec![2, 0, 1, 0, 2, 2]);
    let found = deal(&mut data, 3).unwrap();
    let held: Vec<_> = found.devices.iter().map(|device| &device.samples[..]).collect();
    assert_eq!(held, [&[1, 3][..], &[2], &[0, 4, 5]]);
    // Synthetic labels count up.
    assert_eq!(found.devices[2].label_counts, [1, 0, 0, 0, 1, 1, 0, 0, 0, 0]);
    let error = deal(&mut data, 15).unwrap_err().to_string();
    assert!(
        error.contains("= 15, but") && error.contains("set partition.column.devices = 3"),
        "{error}"
    );
}

/// The share of a device has the mean 1/K and the variance (1/K)(1 − 1/K)/(Kα + 1); over 2000 draws
/// of K = 5 with α = 2, within 6 standard deviations of the mean of squares: α below 10⁻⁶.
#[test]
fn sizes_are_shares_of_a_dirichlet_distribution() {
    let (devices, concentration) = (5, 2.0);
    let spec = Iid { devices, sizes_concentration: Some(concentration), samples: None };
    let labels: Vec<u8> = (0..10_000).map(|i| (i % 10) as u8).collect();
    let mut squares = Vec::new();
    for seed in 0..400 {
        let found = partition(&spec, &labels, 10, seed).unwrap();
        let sizes = found.devices.iter().map(|device| device.samples.len() as f64 / 1e4);
        assert!((sizes.clone().sum::<f64>() - 1.0).abs() < 1e-12);
        squares.extend(sizes.map(|share| (share - 0.2).powi(2)));
    }
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    let spread =
        squares.iter().map(|x| (x - mean).powi(2)).sum::<f64>().sqrt() / squares.len() as f64;
    let expected = 0.2 * 0.8 / (5.0 * concentration + 1.0);
    assert!((mean - expected).abs() < 6.0 * spread, "{mean} {expected} {spread}");
    let two = Iid { samples: Some([1, 2]), ..spec };
    assert_eq!(two.check(), Err(PartitionError::TwoSizes));
}

/// Noise of device k of K has the standard deviation σ·k/K: 60,000 values each, within 6 standard
/// deviations of the estimate (α below 10⁻⁸). Records that nobody holds stay as they are.
#[test]
fn each_device_sees_its_records_in_its_own_way() {
    let skewed = |rotation, noise, seed| {
        let mut data = digits(300, 1);
        let gray = vec![0.5f32; 300 * 784];
        data.train.values = gray.into();
        let spec = Iid { samples: Some([80, 80]), ..iid(3) };
        let found = deal(&spec, Skew { rotation, noise }, &mut data, seed).unwrap();
        (data, found)
    };
    let (data, found) = skewed(None, Some(0.3), 5);
    for (device, held) in found.devices.iter().enumerate() {
        let values = held.samples.iter().flat_map(|&sample| data.train.input(sample as usize));
        let (sum, count) = values.fold((0.0, 0), |(sum, count), value| {
            (sum + (f64::from(value) - 0.5).powi(2), count + 1)
        });
        let (found, expected) = ((sum / f64::from(count)).sqrt(), 0.1 * (device + 1) as f64);
        let spread = expected / (2.0 * f64::from(count)).sqrt();
        assert!((found - expected).abs() < 6.0 * spread, "{device}: {found} {expected}");
    }
    let mut held: Vec<u32> = found.devices.iter().flat_map(|d| d.samples.clone()).collect();
    held.sort_unstable();
    let free = (0..300u32).find(|sample| held.binary_search(sample).is_err()).unwrap();
    assert_eq!(data.train.input(free as usize), vec![0.5; 784]);
    assert_eq!(data.train, skewed(None, Some(0.3), 5).0.train);
    assert_ne!(data.train, skewed(None, Some(0.3), 6).0.train);
    // Turned gray is gray in the middle and darker in the corners, to which nothing came.
    let (turned, found) = skewed(Some(60.0), None, 5);
    let corner = |device: usize| turned.train.input(found.devices[device].samples[0] as usize)[0];
    assert!((0..3).any(|device| corner(device) < 0.1), "{} {} {}", corner(0), corner(1), corner(2));
    let middle = turned.train.input(held[0] as usize)[14 * 28 + 14];
    assert!((middle - 0.5).abs() < 1e-6, "{middle}");
    // Bytes stay bytes, also those that a network sees through tables.
    let mut bytes = digits(20, 1);
    let before = bytes.train.clone();
    let skew = Skew { rotation: Some(0.0), noise: None };
    deal(&iid(2), skew, &mut bytes, 1).unwrap();
    assert_eq!(bytes.train, before);
    let mut table = digits(20, 1);
    table.train.shape = Shape::new(1, 1, 784);
    let error = deal(&iid(2), skew, &mut table, 1).unwrap_err().to_string();
    assert!(error.contains("turns images, and the samples are of 1×784"), "{error}");
}
