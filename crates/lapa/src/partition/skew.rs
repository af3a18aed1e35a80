//! Feature skew: pictures that each device sees in its own way.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::StandardNormal;
use rayon::prelude::*;

use super::{Partition, PartitionError};
use crate::data::{Dataset, Values};
use crate::seed::{Purpose, stream};
use crate::shape::Shape;

/// Changes of the records of each device, which differ between devices.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Skew {
    /// Largest angle in degrees: device k turns its images by a_k, uniform in ±rotation.
    pub rotation: Option<f64>,
    /// Standard deviation of the noise on the values of the last device; device k of K has
    /// noise·k/K, k from 1 (Li, Diao, Chen and He, "Federated learning on non-IID data silos: an
    /// experimental study", 2022, noise-based feature imbalance). 1 is the range of a byte.
    pub noise: Option<f64>,
}

impl Skew {
    /// Changes the records that devices hold. Bytes are rounded, and stay bytes.
    pub(super) fn apply(
        self,
        data: &mut Dataset,
        partition: &Partition,
        seed: u64,
    ) -> Result<(), PartitionError> {
        if self == Self::default() {
            return Ok(());
        }
        let shape = data.train.shape;
        if self.rotation.is_some() && (shape.rows < 2 || shape.cols < 2) {
            return Err(PartitionError::NoImages { shape });
        }
        let count = partition.devices.len();
        let device = |k: usize| {
            let rotation = self.rotation.unwrap_or(0.0);
            let turn = stream(seed, Purpose::FeatureSkew, 0, k as u64).random_range(-1.0..=1.0);
            Device {
                number: k as u64,
                angle: (rotation * turn).to_radians(),
                noise: self.noise.unwrap_or(0.0) * (k + 1) as f64 / count as f64,
                is_turned: self.rotation.is_some(),
            }
        };
        let devices: Vec<Device> = (0..count).map(device).collect();
        let mut holder = vec![None; data.train.len()];
        for (device, held) in devices.iter().zip(&partition.devices) {
            held.samples.iter().for_each(|&sample| holder[sample as usize] = Some(device));
        }
        match &mut data.train.values {
            Values::Floats(floats) => {
                let samples = Arc::make_mut(floats).par_chunks_exact_mut(shape.len());
                samples.zip(&holder).enumerate().for_each(|(sample, (values, device))| {
                    if let Some(device) = device {
                        device.change(values, shape, 1.0, (seed, sample));
                    }
                });
            }
            // Features are no images.
            Values::Halves(_) => return Err(PartitionError::NoImages { shape }),
            Values::Bytes(bytes) | Values::Normalized(bytes, _) => {
                let samples = Arc::make_mut(bytes).par_chunks_exact_mut(shape.len());
                samples.zip(&holder).enumerate().for_each(|(sample, (bytes, device))| {
                    if let Some(device) = device {
                        let mut values: Vec<f32> = bytes.iter().map(|&byte| byte.into()).collect();
                        device.change(&mut values, shape, 255.0, (seed, sample));
                        let rounded =
                            values.iter().map(|value| (value + 0.5).clamp(0.0, 255.0) as u8);
                        bytes.iter_mut().zip(rounded).for_each(|(byte, value)| *byte = value);
                    }
                });
            }
        }
        Ok(())
    }
}

/// Change of the records of a device.
struct Device {
    number: u64,
    /// In radians, counterclockwise.
    angle: f64,
    noise: f64,
    is_turned: bool,
}

impl Device {
    /// Changes a sample whose values range over `unit`; its noise follows from the seed and its place
    /// in the training set.
    fn change(&self, values: &mut [f32], shape: Shape, unit: f64, (seed, sample): (u64, usize)) {
        if self.is_turned {
            for channel in values.chunks_exact_mut(shape.area()) {
                let turned = turned(channel, shape, self.angle);
                channel.copy_from_slice(&turned);
            }
        }
        if self.noise > 0.0 {
            let mut rng = stream(seed, Purpose::FeatureSkew, sample as u64 + 1, self.number);
            for value in values {
                let noise: f64 = rng.sample(StandardNormal);
                *value += (self.noise * unit * noise) as f32;
            }
        }
    }
}

/// A channel, turned about its middle by bilinear interpolation; what was outside is 0.
fn turned(channel: &[f32], shape: Shape, angle: f64) -> Vec<f32> {
    let (sin, cos) = angle.sin_cos();
    let [height, width] = [shape.rows, shape.cols].map(|side| (side as f64 - 1.0) / 2.0);
    let pixel = |row: i64, col: i64| {
        let is_inside =
            (0..shape.rows as i64).contains(&row) && (0..shape.cols as i64).contains(&col);
        if is_inside { f64::from(channel[row as usize * shape.cols + col as usize]) } else { 0.0 }
    };
    let value = |at: usize| {
        let (y, x) = ((at / shape.cols) as f64 - height, (at % shape.cols) as f64 - width);
        // The place that turns into this pixel; rows count downward.
        let (row, col) = (cos * y + sin * x + height, cos * x - sin * y + width);
        let (top, left) = (row.floor(), col.floor());
        let (down, right) = (row - top, col - left);
        let (top, left) = (top as i64, left as i64);
        let line = |row| (1.0 - right) * pixel(row, left) + right * pixel(row, left + 1);
        ((1.0 - down) * line(top) + down * line(top + 1)) as f32
    };
    (0..shape.area()).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quarter turn moves every pixel to another's place: `numpy.rot90`.
    #[test]
    fn a_quarter_turn_is_exact() {
        let shape = Shape::new(1, 3, 3);
        let channel = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let found = turned(&channel, shape, 90f64.to_radians());
        let expected = [3.0, 6.0, 9.0, 2.0, 5.0, 8.0, 1.0, 4.0, 7.0];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert_eq!(turned(&channel, shape, 0.0), channel);
    }
}
