//! The layers a network is made of, and the shapes between them.

pub use crate::shape::Shape;

/// One layer. A network is a list of these; softmax cross-entropy always closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Convolution with a square kernel, stride 1, no padding.
    Conv {
        /// Output channels.
        channels: usize,
        /// Kernel height and width.
        kernel: usize,
    },
    /// Maximum over 2×2 windows; an odd last row or column is dropped. Ties go to the first
    /// cell in row-major order, as in PyTorch.
    MaxPool,
    /// max(0, x)
    Relu,
    /// tanh(x)
    Tanh,
    /// Batch norm per channel (ε = 10⁻⁵).
    BatchNorm,
    /// Group norm per sample (ε = 10⁻⁵).
    GroupNorm {
        /// Number of channel groups; must divide the channels.
        groups: usize,
    },
    /// Fully connected layer; flattens its input.
    Linear {
        /// Output features.
        outputs: usize,
    },
}

/// A list of layers that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("layer {index} ({layer:?}) does not fit its input {input}: {reason}")]
pub struct ModelError {
    /// Position in the list, from 0.
    pub index: usize,
    /// The layer.
    pub layer: Layer,
    /// Its input.
    pub input: Shape,
    /// The reason.
    pub reason: String,
}

impl Layer {
    /// The shape this layer makes of `input`.
    pub(super) fn output(self, input: Shape) -> Result<Shape, String> {
        let Shape { channels, rows, cols } = input;
        match self {
            Layer::Conv { channels: 0, .. } | Layer::Linear { outputs: 0 } => {
                Err("it has no outputs".into())
            }
            Layer::Conv { channels, kernel } => {
                if kernel == 0 || kernel > rows || kernel > cols {
                    return Err(format!("a kernel of {kernel} needs 1 ≤ {kernel} ≤ rows, columns"));
                }
                Ok(Shape::new(channels, rows - kernel + 1, cols - kernel + 1))
            }
            Layer::MaxPool => {
                if rows < 2 || cols < 2 {
                    return Err("pooling needs at least 2 rows and 2 columns".into());
                }
                Ok(Shape::new(channels, rows / 2, cols / 2))
            }
            Layer::GroupNorm { groups } => {
                if groups == 0 || channels % groups != 0 {
                    return Err(format!("{groups} groups do not divide {channels} channels"));
                }
                Ok(input)
            }
            Layer::Relu | Layer::Tanh | Layer::BatchNorm => Ok(input),
            Layer::Linear { outputs } => Ok(Shape::new(outputs, 1, 1)),
        }
    }
}
