//! Models on the disk: the checkpoint to resume from, and the trained model.

use std::collections::HashMap;
use std::path::Path;

use lapa_privacy::allocate::AllocatorState;
use safetensors::tensor::{Metadata, TensorView};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};

use super::{Result, RunError};

use crate::aggregate::{GlobalModel, WeightingState};
use crate::atomic::write_bytes;
use crate::files;
use crate::model::Network;
use crate::station::Station;

/// Name of the trained model in a run folder.
pub(super) const MODEL: &str = "model.safetensors";
/// Name of the checkpoint in a run folder.
pub(super) const FILE: &str = "checkpoint.safetensors";

/// Key of the state in a checkpoint's metadata: a checksum, a space, and the state as JSON. One key
/// only: several would be written in an order that differs from run to run.
const STATE: &str = "lapa";

/// Checksum of a checkpoint's state and of all its tensors with their names.
fn checksum<'a>(state: &'a str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let tensors = tensors.flat_map(|(name, bytes)| [name.as_bytes(), bytes]);
    files::checksum([state.as_bytes()].into_iter().chain(tensors))
}

/// State of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Rounds done.
    pub round: u32,
    /// Length of metrics.jsonl after that round.
    pub metrics_bytes: u64,
    /// Time spent so far.
    pub seconds: f64,
    /// Memory of the allocator beside gradients; `None` without noise.
    pub allocator: Option<serde_json::Value>,
    /// The last round for which the ledger was asked.
    pub asked: u32,
    /// Memory of the aggregation weights.
    pub weighting: WeightingState,
    /// Gradients that the allocator remembers, in tensors of their own.
    pub remembered: usize,
}

/// A part of a trained model.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Its name, such as `0.weight`.
    pub name: String,
    /// Its shape, in C order.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
}

/// A tensor to write: its name, its shape and its values, which may be large and are not copied.
type Part<'a> = (String, Vec<usize>, &'a [f32]);

/// A vector to write.
fn flat(name: impl Into<String>, values: &[f32]) -> Part<'_> {
    (name.into(), vec![values.len()], values)
}

/// Writes tensors, and the state that a checkpoint has beside them.
fn write(path: &Path, mut tensors: Vec<Part<'_>>, state: Option<&State>) -> Result<()> {
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let bytes: Vec<Vec<u8>> = tensors.iter().map(|(.., values)| bytes(values)).collect();
    let named = || tensors.iter().zip(&bytes).map(|((name, ..), bytes)| (&**name, &**bytes));
    let json = state.map(serde_json::to_string).transpose().map_err(RunError::invalid(path))?;
    let metadata = json.as_ref().map(|json| format!("{} {json}", checksum(json, named())));
    let metadata = metadata.map(|state| HashMap::from([(STATE.into(), state)]));
    let view = |((_, shape, _), (name, bytes)): (&Part<'_>, _)| {
        Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?))
    };
    let views: Result<Vec<_>, SafeTensorError> = tensors.iter().zip(named()).map(view).collect();
    let file = views.and_then(|views| safetensors::serialize(views, metadata));
    write_bytes(path, file.map_err(RunError::invalid(path))?).map_err(RunError::io("write", path))
}

