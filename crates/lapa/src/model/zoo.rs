//! The built-in models.

use super::layer::{Layer, ModelError, Shape};
use super::network::Network;
use super::spec::{ModelName, ModelSpec, Norm};

/// Groups of the CNN's group norm.
const GROUPS: usize = 4;

/// The paper's CNN (Section V-A): two 5×5 convolutions, each pooled, a norm, and two fully
/// connected layers. With 28×28 inputs, ten classes and a norm it has q = 21,880 parameters.
///
/// Differs from the paper: it does not say where relu and norm stand nor how many channels there
/// are; the channels are 10 and 20, relu follows each pooling, and the norm follows the second.
pub fn cnn(norm: Norm, classes: usize) -> Vec<Layer> {
    let mut layers = vec![
        Layer::Conv { channels: 10, kernel: 5 },
        Layer::MaxPool,
        Layer::Relu,
        Layer::Conv { channels: 20, kernel: 5 },
        Layer::MaxPool,
        Layer::Relu,
    ];
    match norm {
        Norm::Batch => layers.push(Layer::BatchNorm),
        Norm::Group => layers.push(Layer::GroupNorm { groups: GROUPS }),
        Norm::None => {}
    }
    layers.extend([Layer::Linear { outputs: 50 }, Layer::Relu, Layer::Linear { outputs: classes }]);
    layers
}

/// One hidden layer of 100 units.
pub fn mlp(classes: usize) -> Vec<Layer> {
    vec![Layer::Linear { outputs: 100 }, Layer::Relu, Layer::Linear { outputs: classes }]
}

/// Multinomial logistic regression.
pub fn logistic(classes: usize) -> Vec<Layer> {
    vec![Layer::Linear { outputs: classes }]
}

/// The network that a config asks for, for samples of this shape.
pub fn network(spec: &ModelSpec, shape: Shape, classes: usize) -> Result<Network, ModelError> {
    Network::new(shape, &layers(spec, classes))
}

/// The layers that a config asks for.
pub fn layers(spec: &ModelSpec, classes: usize) -> Vec<Layer> {
    match spec.name {
        ModelName::Cnn => cnn(spec.norm, classes),
        ModelName::Mlp => mlp(classes),
        ModelName::Logistic => logistic(classes),
    }
}
