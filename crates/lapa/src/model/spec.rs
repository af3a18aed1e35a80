//! `[model]`: the architecture and its start.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{FeatureMap, FeatureNorm, Features};

/// The model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSpec {
    /// The architecture.
    pub name: ModelName,
    /// The normalization layer. The default follows profile; mlp and logistic have none.
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

/// The built-in models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelName {
    /// The paper's convolutional network.
    #[default]
    Cnn,
    /// One hidden layer of 100 units.
    Mlp,
    /// Multinomial logistic regression.
    Logistic,
}

/// The normalization layer of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Batch norm, as in the paper; not with per-sample clipping.
    Batch,
    /// Group norm (4 groups).
    Group,
    /// No normalization.
    None,
}
