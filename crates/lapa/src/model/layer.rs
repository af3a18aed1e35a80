//! The layers a network is made of, and the shapes between them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use crate::shape::Shape;

/// Most channels, outputs, groups, and values of any other number of a layer.
const MOST: usize = 1 << 16;

/// Most values between two layers: beyond it sizes would not fit 64 bits.
const MOST_VALUES: usize = 1 << 40;

/// One layer. A network is a list of these; softmax cross-entropy always closes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Layer {
    /// Convolution with a square kernel.
    Conv {
        /// Output channels.
        #[schemars(range(min = 1, max = MOST))]
        channels: usize,
        /// Height and width of the kernel.
        #[schemars(range(min = 1, max = MOST))]
        kernel: usize,
        /// Cells from one place of the kernel to the next. Default: 1.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        #[schemars(range(min = 1, max = MOST))]
        stride: usize,
        /// Rows and columns of zeros on each side of the input. Default: 0.
        #[serde(default, skip_serializing_if = "is_default")]
        #[schemars(range(max = MOST))]
        padding: usize,
        /// Weight standardization (Qiao et al. 2019): the weights of each output channel are used with
        /// mean 0 and variance 1 (ε = 10⁻⁵). For convolutions with a norm behind them.
        #[serde(default, skip_serializing_if = "is_default")]
        standardized: bool,
    },
    /// Maximum over square windows; a last row or column that fills no window is dropped. Ties go to
    /// the first cell in row-major order, as in PyTorch.
    MaxPool {
        /// Height and width of a window. Default: 2.
        #[serde(default = "two", skip_serializing_if = "is_two")]
        #[schemars(range(min = 1, max = 255))]
        kernel: usize,
        /// Cells from one window to the next. Default: kernel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = MOST))]
        stride: Option<usize>,
    },
    /// Mean over square windows; a last row or column that fills no window is dropped.
    AveragePool {
        /// Height and width of a window. Default: 2.
        #[serde(default = "two", skip_serializing_if = "is_two")]
        #[schemars(range(min = 1, max = MOST))]
        kernel: usize,
        /// Cells from one window to the next. Default: kernel.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = MOST))]
        stride: Option<usize>,
    },
    /// Mean of each channel.
    GlobalAveragePool,
    /// max(0, x)
    Relu,
    /// tanh(x): a tempered sigmoid (Papernot et al. 2021), 2·σ(2x) − 1.
    Tanh,
    /// x·Φ(x) = x/2·(1 + erf(x/√2)), in this exact form, which is PyTorch's default.
    Gelu,
    /// Batch norm per channel (ε = 10⁻⁵). Not with per-sample clipping.
    BatchNorm,
    /// Group norm per sample (ε = 10⁻⁵).
    GroupNorm {
        /// Number of channel groups; must divide the channels.
        #[schemars(range(min = 1, max = MOST))]
        groups: usize,
    },
    /// Fully connected layer; flattens its input.
    Linear {
        /// Output features. Default, in the last layer of a configuration only: the number of classes.
        #[serde(default, skip_serializing_if = "is_default")]
        #[schemars(range(min = 1, max = MOST))]
        outputs: usize,
    },
    /// Residual block: its layers, plus its input (He et al. 2016). Where they change the shape, the
    /// input passes a 1×1 convolution with the stride that is needed.
    Residual {
        /// The layers of the block.
        #[schemars(schema_with = "inner_layers")]
        layers: Vec<Layer>,
    },
}

fn one() -> usize {
    1
}

fn two() -> usize {
    2
}

fn is_one(value: &usize) -> bool {
    *value == 1
}

fn is_two(value: &usize) -> bool {
    *value == 2
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The layers of a block are those of a model.
fn inner_layers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "$ref": "#/properties/model/properties/layers/items" } })
}

/// A list of layers that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "layer {place} ({}) does not fit its input {input}: {reason}{}",
    layer.word(),
    advice.as_ref().map_or_else(String::new, |advice| format!("; {advice}"))
)]
pub struct ModelError {
    /// Position in the list, from 0; `2.1` is the second layer of the block in the third place.
    pub place: String,
    /// The layer.
    pub layer: Box<Layer>,
    /// Its input.
    pub input: Shape,
    /// The reason.
    pub reason: String,
    /// Advice for a model of a configuration.
    pub advice: Option<String>,
}

impl Layer {
    /// Convolution with stride 1 and no padding.
    pub fn conv(channels: usize, kernel: usize) -> Self {
        Self::Conv { channels, kernel, stride: 1, padding: 0, standardized: false }
    }

