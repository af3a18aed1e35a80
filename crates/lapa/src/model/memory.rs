//! Memory of a network, counted before any of it is taken.

use super::layer::{Layer, Shape};

/// Bytes that images of one block may take in a worker that evaluates.
const BLOCK_BYTES: u64 = 1 << 26;

/// Bytes of one worker's buffers, about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// For each sample of a batch.
    pub per_sample: u64,
    /// Whatever the batch.
    pub fixed: u64,
}

impl Footprint {
    /// The images themselves, as floats.
    pub(super) fn of_input(input: Shape) -> Self {
        Self { per_sample: floats(&[input.len()]), fixed: 0 }
    }

    /// Adds a layer, or convolution, pooling and relu `fused` into one.
    pub(super) fn add(&mut self, layer: &Layer, fused: bool, input: Shape, output: Shape) {
        // Outputs and their gradients; positions of maxima are half as wide.
        let values = floats(&[2, output.len()]);
        let positions = floats(&[output.len()]) / 2;
        let (per_sample, fixed) = match *layer {
            Layer::Conv { kernel, .. } if fused => {
                // Lists of active cells, and one image; weights and their gradients, packed in lanes.
                let lanes = output.channels.next_multiple_of(16);
                let weights = floats(&[3, lanes, input.channels, kernel, kernel]);
                let cells = floats(&[5, output.len()]) + floats(&[input.len()]);
                (values + positions, cells.saturating_add(weights))
            }
            Layer::Conv { kernel, padding, .. } => {
                // Columns, or samples and their gradients with padding; packed weights.
                let side = |length: usize| length + 2 * (padding + kernel) + 8;
                let together = 1 + 64 / (output.rows * output.cols.div_ceil(8));
                let padded = |s: Shape| floats(&[together, s.channels, side(s.rows), side(s.cols)]);
                let columns = floats(&[input.channels, kernel, kernel, output.area()]);
                let weights = floats(&[3, output.channels, input.channels, kernel, kernel]);
                let fixed = columns.saturating_add(padded(input)).saturating_add(padded(output));
                (values, fixed.saturating_add(weights))
            }
            Layer::MaxPool { .. } => (values + positions, 0),
            Layer::BatchNorm => (values, floats(&[4, output.len()])),
            Layer::GroupNorm { groups } => (values + floats(&[2, groups]), 0),
            Layer::Linear { outputs } => (values + floats(&[outputs]), 0),
            // Beside what its layers take, each path has a copy of the input, and its gradient.
            Layer::Residual { .. } => (values + floats(&[4, input.len()]), 0),
            Layer::AveragePool { .. }
            | Layer::GlobalAveragePool
            | Layer::Relu
            | Layer::Tanh
            | Layer::Gelu => (values, 0),
        };
        self.per_sample = self.per_sample.saturating_add(per_sample);
        self.fixed = self.fixed.saturating_add(fixed);
    }

    /// Memory of a batch of `samples` samples.
    pub fn of_batch(&self, samples: usize) -> u64 {
        self.per_sample.saturating_mul(samples as u64).saturating_add(self.fixed)
    }

    /// As many samples as `bytes` have room for, at least one.
    pub fn samples_within(&self, bytes: u64) -> usize {
        (bytes / self.per_sample.max(1)).max(1) as usize
    }

    /// Samples that are evaluated together.
    pub(super) fn evaluated_together(&self) -> usize {
        self.samples_within(BLOCK_BYTES)
    }
}

/// Bytes of a product of floats.
fn floats(sides: &[usize]) -> u64 {
    sides.iter().fold(4, |bytes, &side| bytes.saturating_mul(side as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Norm;
    use crate::model::chain::Chain;
    use crate::model::network::{Kernels, Network};
    use crate::model::op::Saved;
    use crate::model::zoo::{cifar_cnn, cnn, resnet8};

    /// Bytes of a chain's buffers, and of those in it.
    fn bytes(chain: &Chain) -> usize {
        let of = |saved: &Saved| {
            let floats = [&saved.values, &saved.packed, &saved.scratch];
            let floats = floats.into_iter().chain(&saved.padded).map(Vec::len).sum::<usize>();
            4 * floats + 2 * saved.offsets.len() + saved.paths.iter().map(bytes).sum::<usize>()
        };
        let values = chain.activations.iter().chain(&chain.deltas).map(Vec::len).sum::<usize>();
        4 * values + chain.saved.iter().map(of).sum::<usize>()
    }

    /// The memory of a batch, beside the parameters and their gradients, was counted before.
    #[test]
    fn a_batch_takes_no_more_than_was_counted() {
        let shape = Shape::new(3, 30, 27);
        for layers in [cnn(Norm::Group, 10), cifar_cnn(10), resnet8(Norm::Group, 10)] {
            for (kernels, n) in [(Kernels::Fast, 5), (Kernels::Reference, 5), (Kernels::Fast, 40)] {
                let network = Network::with_kernels(shape, &layers, kernels).unwrap();
                let (q, ops) = (network.parameter_count(), &network.ops);
                let mut chain = Chain::default();
                let p = vec![0.01; q];
                chain.make_room(ops, shape.len(), n);
                chain.forward(ops, &p, n);
                chain.make_room_back(ops, n);
                chain.gradient(ops, &p, n, &mut vec![0.0; q]);
                chain.backward(ops, &p, n);
                let (taken, counted) = (bytes(&chain) as u64, network.footprint().of_batch(n));
                // Vector loads read past the end of each buffer.
                let slack = 32 * 4 * ops.len() as u64;
                assert!(taken <= counted + slack, "{taken} and {counted} bytes: {layers:?}");
                assert!(20 * taken > counted, "{taken} and {counted} bytes: {layers:?}");
            }
        }
    }
}
