//! The models of a configuration, each a list of layers.

use lapa_privacy::word_of;

use super::layer::{Layer, ModelError, Shape};
use super::network::Network;
use super::spec::{ModelName, ModelSpec, Norm};

/// Largest image that [`network`] tries where a smaller one does not fit.
const LARGEST_SIDE: usize = 512;

/// The paper's CNN (Section V-A): two 5×5 convolutions, each pooled, a norm, and two fully
/// connected layers. With 28×28 inputs, ten classes and a norm it has q = 21,880 parameters.
///
/// Differs from the paper: it does not say where relu and norm stand nor how many channels there
/// are; the channels are 10 and 20, relu follows each pooling, and the norm follows the second.
pub fn cnn(norm: Norm, classes: usize) -> Vec<Layer> {
    cnn_with(&Layer::Relu, norm, classes)
}

/// The same with tanh in place of relu: a tempered sigmoid, which keeps activations, and so the
/// gradients that are clipped, bounded (Papernot et al. 2021, "Tempered sigmoid activations for deep
/// learning with differential privacy").
pub fn cnn_tanh(norm: Norm, classes: usize) -> Vec<Layer> {
    cnn_with(&Layer::Tanh, norm, classes)
}

fn cnn_with(activation: &Layer, norm: Norm, classes: usize) -> Vec<Layer> {
    let block = |channels| [Layer::conv(channels, 5), Layer::max_pool(2), activation.clone()];
    let mut layers = [block(10), block(20)].concat();
    layers.extend(norm_layer(norm, 4));
    let head = [Layer::Linear { outputs: 50 }, activation.clone()];
    layers.extend(head);
    layers.push(Layer::Linear { outputs: classes });
    layers
}

fn norm_layer(norm: Norm, groups: usize) -> Option<Layer> {
    match norm {
        Norm::Batch => Some(Layer::BatchNorm),
        Norm::Group => Some(Layer::GroupNorm { groups }),
        Norm::None => None,
    }
}

/// The small network for CIFAR-10 of the literature on privacy (Papernot et al. 2021, Table 2; the
/// "end-to-end CNN" of Tramèr & Boneh 2021): pairs of 3×3 convolutions with 32, 64 and 128 channels,
/// each pair pooled, and two fully connected layers, all with tanh. With 3×32×32 inputs and ten
/// classes it has 550,570 parameters.
pub fn cifar_cnn(classes: usize) -> Vec<Layer> {
    let pair = |channels| {
        let conv = conv3(channels, 1);
        [conv.clone(), Layer::Tanh, conv, Layer::Tanh, Layer::max_pool(2)]
    };
    let mut layers = [pair(32), pair(64), pair(128)].concat();
    layers.extend([Layer::Linear { outputs: 128 }, Layer::Tanh]);
    layers.push(Layer::Linear { outputs: classes });
    layers
}

/// ResNet-8, the smallest of the residual networks for CIFAR-10 (He et al. 2016, Section 4.2, n = 1;
/// Banbury et al. 2021, MLPerf Tiny): a 3×3 convolution, three blocks of two with 16, 32 and 64
/// channels, the mean of each channel, a fully connected layer. Shortcuts that change the shape are
/// 1×1 convolutions. With 3×32×32 inputs, ten classes and group norm it has 78,186 parameters.
pub fn resnet8(norm: Norm, classes: usize) -> Vec<Layer> {
    let norm = norm_layer(norm, 8);
    let mut layers = vec![conv3(16, 1)];
    layers.extend(norm.clone());
    layers.push(Layer::Relu);
    for (channels, stride) in [(16, 1), (32, 2), (64, 2)] {
        let mut block = vec![conv3(channels, stride)];
        block.extend(norm.clone());
        block.extend([Layer::Relu, conv3(channels, 1)]);
        block.extend(norm.clone());
        layers.extend([Layer::Residual { layers: block }, Layer::Relu]);
    }
    layers.extend([Layer::GlobalAveragePool, Layer::Linear { outputs: classes }]);
    layers
}

/// A 3×3 convolution that keeps rows and columns, or divides them by `stride`.
fn conv3(channels: usize, stride: usize) -> Layer {
    Layer::Conv { channels, kernel: 3, stride, padding: 1, standardized: false }
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
    let layers = layers(spec, classes);
    Network::new(shape, &layers).map_err(|mut error| {
        let fits = |side: &usize| {
            let input = Shape::new(shape.channels, *side, *side);
            layers.iter().try_fold(input, |shape, layer| layer.output(shape)).is_ok()
        };
        let name = match spec.name {
            ModelName::Layers => "model.layers".into(),
            name => word_of(name),
        };
        let smaller = |side: &usize| shape.rows < *side || shape.cols < *side;
        error.advice = (1..=LARGEST_SIDE).find(fits).filter(smaller).map(|side| {
            format!(
                "{name} needs images of {side}×{side} or more; use mlp or logistic for smaller ones"
            )
        });
        error
    })
}

/// The layers that a config asks for. The last one's outputs, if they are left out, are the classes.
pub fn layers(spec: &ModelSpec, classes: usize) -> Vec<Layer> {
    match spec.name {
        ModelName::Cnn => cnn(spec.norm, classes),
        ModelName::CnnTanh => cnn_tanh(spec.norm, classes),
        ModelName::CifarCnn => cifar_cnn(classes),
        ModelName::Resnet8 => resnet8(spec.norm, classes),
        ModelName::Mlp => mlp(classes),
        ModelName::Logistic => logistic(classes),
        ModelName::Layers => {
            let mut layers = spec.layers.clone();
            if let Some(Layer::Linear { outputs: outputs @ 0 }) = layers.last_mut() {
                *outputs = classes;
            }
            layers
        }
    }
}
