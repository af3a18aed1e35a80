//! Units of attacks: from the least to the largest value that a network sees of the attacker's own samples.

use lapa::data::{Split, Values};
use lapa::model::Shape;

/// True if values have neighbors, in rows and columns.
pub(crate) fn is_image(shape: Shape) -> bool {
    shape.rows > 1 && shape.cols > 1
}

/// Ends of each value, over the test set, which the base station has: of images one pair for each
/// channel, of vectors one for each value.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The value that counts as 0.
    pub(crate) least: Vec<f32>,
    /// The value that counts as 1, less that of 0.
    pub(crate) span: Vec<f32>,
}

impl Scale {
    /// The scale of samples; `None` for bytes as they are, which a network sees in [0, 1].
    pub fn of(own: &Split) -> Option<Self> {
        if let Values::Bytes(_) = own.values {
            return None;
        }
        let shape = own.shape;
        let together = if is_image(shape) { shape.area() } else { 1 };
        let mut ends = vec![[f32::INFINITY, f32::NEG_INFINITY]; shape.len() / together];
        for sample in (0..own.len()).map(|i| own.input(i)) {
            for (ends, values) in ends.iter_mut().zip(sample.chunks_exact(together)) {
                for &value in values {
                    *ends = [ends[0].min(value), ends[1].max(value)];
                }
            }
        }
        // A value that never changes has a span of 1, as any other would do.
        let span = |[least, most]: [f32; 2]| if most > least { most - least } else { 1.0 };
        let each = |of: &dyn Fn([f32; 2]) -> f32| {
            ends.iter().flat_map(|&ends| std::iter::repeat_n(of(ends), together)).collect()
        };
        Some(Self { least: each(&|[least, _]| least), span: each(&span) })
    }

    /// As a network sees it.
    pub(crate) fn input(&self, units: &[f32], input: &mut Vec<f32>) {
        input.clear();
        let ends = self.least.iter().zip(&self.span).cycle();
        input.extend(units.iter().zip(ends).map(|(unit, (least, span))| least + span * unit));
    }

    /// In units of the scale.
    pub(crate) fn units(&self, mut input: Vec<f32>) -> Vec<f32> {
        let ends = self.least.iter().zip(&self.span);
        input.iter_mut().zip(ends).for_each(|(x, (least, span))| *x = (*x - least) / span);
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(values: Vec<f32>, shape: Shape) -> Split {
        Split { labels: vec![0; values.len() / shape.len()], values: values.into(), shape }
    }

    #[test]
    fn columns_of_a_table_and_channels_of_images_have_ends_of_their_own() {
        let table = split(vec![-1.0, 5.0, 7.0, 3.0, 5.0, 9.0], Shape::new(1, 1, 3));
        let scale = Scale::of(&table).unwrap();
        assert_eq!(scale, Scale { least: vec![-1.0, 5.0, 7.0], span: vec![4.0, 1.0, 2.0] });
        assert_eq!(scale.units(vec![1.0, 5.0, 11.0]), [0.5, 0.0, 2.0]);
        let mut input = Vec::new();
        scale.input(&[0.5, 0.0, 2.0], &mut input);
        assert_eq!(input, [1.0, 5.0, 11.0]);
        let image = split((0..8).map(|v| v as f32).collect(), Shape::new(2, 2, 2));
        let ends = |least: f32| vec![least; 4];
        let scale = Scale::of(&image).unwrap();
        assert_eq!(scale.least, [ends(0.0), ends(4.0)].concat());
        assert_eq!(scale.span, [3.0; 8]);
        let bytes =
            Split { values: vec![0u8; 4].into(), labels: vec![0], shape: Shape::new(1, 2, 2) };
        assert_eq!(Scale::of(&bytes), None);
    }
}
