//! The plan of a network: its layers in order become ops, and their parameters a place in the
//! vector.

use std::ops::Range;

use super::chain::OpSlot;
use super::layer::{Layer, ModelError, Shape, shortcut};
use super::memory::Footprint;
use super::network::{Kernels, LayerInfo, Tensor};
use super::op::{self, Op, Windows};

/// Most parameters: beyond it sizes would not fit 64 bits.
const MOST_PARAMETERS: usize = 1 << 50;

/// All that is known of a network beside its ops.
pub(super) struct Plan {
    pub tensors: Vec<Tensor>,
    pub statistics_tensors: Vec<Tensor>,
    pub init: Vec<(Range<usize>, Init)>,
    pub layers: Vec<LayerInfo>,
    pub parameter_count: usize,
    pub statistics_count: usize,
    pub mixes_samples: bool,
    pub footprint: Footprint,
    kernels: Kernels,
}

/// An op, and the shape that it makes.
type OpAndShape = (Box<dyn Op>, Shape);

/// Initial values of a range of parameters.
#[derive(Clone, Copy)]
pub(super) enum Init {
    Constant(f32),
    /// Uniform in ±bound.
    Uniform(f32),
}

impl Plan {
    pub fn new(input: Shape, kernels: Kernels) -> Self {
        Self {
            tensors: Vec::new(),
            statistics_tensors: Vec::new(),
            init: Vec::new(),
            layers: Vec::new(),
            parameter_count: 0,
            statistics_count: 0,
            mixes_samples: false,
            footprint: Footprint::of_input(input),
            kernels,
        }
    }

    /// The ops of a list of layers, and the shape that they make. Places begin with `prefix`; shares
    /// of parameters and statistics count from `(p, s)`.
    pub fn path(
        &mut self,
        prefix: &str,
        layers: &[Layer],
        mut shape: Shape,
        (p, s): (usize, usize),
    ) -> Result<(Vec<OpSlot>, Shape), ModelError> {
        let mut ops = Vec::with_capacity(layers.len());
        let mut index = 0;
        while index < layers.len() {
            let (first_p, first_s) = (self.parameter_count, self.statistics_count);
            let (op, output, used) = match self.fused(prefix, layers, index, shape)? {
                Some((op, output)) => (op, output, 3),
                None => {
                    let place = format!("{prefix}{index}");
                    let (op, output) = self.layer(&place, &layers[index], shape)?;
                    (op, output, 1)
                }
            };
            ops.push(OpSlot {
                op,
                parameters: first_p - p..self.parameter_count - p,
                statistics: first_s - s..self.statistics_count - s,
            });
            shape = output;
            index += used;
        }
        Ok((ops, shape))
    }

    /// The fused op for convolution, pooling and relu from `index` on, where there is one.
    fn fused(
        &mut self,
        prefix: &str,
        layers: &[Layer],
        index: usize,
        input: Shape,
    ) -> Result<Option<OpAndShape>, ModelError> {
        let Some(op) = fuse(&layers[index..], input).filter(|_| self.kernels == Kernels::Fast)
        else {
            return Ok(None);
        };
        let mut shape = input;
        for (at, layer) in layers.iter().enumerate().skip(index).take(3) {
            shape = self.declare(&format!("{prefix}{at}"), layer, shape)?;
        }
        self.footprint.add(&layers[index], true, input, shape);
        Ok(Some((op, shape)))
    }

    /// The op of a layer, and the shape that it makes.
    fn layer(
        &mut self,
        place: &str,
        layer: &Layer,
        input: Shape,
    ) -> Result<OpAndShape, ModelError> {
        let Layer::Residual { layers } = layer else {
            let output = self.declare(place, layer, input)?;
            self.footprint.add(layer, false, input, output);
            let fast =
                (self.kernels == Kernels::Fast).then(|| fast_op(layer, input, output)).flatten();
            return Ok((fast.unwrap_or_else(|| plain_op(layer, input, output)), output));
        };
        let (row, first) = (self.layers.len(), (self.parameter_count, self.statistics_count));
        let (inside, output) = self.path(&format!("{place}."), layers, input, first)?;
        let info = self.info(place, layer, input)?;
        self.layers.insert(row, info);
        let beside = shortcut(input, output).unwrap_or_default();
        let (beside, _) = self.path(&format!("{place}.shortcut."), &beside, input, first)?;
        self.footprint.add(layer, false, input, output);
        Ok((Box::new(op::Residual { input, output, paths: [inside, beside] }), output))
    }

    /// The description of a layer, if it fits its input.
    fn info(&self, place: &str, layer: &Layer, input: Shape) -> Result<LayerInfo, ModelError> {
        let (place, layer) = (place.to_owned(), layer.clone());
        match layer.output(input) {
            Ok(output) => {
                Ok(LayerInfo { place, layer, input, output, parameters: 0, multiply_adds: 0 })
            }
            Err(reason) => {
                Err(ModelError { place, layer: layer.into(), input, reason, advice: None })
            }
        }
    }