    /// Maximum over windows of this height and width, side by side.
    pub fn max_pool(kernel: usize) -> Self {
        Self::MaxPool { kernel, stride: None }
    }

    /// The word of a configuration.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Conv { .. } => "conv",
            Self::MaxPool { .. } => "max-pool",
            Self::AveragePool { .. } => "average-pool",
            Self::GlobalAveragePool => "global-average-pool",
            Self::Relu => "relu",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::BatchNorm => "batch-norm",
            Self::GroupNorm { .. } => "group-norm",
            Self::Linear { .. } => "linear",
            Self::Residual { .. } => "residual",
        }
    }

    /// True if `is` holds for one of the layers, or of those inside them.
    pub fn any(layers: &[Self], is: fn(&Self) -> bool) -> bool {
        layers.iter().any(|layer| {
            is(layer) || matches!(layer, Self::Residual { layers } if Self::any(layers, is))
        })
    }

    /// The shape this layer makes of `input`; for a block, the shape its layers make.
    pub(super) fn output(&self, input: Shape) -> Result<Shape, String> {
        let Shape { channels, rows, cols } = input;
        let output = match *self {
            Self::Conv { channels: 0, .. } => return Err("it has no outputs".into()),
            Self::Linear { outputs: 0 } => {
                let only = "only the last layer of a configuration may leave them out";
                return Err(format!("it has no outputs, and {only}"));
            }
            Self::Conv { channels, kernel, stride, padding, .. } => {
                let places = places(input, kernel, stride, padding);
                let (rows, cols) = places.ok_or_else(|| {
                    let needed = kernel.saturating_sub(2 * padding);
                    format!("a kernel of {kernel} needs at least {needed} rows and columns")
                })?;
                Shape::new(channels, rows, cols)
            }
            Self::MaxPool { kernel, stride } | Self::AveragePool { kernel, stride } => {
                let places = places(input, kernel, stride.unwrap_or(kernel), 0);
                let (rows, cols) = places.ok_or_else(|| {
                    format!("pooling needs at least {kernel} rows and {kernel} columns")
                })?;
                Shape::new(channels, rows, cols)
            }
            Self::GlobalAveragePool => Shape::new(channels, 1, 1),
            Self::GroupNorm { groups } => {
                if groups == 0 || channels % groups != 0 {
                    return Err(format!("{groups} groups do not divide {channels} channels"));
                }
                input
            }
            Self::Relu | Self::Tanh | Self::Gelu | Self::BatchNorm => input,
            Self::Linear { outputs } => Shape::new(outputs, 1, 1),
            Self::Residual { ref layers } => {
                if layers.is_empty() {
                    return Err("the block has no layers".into());
                }
                let output = layers.iter().try_fold(input, |shape, layer| layer.output(shape))?;
                shortcut(input, output)?;
                output
            }
        };
        let values = [output.channels, output.rows, output.cols];
        let values = values.into_iter().try_fold(1usize, usize::checked_mul);
        if values.is_none_or(|values| values > MOST_VALUES) || rows.max(cols) > MOST_VALUES {
            return Err(format!("{output} are more than {MOST_VALUES} values"));
        }
        Ok(output)
    }
}

/// Rows and columns of places of a window; `None` if there is none.
fn places(input: Shape, kernel: usize, stride: usize, padding: usize) -> Option<(usize, usize)> {
    let along = |length: usize| {
        let room = (length + 2 * padding).checked_sub(kernel)?;
        (kernel > 0 && stride > 0).then(|| room / stride + 1)
    };
    Some((along(input.rows)?, along(input.cols)?))
}

/// The layers that bring the input of a block to the shape of its output: none, or a convolution.
pub(super) fn shortcut(input: Shape, output: Shape) -> Result<Vec<Layer>, String> {
    if input == output {
        return Ok(Vec::new());
    }
    let fits = |stride: &usize| places(input, 1, *stride, 0) == Some((output.rows, output.cols));
    let stride = input.rows.checked_div(output.rows).filter(fits);
    let stride = stride.or_else(|| Some(input.rows.div_ceil(output.rows)).filter(fits));
    let stride = stride.ok_or_else(|| {
        format!(
            "no stride of a 1×1 convolution makes {}×{} of {}×{}: choose the block's padding so that \
             it keeps rows and columns, or divides both by its stride",
            output.rows, output.cols, input.rows, input.cols
        )
    })?;
    Ok(vec![Layer::Conv {
        channels: output.channels,
        kernel: 1,
        stride,
        padding: 0,
        standardized: false,
    }])
}
