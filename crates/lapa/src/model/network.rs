//! A list of layers, checked and turned into ops over one flat parameter vector.

use std::ops::Range;

use rand::RngExt;

use super::chain::OpSlot;
use super::layer::{Layer, ModelError, Shape};
use super::memory::Footprint;
use super::plan::{Init, Plan};
use crate::seed::Stream;

/// Code that computes a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernels {
    /// The fastest kernels that this processor and the shapes allow.
    #[default]
    Fast,
    /// im2col and matrix products only: slower, simple, any processor. Tests compare with it.
    Reference,
}

/// A named part of the parameter vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Layer position and role, such as `0.conv.weight`.
    pub name: String,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Its range in the parameter vector.
    pub range: Range<usize>,
}

/// A layer of a network, as it is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerInfo {
    /// Position in the list, from 0; `2.1` is the second layer of the block in the third place,
    /// `2.shortcut.0` the convolution beside it.
    pub place: String,
    /// The layer.
    pub layer: Layer,
    /// Its input.
    pub input: Shape,
    /// Its output.
    pub output: Shape,
    /// Its parameters. Those of a block are counted at the layers inside it.
    pub parameters: usize,
    /// Multiply-adds of its outputs for one sample, as if no padding and no zeros were left out.
    pub multiply_adds: u64,
}

/// A model: ops, and where their parameters lie.
pub struct Network {
    pub(super) input: Shape,
    pub(super) classes: usize,
    pub(super) ops: Vec<OpSlot>,
    plan: Plan,
}

impl Network {
    /// Builds a network for images of shape `input`; the last layer's outputs are the classes.
    pub fn new(input: Shape, layers: &[Layer]) -> Result<Self, ModelError> {
        Self::with_kernels(input, layers, Kernels::Fast)
    }

    /// As [`Network::new`], with a choice of kernels.
    pub fn with_kernels(
        input: Shape,
        layers: &[Layer],
        kernels: Kernels,
    ) -> Result<Self, ModelError> {
        let mut plan = Plan::new(input, kernels);
        let (ops, output) = plan.path("", layers, input, (0, 0))?;
        Ok(Self { input, classes: output.len(), ops, plan })
    }

    /// Length q of the parameter vector.
    pub fn parameter_count(&self) -> usize {
        self.plan.parameter_count
    }

    /// Length of the statistics vector: per batch norm layer, mean and mean square per channel.
    /// Both average linearly over batches and devices. 0 without batch norm.
    pub fn statistics_count(&self) -> usize {
        self.plan.statistics_count
    }

    /// Named parts of the parameter vector, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.plan.tensors
    }

    /// Named parts of the statistics vector, in order.
    pub fn statistics_tensors(&self) -> &[Tensor] {
        &self.plan.statistics_tensors
    }

    /// The layers, in order; those of a block follow it.
    pub fn layers(&self) -> &[LayerInfo] {
        &self.plan.layers
    }

    /// Values per input.
    pub fn inputs(&self) -> usize {
        self.input.len()
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Memory of a worker.
    pub fn footprint(&self) -> Footprint {
        self.plan.footprint
    }

    /// True if a sample's gradient depends on the others of its batch (batch norm): then there
    /// are no per-sample gradients to clip.
    pub fn mixes_samples(&self) -> bool {
        self.plan.mixes_samples
    }

    /// Random initial parameters.
    pub fn initial_parameters(&self, rng: &mut Stream) -> Vec<f32> {
        let mut parameters = vec![0.0; self.plan.parameter_count];
        for (range, init) in &self.plan.init {
            for value in &mut parameters[range.clone()] {
                *value = match *init {
                    Init::Constant(constant) => constant,
                    Init::Uniform(bound) => bound * (2.0 * rng.random::<f32>() - 1.0),
                };
            }
        }
        parameters
    }
}
