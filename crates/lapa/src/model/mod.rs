//! Models: explicit layers over one flat parameter vector.
//!
//! The seam for any other backend is [`Worker`]: flat parameters and a batch in, a flat gradient
//! out. Nothing outside this folder knows how a gradient is computed.
//!
//! A [`Network`] is built from a list of [`Layer`]s; one's own model is one's own list. A
//! [`Worker`] is one thread's scratch memory for a network: after its first batch it allocates
//! nothing of its own (a matrix product still asks for a packing buffer).

mod calibration;
mod chain;
mod confusion;
mod evaluate;
mod function;
mod gemm;
mod kernels;
mod layer;
mod loss;
mod memory;
mod network;
mod op;
mod plan;
mod pretrain;
mod sample_clip;
mod spec;
mod worker;
mod zoo;

pub(crate) use calibration::Images;
pub use confusion::{Confusion, Mistake};
pub(crate) use evaluate::{EVALUATION_BLOCK, Evaluator, Results};
pub use function::Function;
pub use gemm::matrix_product;
pub(crate) use kernels::add_scaled;
pub use kernels::in_use as kernels_in_use;
pub use layer::{Layer, ModelError, Shape};
pub use memory::Footprint;
pub use network::{Kernels, LayerInfo, Network, Tensor};
pub(crate) use pretrain::{DIGITS, pretrain};
pub use sample_clip::{BLOCK, Blocks, MOST_SAMPLES, SampleClip};
pub use spec::{ModelName, ModelSpec, Norm, Start};
pub use worker::{Batch, Clipped, Evaluation, Worker};
pub use zoo::{cifar_cnn, cnn, cnn_tanh, layers, logistic, mlp, network, resnet8};
