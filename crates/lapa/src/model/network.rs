//! A list of layers, checked and turned into ops over one flat parameter vector.

use std::ops::Range;

use rand::RngExt;

use super::layer::{Layer, ModelError, Shape};
use super::memory::Footprint;
use super::op::{self, Op};
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

/// A model: ops, and where their parameters lie.
pub struct Network {
    pub(super) input: Shape,
    pub(super) classes: usize,
    pub(super) ops: Vec<OpSlot>,
    tensors: Vec<Tensor>,
    statistics_tensors: Vec<Tensor>,
    init: Vec<(Range<usize>, Init)>,
    parameter_count: usize,
    statistics_count: usize,
    mixes_samples: bool,
    footprint: Footprint,
}

/// A op and its share of the parameters and statistics.
pub(super) struct OpSlot {
    pub op: Box<dyn Op>,
    pub parameters: Range<usize>,
    pub statistics: Range<usize>,
}

/// Initial values of a range of parameters.
#[derive(Clone, Copy)]
enum Init {
    Constant(f32),
    /// Uniform in ±bound.
    Uniform(f32),
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
        let mut network = Self {
            input,
            classes: 0,
            ops: Vec::new(),
            tensors: Vec::new(),
            statistics_tensors: Vec::new(),
            init: Vec::new(),
            parameter_count: 0,
            statistics_count: 0,
            mixes_samples: layers.contains(&Layer::BatchNorm),
            footprint: Footprint::of_input(input),
        };
        let mut shape = input;
        let mut index = 0;
        while index < layers.len() {
            let outputs = |layer: Layer, input: Shape, index: usize| {
                layer.output(input).map_err(|reason| ModelError { index, layer, input, reason })
            };
            let layer = layers[index];
            let output = outputs(layer, shape, index)?;
            network.declare(index, layer, shape);
            if kernels == Kernels::Fast
                && let Some(op) = fuse(&layers[index..], shape)
            {
                let pooled = outputs(Layer::MaxPool, output, index + 1)?;
                network.footprint.add(layer, true, shape, pooled);
                network.push(op);
                shape = pooled;
                index += 3;
                continue;
            }
            network.footprint.add(layer, false, shape, output);
            network.push(plain_op(layer, shape, output));
            shape = output;
            index += 1;
        }
        network.classes = shape.len();
        Ok(network)
    }

    fn push(&mut self, op: Box<dyn Op>) {
        let parameters = self.parameter_count - op.parameter_count()..self.parameter_count;
        let first = self.statistics_count;
        self.statistics_count += op.statistics_count();
        self.ops.push(OpSlot { op, parameters, statistics: first..self.statistics_count });
    }

    /// Adds the tensors of a layer. Weights and biases of conv and linear start uniform in
    /// ±1/√fan-in, scales at 1 and shifts at 0: PyTorch's defaults.
    fn declare(&mut self, index: usize, layer: Layer, input: Shape) {
        let mut add = |role: &str, shape: Vec<usize>, init: Init| {
            let first = self.parameter_count;
            self.parameter_count += shape.iter().product::<usize>();
            let range = first..self.parameter_count;
            self.init.push((range.clone(), init));
            self.tensors.push(Tensor { name: format!("{index}.{role}"), shape, range });
        };
        match layer {
            Layer::Conv { channels, kernel } => {
                let fan_in = input.channels * kernel * kernel;
                let bound = Init::Uniform(1.0 / (fan_in as f32).sqrt());
                add("conv.weight", vec![channels, input.channels, kernel, kernel], bound);
                add("conv.bias", vec![channels], bound);
            }
            Layer::Linear { outputs } => {
                let bound = Init::Uniform(1.0 / (input.len() as f32).sqrt());
                add("linear.weight", vec![outputs, input.len()], bound);
                add("linear.bias", vec![outputs], bound);
            }
            Layer::BatchNorm | Layer::GroupNorm { .. } => {
                add("norm.weight", vec![input.channels], Init::Constant(1.0));
                add("norm.bias", vec![input.channels], Init::Constant(0.0));
            }
            Layer::MaxPool | Layer::Relu | Layer::Tanh => {}
        }
        if layer == Layer::BatchNorm {
            let first = self.statistics_count;
            for (role, at) in [("mean", first), ("mean_square", first + input.channels)] {
                self.statistics_tensors.push(Tensor {
                    name: format!("{index}.norm.{role}"),
                    shape: vec![input.channels],
                    range: at..at + input.channels,
                });
            }
        }
    }

    /// Length q of the parameter vector.
    pub fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    /// Length of the statistics vector: per batch norm layer, mean and mean square per channel.
    /// Both average linearly over batches and devices. 0 without batch norm.
    pub fn statistics_count(&self) -> usize {
        self.statistics_count
    }

    /// Named parts of the parameter vector, in order.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Named parts of the statistics vector, in order.
    pub fn statistics_tensors(&self) -> &[Tensor] {
        &self.statistics_tensors
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
        self.footprint
    }

    /// True if a sample's gradient depends on the others of its batch (batch norm): then there
    /// are no per-sample gradients to clip.
    pub fn mixes_samples(&self) -> bool {
        self.mixes_samples
    }

    /// Random initial parameters.
    pub fn initial_parameters(&self, rng: &mut Stream) -> Vec<f32> {
        let mut parameters = vec![0.0; self.parameter_count];
        for (range, init) in &self.init {
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

/// The fused op for conv + pool + relu at the front of `layers`, where there is one.
fn fuse(layers: &[Layer], input: Shape) -> Option<Box<dyn Op>> {
    #[cfg(target_arch = "x86_64")]
    if let [Layer::Conv { channels, kernel }, Layer::MaxPool, Layer::Relu, ..] = *layers {
        return op::ConvPoolRelu::new(input, channels, kernel)
            .map(|op| Box::new(op) as Box<dyn Op>);
    }
    None
}

fn plain_op(layer: Layer, input: Shape, output: Shape) -> Box<dyn Op> {
    match layer {
        Layer::Conv { kernel, .. } => Box::new(op::Conv { input, output, kernel }),
        Layer::MaxPool => Box::new(op::MaxPool { input }),
        Layer::Relu => Box::new(op::Relu { len: input.len() }),
        Layer::Tanh => Box::new(op::Tanh { len: input.len() }),
        Layer::BatchNorm => Box::new(op::BatchNorm { shape: input }),
        Layer::GroupNorm { groups } => Box::new(op::GroupNorm { shape: input, groups }),
        Layer::Linear { outputs } => Box::new(op::Linear { inputs: input.len(), outputs }),
    }
}
