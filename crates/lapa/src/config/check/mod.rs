//! Checks the keys of an experiment against each other.
//!
//! Each check tells its first contradiction, since others often follow from it; all checks are
//! made.

mod air;
mod control;
mod privacy;

use lapa_privacy::word_of;
use serde::Serialize;

use super::document::Document;
use super::error::ConfigError;
use super::experiment::Experiment;
use crate::data::{CLASSES, DataName};
use crate::device::Clip;
use crate::model::{Layer, ModelName, Norm, Start, layers};
use crate::partition::{PartitionError, Skew};

/// Result of a check.
type Check = Result<(), ConfigError>;

/// Every contradiction in an experiment.
pub(super) fn check(experiment: &Experiment, document: &Document) -> Vec<ConfigError> {
    let checks: &[fn(&Experiment, &Document) -> Check] = &[
        data,
        model,
        start,
        learn,
        partition,
        privacy::batches,
        privacy::noise,
        privacy::budget,
        privacy::sizes,
        air::places,
        air::powers,
        air::interference,
        air::amplitudes,
        air::histograms,
        air::channel_trust,
        control::noise,
        control::powers,
        control::pilot,
        control::fitted_powers,
    ];
    checks.iter().filter_map(|check| check(experiment, document).err()).collect()
}

fn data(experiment: &Experiment, document: &Document) -> Check {
    let data = &experiment.data;
    if let (Some(classes), false) = (data.classes, matches!(data.name, DataName::Files(..))) {
        return Err(document.error(
            &["data.classes", "data.name"],
            format!(
                "`data.classes` = {classes} does not go with `data.name` = {}, which has {CLASSES}",
                word(&data.name)
            ),
            "remove data.classes, or use data.name = \"idx:PATH\"",
        ));
    }
    if let (Some(size), false) = (data.size, data.has_pictures()) {
        return Err(document.error(
            &["data.size", "data.name"],
            format!(
                "`data.size` = {size:?} does not go with `data.name` = {}, whose samples have a size",
                word(&data.name)
            ),
            "remove data.size, or use data.name = \"images:PATH\" or \"parquet:PATH\"",
        ));
    }
    Ok(())
}

fn model(experiment: &Experiment, document: &Document) -> Check {
    let model = &experiment.model;
    if !model.name.has_norm() && model.norm != Norm::None {
        return Err(document.error(
            &["model.norm", "model.name"],
            format!(
                "`model.norm` = {} does not go with `model.name` = {}: that model has no \
                 normalization layer, so only \"none\" is allowed",
                word(model.norm),
                word(model.name)
            ),
            "remove model.norm, or use model.name = \"cnn\"",
        ));
    }
    if model.layers.is_empty() == (model.name == ModelName::Layers) {
        let (has, help) = match model.name {
            ModelName::Layers => ("needs", "add tables [[model.layers]], or name a built-in model"),
            _ => ("does not go with", "set model.name = \"layers\", or remove the layers"),
        };
        return Err(document.error(
            &["model.layers", "model.name"],
            format!("`model.name` = {} {has} `model.layers`", word(model.name)),
            help,
        ));
    }
    if model.features.is_none() && !model.feature_norm.is_default() {
        return Err(document.error(
            &["model.feature_norm", "model.features"],
            format!(
                "`model.feature_norm` = {} does not go with `model.features` = \"none\": there are no \
                 features to normalize",
                word(model.feature_norm)
            ),
            "remove model.feature_norm, or set model.features",
        ));
    }
    Ok(())
}

/// Data that do not go with a start on digits drawn by code.
fn start(experiment: &Experiment, document: &Document) -> Check {
    let Experiment { model, data, .. } = experiment;
    if model.start != Start::Digits {
        return Ok(());
    }
    if data.name == DataName::Synthetic {
        return Err(document.error(
            &["model.start", "data.name"],
            "`model.start` = \"digits\" does not go with `data.name` = \"synthetic\": these are \
             the digits that the devices hold, so training on them first would not be public",
            "use model.start = \"random\", or other data",
        ));
    }
    if data.scale.is_some() || data.mean.is_some() || data.std.is_some() {
        return Err(document.error(
            &["model.start", "data.mean", "data.std", "data.scale"],
            "`model.start` = \"digits\" does not go with `data.scale`, `data.mean` and `data.std`: its digits \
             are not normalized",
            "use model.start = \"random\", or leave the normalization out",
        ));
    }
    if !model.features.is_none() {
        return Err(document.error(
            &["model.start", "model.features"],
            format!(
                "`model.start` = \"digits\" does not go with `model.features` = {}: it trains on pixels",
                word(model.features)
            ),
            "use model.start = \"random\"",
        ));
    }
    Ok(())
}

fn learn(experiment: &Experiment, document: &Document) -> Check {
    let learn = &experiment.learn;
    if let (Clip::None, Some(norm)) = (learn.clip, learn.clip_norm) {
        return Err(document.error(
            &["learn.clip_norm", "learn.clip"],
            format!("`learn.clip_norm` = {norm} does not go with `learn.clip` = \"none\""),
            "remove clip_norm, or set clip to \"device\" or \"sample\"",
        ));
    }
    let model = &experiment.model;
    let batch_norm = |layer: &Layer| *layer == Layer::BatchNorm;
    if learn.clip == Clip::Sample && Layer::any(&layers(model, 1), batch_norm) {
        let (key, value) = match model.name {
            ModelName::Layers => ("model.layers", "a batch-norm in `model.layers`"),
            _ => ("model.norm", "`model.norm` = \"batch\""),
        };
        return Err(document.error(
            &[key, "learn.clip", "profile"],
            format!(
                "{value} does not go with `learn.clip` = \"sample\": batch norm makes one sample's \
                 gradient depend on the other samples of the batch"
            ),
            "use group norm (model.norm = \"group\"), or clip the device's upload \
             (learn.clip = \"device\")",
        ));
    }
    Ok(())
}

fn partition(experiment: &Experiment, document: &Document) -> Check {
    let spec = &experiment.partition;
    let is_skewed = spec.skew() != Skew::default();
    if is_skewed && !experiment.model.features.is_none() {
        return Err(document.error(
            &["partition.rotation", "partition.noise", "model.features"],
            "`partition.rotation` and `partition.noise` do not go with `model.features`: features are \
             computed once, before devices change their images",
            "remove one of them",
        ));
    }
    let is_shared = spec.scheme.shared().is_some() && is_skewed;
    let skew = if is_shared { Err(PartitionError::SharedSkew) } else { Ok(()) };
    spec.scheme.check().and(skew).map_err(|error| {
        let key = error.key().unwrap_or("scheme");
        let paths = [&format!("partition.{key}"), "partition.mix.non_iid"];
        document.error(&paths, error.to_string(), error.help())
    })
}

/// A word of the configuration as the user writes it, in quotes.
fn word(value: impl Serialize) -> String {
    format!("{:?}", word_of(value))
}
