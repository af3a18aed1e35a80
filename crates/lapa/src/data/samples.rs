//! Labeled samples in memory.

use std::ops::Range;
use std::sync::Arc;

use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::shape::Shape;

/// Values of samples, one sample after the other; shared by copies.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Bytes, as of images. A network sees 255 as 1.
    Bytes(Arc<Vec<u8>>),
    /// Floats. A network sees them as they are.
    Floats(Arc<Vec<f32>>),
    /// Floats of 16 bits, as of features. A network sees them as they are.
    Halves(Arc<Vec<f16>>),
    /// Bytes that a network sees through tables.
    Normalized(Arc<Vec<u8>>, Tables),
}

/// Values that a network sees in place of bytes: a table for all values of a sample, or for equal parts of it, such
/// as channels, in their order.
pub type Tables = Arc<Vec<[f32; 256]>>;

/// A sample's bytes as a network sees them through tables.
pub(crate) fn look_up(tables: &[[f32; 256]], bytes: &[u8], seen: &mut [f32]) {
    let part = bytes.len() / tables.len();
    let parts = bytes.chunks_exact(part).zip(seen.chunks_exact_mut(part));
    for (table, (bytes, seen)) in tables.iter().zip(parts) {
        for (seen, &byte) in seen.iter_mut().zip(bytes) {
            *seen = table[usize::from(byte)];
        }
    }
}

impl From<Vec<u8>> for Values {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<Vec<f32>> for Values {
    fn from(floats: Vec<f32>) -> Self {
        Self::Floats(floats.into())
    }
}

impl From<Vec<f16>> for Values {
    fn from(halves: Vec<f16>) -> Self {
        Self::Halves(halves.into())
    }
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) | Self::Normalized(bytes, _) => bytes.len(),
            Self::Floats(floats) => floats.len(),
            Self::Halves(halves) => halves.len(),
        }
    }

    /// True if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if that is what they are, however a network sees them.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) | Self::Normalized(bytes, _) => Some(bytes),
            Self::Floats(_) | Self::Halves(_) => None,
        }
    }

    /// Kind of the values, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bytes(_) | Self::Normalized(..) => "bytes",
            Self::Floats(_) => "floats",
            Self::Halves(_) => "halves",
        }
    }

    /// These and then others of the same kind.
    ///
    /// # Panics
    /// If the others are of another kind.
    pub fn joined(&self, others: &Self) -> Self {
        match (self, others) {
            (Self::Bytes(a), Self::Bytes(b)) => [&***a, &***b].concat().into(),
            (Self::Floats(a), Self::Floats(b)) => [&***a, &***b].concat().into(),
            (Self::Halves(a), Self::Halves(b)) => [&***a, &***b].concat().into(),
            (Self::Normalized(a, tables), Self::Normalized(b, _)) => {
                Self::Normalized([&***a, &***b].concat().into(), tables.clone())
            }
            _ => panic!("{} and {} do not join", self.kind(), others.kind()),
        }
    }

    /// Copies of some parts, one after the other.
    pub fn select(&self, parts: impl Iterator<Item = Range<usize>>) -> Self {
        fn copy<T: Copy>(all: &[T], parts: impl Iterator<Item = Range<usize>>) -> Vec<T> {
            let mut selected = Vec::new();
            parts.for_each(|part| selected.extend_from_slice(&all[part]));
            selected
        }
        match self {
            Self::Bytes(bytes) => copy(bytes, parts).into(),
            Self::Floats(floats) => copy(floats, parts).into(),
            Self::Halves(halves) => copy(halves, parts).into(),
            Self::Normalized(bytes, tables) => {
                Self::Normalized(copy(bytes, parts).into(), tables.clone())
            }
        }
    }
}

/// Samples whose channels stand together in each pixel, channel by channel.
pub(super) fn planes<T: Copy>(values: &[T], shape: Shape) -> Vec<T> {
    let mut planes = Vec::with_capacity(values.len());
    for sample in values.chunks_exact(shape.len()) {
        for channel in 0..shape.channels {
            planes.extend(sample.iter().skip(channel).step_by(shape.channels));
        }
    }
    planes
}

/// Labeled samples of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Values of one sample after the other, channel by channel and row by row.
    pub values: Values,
    /// One label per sample.
    pub labels: Vec<u8>,
    /// Shape of a sample.
    pub shape: Shape,
}

impl Split {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True if there is no sample.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Places of the values of sample `i`.
    pub fn places(&self, i: usize) -> Range<usize> {
        let len = self.shape.len();
        i * len..(i + 1) * len
    }

    /// Sample `i` as a network sees it.
    pub fn input(&self, i: usize) -> Vec<f32> {
        let mut input = vec![0.0; self.shape.len()];
        self.copy_input(i, &mut input);
        input
    }

    /// Writes sample `i` as a network sees it.
    pub(crate) fn copy_input(&self, i: usize, input: &mut [f32]) {
        let places = self.places(i);
        match &self.values {
            Values::Bytes(bytes) => {
                for (value, &byte) in input.iter_mut().zip(&bytes[places]) {
                    *value = f32::from(byte) * (1.0 / 255.0);
                }
            }
            Values::Floats(floats) => input.copy_from_slice(&floats[places]),
            Values::Halves(halves) => halves[places].convert_to_f32_slice(input),
            Values::Normalized(bytes, tables) => look_up(tables, &bytes[places], input),
        }
    }

    /// Copies of some samples, in the order given.
    pub fn select(&self, samples: &[u32]) -> Self {
        let places = samples.iter().map(|&i| self.places(i as usize));
        let labels = samples.iter().map(|&i| self.labels[i as usize]).collect();
        Self { values: self.values.select(places), labels, shape: self.shape }
    }
}
