//! Normalization: the declared map from values to what a network sees.

use std::cmp::Ordering;
use std::sync::Arc;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Data, DataError, Result, Split, Values};
use crate::shape::Shape;

/// Number with a total order, that of IEEE 754.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Number(pub f64);

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Number {}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

/// A number for all values of a sample, or for each channel; for each value of a vector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerChannel {
    /// The same for all.
    All(Number),
    /// One for each.
    Each(Vec<Number>),
}

/// Schema of means.
pub(super) fn means(_: &mut SchemaGenerator) -> Schema {
    numbers(-MOST)
}

/// Schema of standard deviations, by which values are divided.
pub(super) fn deviations(_: &mut SchemaGenerator) -> Schema {
    numbers(1.0 / MOST)
}

/// Largest number of a normalization.
const MOST: f64 = 1e9;

fn numbers(least: f64) -> Schema {
    let number = json_schema!({ "type": "number", "minimum": least, "maximum": MOST });
    json_schema!({ "anyOf": [number, { "type": "array", "items": number, "minItems": 1 }] })
}

impl PerChannel {
    /// The numbers as they stand there.
    pub fn numbers(&self) -> &[Number] {
        match self {
            Self::All(number) => std::slice::from_ref(number),
            Self::Each(numbers) => numbers,
        }
    }
}

/// Normalization of a value x in part i of a sample: (scale·x − meanᵢ)/stdᵢ.
struct Normalization<'a> {
    scale: Option<f64>,
    mean: Option<&'a PerChannel>,
    std: Option<&'a PerChannel>,
    /// Equal parts of a sample with numbers of their own.
    parts: usize,
}

impl<'a> Normalization<'a> {
    /// The normalization that is declared for samples of a shape, if one is.
    fn new(data: &'a Data, shape: Shape) -> Result<Option<Self>> {
        let Data { scale, mean, std, .. } = data;
        if scale.is_none() && mean.is_none() && std.is_none() {
            return Ok(None);
        }
        let most = if shape.channels == 1 && shape.rows == 1 { shape.cols } else { shape.channels };
        let mut parts = 1;
        for (key, numbers) in [("mean", mean), ("std", std)] {
            match numbers {
                Some(PerChannel::Each(numbers)) if numbers.len() == most => parts = most,
                Some(PerChannel::Each(numbers)) if numbers.len() != 1 => {
                    let given = numbers.len();
                    return Err(DataError::Normalization { key, given, expected: most, shape });
                }
                _ => {}
            }
        }
        let scale = scale.map(|scale| scale.0);
        Ok(Some(Self { scale, mean: mean.as_ref(), std: std.as_ref(), parts }))
    }

    /// Normalized value of a part, whose scale is `unit` by default.
    fn seen(&self, part: usize, value: f64, unit: f64) -> f32 {
        let number = |numbers: Option<&PerChannel>, default: f64| {
            let numbers = numbers.map_or(&[][..], PerChannel::numbers);
            numbers.get(part).or(numbers.first()).map_or(default, |number| number.0)
        };
        let scaled = self.scale.unwrap_or(unit) * value;
        ((scaled - number(self.mean, 0.0)) / number(self.std, 1.0)) as f32
    }

    fn apply(&self, split: &mut Split) {
        let part = split.shape.len() / self.parts;
        match &mut split.values {
            Values::Floats(floats) => {
                for (at, values) in Arc::make_mut(floats).chunks_exact_mut(part).enumerate() {
                    let part = at % self.parts;
                    values.iter_mut().for_each(|x| *x = self.seen(part, f64::from(*x), 1.0));
                }
            }
            Values::Bytes(bytes) => {
                let table =
                    |part| std::array::from_fn(|byte| self.seen(part, byte as f64, 1.0 / 255.0));
                let tables: Vec<_> = (0..self.parts).map(table).collect();
                split.values = Values::Normalized(bytes.clone(), tables.into());
            }
            // Seen as they should be already.
            Values::Normalized(..) | Values::Halves(_) => {}
        }
    }
}

impl Data {
    /// Normalizes samples as declared; leaves them as they are without a declaration.
    pub fn normalize(&self, split: &mut Split) -> Result<()> {
        if let Some(normalization) = Normalization::new(self, split.shape)? {
            normalization.apply(split);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataName;

    fn each(numbers: &[f64]) -> Option<PerChannel> {
        Some(PerChannel::Each(numbers.iter().copied().map(Number).collect()))
    }

    fn seen(data: &Data, values: Values, shape: Shape) -> Result<Vec<f32>> {
        let labels = vec![0; values.len() / shape.len()];
        let mut split = Split { values, labels, shape };
        data.normalize(&mut split)?;
        Ok((0..split.len()).flat_map(|i| split.input(i)).collect())
    }

    /// The usual figures of CIFAR-10 against the formula of torchvision's `ToTensor` and `Normalize`.
    #[test]
    fn bytes_are_normalized_by_channel() {
        let (mean, std) = ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]);
        let data = Data { mean: each(&mean), std: each(&std), ..Data::named(DataName::Synthetic) };
        let shape = Shape::new(3, 2, 1);
        let bytes: Vec<u8> = vec![0, 255, 10, 20, 128, 200, 1, 2, 3, 4, 5, 6];
        let found = seen(&data, bytes.clone().into(), shape).unwrap();
        for (at, (found, byte)) in found.iter().zip(bytes).enumerate() {
            let channel = at % 6 / 2;
            let expected = (f64::from(byte) / 255.0 - mean[channel]) / std[channel];
            assert_eq!(*found, expected as f32, "{at}");
        }
    }

    #[test]
    fn columns_of_a_table_have_numbers_of_their_own() {
        let data = Data {
            scale: Some(Number(2.0)),
            mean: each(&[1.0, 10.0]),
            std: Some(PerChannel::All(Number(4.0))),
            ..Data::named(DataName::Synthetic)
        };
        let table = Shape::new(1, 1, 2);
        let found = seen(&data, vec![1.5f32, 5.0, -3.0, 7.0].into(), table).unwrap();
        assert_eq!(found, [0.5, 0.0, -1.75, 1.0]);
        let error = seen(&data, vec![0u8; 4].into(), Shape::new(1, 2, 2)).unwrap_err().to_string();
        assert!(error.contains("`data.mean` has 2 numbers") && error.contains("or 1"), "{error}");
        let undeclared = Data::named(DataName::Synthetic);
        assert_eq!(seen(&undeclared, vec![1.5f32, 5.0].into(), table).unwrap(), [1.5, 5.0]);
    }
}
