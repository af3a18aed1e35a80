//! `[model]`: the architecture and its start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layer::Layer;
use crate::data::{FeatureMap, FeatureNorm, Features};

/// The model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSpec {
    /// The architecture.
    pub name: ModelName,
    /// The normalization layer of cnn and cnn-tanh, whose default follows profile, and of resnet-8, whose
    /// default is group. The others have none.
    pub norm: Norm,
    /// The parameters that training starts from. Not in the paper.
    pub start: Start,
    /// Fixed, public features of each record, which the model sees in place of it. Not in the paper.
    #[serde(skip_serializing_if = "Features::is_none")]
    #[schemars(extend("default" = "none"))]
    pub features: Features,
    /// Normalization of the features of a record, by these features alone.
    #[serde(skip_serializing_if = "FeatureNorm::is_default")]
    #[schemars(extend("default" = "group-unit"))]
    pub feature_norm: FeatureNorm,
    /// The layers, with name = "layers": one table for each. `lapa model show` prints what they make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[
        { "type": "conv", "channels": 16, "kernel": 3, "padding": 1 },
        { "type": "relu" },
        { "type": "max-pool" },
        { "type": "linear" },
    ]]))]
    pub layers: Vec<Layer>,
}

impl ModelSpec {
    /// The feature map before the network.
    pub fn feature_map(&self) -> FeatureMap {
        match self.features {
            Features::None => FeatureMap::default(),
            features => FeatureMap { features, norm: self.feature_norm },
        }
    }
}

/// Start of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// Random parameters.
    #[default]
    Random,
    /// The base station first trains on digits drawn by code, which are public: no privacy is
    /// spent. Not with data.name = "synthetic", which are these digits.
    Digits,
}

/// The models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// The paper's convolutional network.
    #[default]
    Cnn,
    /// The same with tanh, a tempered sigmoid, in place of relu.
    CnnTanh,
    /// Six 3×3 convolutions with tanh: the small network for CIFAR-10 of the literature on privacy.
    CifarCnn,
    /// Eight layers with residual blocks and group norm.
    #[serde(rename = "resnet-8")]
    Resnet8,
    /// One hidden layer of 100 units.
    Mlp,
    /// Multinomial logistic regression.
    Logistic,
    /// The layers of model.layers.
    Layers,
}

impl ModelName {
    /// True for a model with a normalization layer to choose.
    pub fn has_norm(self) -> bool {
        matches!(self, Self::Cnn | Self::CnnTanh | Self::Resnet8)
    }
}

/// The normalization layer of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Batch norm, as in the paper; not with per-sample clipping.
    Batch,
    /// Group norm (4 groups; 8 in resnet-8).
    Group,
    /// No normalization.
    None,
}