/// The tensors and the metadata of a file.
fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<(SafeTensors<'a>, Metadata)> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(RunError::invalid(path))?;
    let file = SafeTensors::deserialize(bytes).map_err(RunError::invalid(path))?;
    Ok((file, metadata))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// The error of a checkpoint that does not fit the experiment, or its own checksum.
pub(super) fn damaged(path: &Path, what: &str) -> RunError {
    RunError::invalid(path)(format!("damaged checkpoint: {what}"))
}

/// Writes a checkpoint; the one before stays whole until this one is.
pub(super) fn save(
    folder: &Path,
    state: &State,
    model: &GlobalModel,
    remembered: &[Vec<f32>],
) -> Result<()> {
    let GlobalModel { parameters, velocity, average, statistics } = model;
    let mut tensors = vec![
        flat("parameters", parameters),
        flat("velocity", velocity),
        flat("average", average),
        flat("statistics", statistics),
    ];
    let remembered = remembered.iter().enumerate();
    tensors.extend(remembered.map(|(i, values)| flat(format!("allocator.{i}"), values)));
    write(&folder.join(FILE), tensors, Some(state))
}

/// Reads the checkpoint of a run whose model has the lengths of `like`.
pub(super) fn load(
    folder: &Path,
    like: &GlobalModel,
) -> Result<(State, GlobalModel, Option<AllocatorState>)> {
    let path = folder.join(FILE);
    let bytes = files::read(&path).map_err(RunError::io("read", &path))?;
    let (file, metadata) = parse(&path, &bytes)?;
    let damaged = |what: &str| damaged(&path, what);
    let (sum, state) = metadata
        .metadata()
        .as_ref()
        .and_then(|metadata| metadata.get(STATE)?.split_once(' '))
        .ok_or_else(|| damaged("it does not say which round it is"))?;
    let mut contents = file.tensors();
    contents.sort_by(|a, b| a.0.cmp(&b.0));
    if sum != checksum(state, contents.iter().map(|(name, view)| (name.as_str(), view.data()))) {
        return Err(damaged("its content does not have the checksum that it was written with"));
    }
    let state: State = serde_json::from_str(state).map_err(RunError::invalid(&path))?;
    let values = |name: &str, len: usize| {
        let tensor = file.tensor(name).map_err(RunError::invalid(&path))?;
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        if dtype != Dtype::F32 || shape != [len] {
            let needed = format!("but this model needs F32 [{len}]");
            return Err(damaged(&format!("`{name}` is {dtype:?} {shape:?}, {needed}")));
        }
        Ok(floats(tensor.data()))
    };
    let model = GlobalModel {
        parameters: values("parameters", like.parameters.len())?,
        velocity: values("velocity", like.velocity.len())?,
        average: values("average", like.average.len())?,
        statistics: values("statistics", like.statistics.len())?,
    };
    let vectors = (0..state.remembered)
        .map(|i| values(&format!("allocator.{i}"), like.parameters.len()))
        .collect::<Result<_, _>>()?;
    let allocator = state.allocator.clone().map(|scalars| AllocatorState { scalars, vectors });
    Ok((state, model, allocator))
}

/// The parts of a model as it is evaluated, with its batch-norm statistics.
pub fn model_tensors(network: &Network, model: &GlobalModel) -> Vec<Tensor> {
    let parts = [
        (network.tensors(), model.evaluated()),
        (network.statistics_tensors(), model.statistics.as_slice()),
    ];
    let part = |tensor: &crate::model::Tensor, values: &[f32]| Tensor {
        name: tensor.name.clone(),
        shape: tensor.shape.clone(),
        values: values[tensor.range.clone()].to_vec(),
    };
    let parts = parts.into_iter();
    parts.flat_map(|(tensors, values)| tensors.iter().map(move |t| part(t, values))).collect()
}

/// Reads the trained model of a finished run in `folder`.
pub fn read_model(folder: &Path) -> Result<Vec<Tensor>> {
    let path = folder.join(MODEL);
    let bytes = files::read(&path).map_err(RunError::io("read", &path))?;
    let (file, metadata) = parse(&path, &bytes)?;
    let read = |name: String| {
        let tensor = file.tensor(&name).map_err(RunError::invalid(&path))?;
        Ok(Tensor { name, shape: tensor.shape().to_vec(), values: floats(tensor.data()) })
    };
    metadata.offset_keys().into_iter().map(read).collect()
}

/// Writes the trained model, a tensor per layer part, for any reader of safetensors; as one tensor
/// without a network of ours.
pub(super) fn save_model(folder: &Path, station: &Station) -> Result<()> {
    let (network, model) = (station.network(), station.model());
    let tensors = network.map(|network| model_tensors(network, model));
    let parts = match &tensors {
        Some(tensors) => {
            tensors.iter().map(|t| (t.name.clone(), t.shape.clone(), &*t.values)).collect()
        }
        None => vec![flat("parameters", model.evaluated())],
    };
    write(&folder.join(MODEL), parts, None)
}