    /// Adds a layer and its tensors. Weights and biases of conv and linear start uniform in
    /// ±1/√fan-in, scales at 1 and shifts at 0: PyTorch's defaults.
    fn declare(&mut self, place: &str, layer: &Layer, input: Shape) -> Result<Shape, ModelError> {
        let mut info = self.info(place, layer, input)?;
        let first = self.parameter_count;
        match *layer {
            Layer::Conv { channels, kernel, .. } => {
                let shape = vec![channels, input.channels, kernel, kernel];
                self.declare_weights(&format!("{place}.conv"), shape);
            }
            Layer::Linear { outputs } => {
                self.declare_weights(&format!("{place}.linear"), vec![outputs, input.len()]);
            }
            Layer::BatchNorm | Layer::GroupNorm { .. } => {
                let shape = || vec![input.channels];
                self.add(format!("{place}.norm.weight"), shape(), Init::Constant(1.0));
                self.add(format!("{place}.norm.bias"), shape(), Init::Constant(0.0));
            }
            _ => {}
        }
        if *layer == Layer::BatchNorm {
            self.mixes_samples = true;
            for role in ["mean", "mean_square"] {
                let first = self.statistics_count;
                self.statistics_count += input.channels;
                self.statistics_tensors.push(Tensor {
                    name: format!("{place}.norm.{role}"),
                    shape: vec![input.channels],
                    range: first..self.statistics_count,
                });
            }
        }
        info.parameters = self.parameter_count - first;
        if let Layer::Conv { .. } | Layer::Linear { .. } = layer {
            let weights = info.parameters - info.output.channels;
            info.multiply_adds = (weights as u64).saturating_mul(info.output.area() as u64);
        }
        if self.parameter_count > MOST_PARAMETERS {
            let reason =
                format!("the layers up to here have more than {MOST_PARAMETERS} parameters");
            let (place, layer) = (info.place, info.layer.into());
            return Err(ModelError { place, layer, input, reason, advice: None });
        }
        let output = info.output;
        self.layers.push(info);
        Ok(output)
    }

    fn declare_weights(&mut self, name: &str, shape: Vec<usize>) {
        let (outputs, fan_in) = (shape[0], shape[1..].iter().product::<usize>());
        let bound = Init::Uniform(1.0 / (fan_in as f32).sqrt());
        self.add(format!("{name}.weight"), shape, bound);
        self.add(format!("{name}.bias"), vec![outputs], bound);
    }

    fn add(&mut self, name: String, shape: Vec<usize>, init: Init) {
        let first = self.parameter_count;
        self.parameter_count =
            first.saturating_add(shape.iter().fold(1, |a: usize, b| a.saturating_mul(*b)));
        let range = first..self.parameter_count;
        self.init.push((range.clone(), init));
        self.tensors.push(Tensor { name, shape, range });
    }
}

/// The fused op for conv + pool + relu at the front of `layers`, where there is one.
fn fuse(layers: &[Layer], input: Shape) -> Option<Box<dyn Op>> {
    #[cfg(target_arch = "x86_64")]
    if let [
        Layer::Conv { channels, kernel, stride: 1, padding: 0, standardized: false },
        Layer::MaxPool { kernel: 2, stride: None | Some(2) },
        Layer::Relu,
        ..,
    ] = *layers
    {
        return op::ConvPoolRelu::new(input, channels, kernel)
            .map(|op| Box::new(op) as Box<dyn Op>);
    }
    None
}

/// The op with kernels of its own, where there is one.
fn fast_op(layer: &Layer, input: Shape, output: Shape) -> Option<Box<dyn Op>> {
    match *layer {
        #[cfg(target_arch = "x86_64")]
        Layer::Conv { kernel, stride, padding, standardized, .. } => {
            let windows = Windows { input, output, kernel, stride };
            let op = op::DirectConv::new(op::Conv { windows, padding, standardized })?;
            Some(Box::new(op))
        }
        Layer::Tanh if input.area() > 1 => {
            Some(Box::new(op::Tanh { len: input.len(), fast: true }))
        }
        _ => None,
    }
}

fn plain_op(layer: &Layer, input: Shape, output: Shape) -> Box<dyn Op> {
    let windows = |kernel, stride| Windows { input, output, kernel, stride };
    let len = input.len();
    match *layer {
        Layer::Conv { kernel, stride, padding, standardized, .. } => {
            Box::new(op::Conv { windows: windows(kernel, stride), padding, standardized })
        }
        Layer::MaxPool { kernel, stride } => {
            Box::new(op::MaxPool { windows: windows(kernel, stride.unwrap_or(kernel)) })
        }
        Layer::AveragePool { kernel, stride } => {
            Box::new(op::AveragePool { windows: windows(kernel, stride.unwrap_or(kernel)) })
        }
        Layer::GlobalAveragePool => Box::new(op::GlobalAveragePool { input }),
        Layer::Relu => Box::new(op::Relu { len }),
        Layer::Tanh => Box::new(op::Tanh { len, fast: false }),
        Layer::Gelu => Box::new(op::Gelu { len }),
        Layer::BatchNorm => Box::new(op::BatchNorm { shape: input }),
        Layer::GroupNorm { groups } => Box::new(op::GroupNorm { shape: input, groups }),
        Layer::Linear { outputs } => Box::new(op::Linear { inputs: len, outputs }),
        Layer::Residual { .. } => {
            Box::new(op::Residual { input, output, paths: Default::default() })
        }
    }
}
