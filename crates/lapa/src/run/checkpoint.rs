//! Models on the disk: the checkpoint to resume from, and the trained model.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use lapa_privacy::allocate::AllocatorState;
use safetensors::{Dtype, SafeTensors, View};
use serde::{Deserialize, Serialize};

use super::RunError;

use crate::atomic::write_atomically;
use crate::files;
use crate::model::Network;
use crate::station::aggregate::{GlobalModel, WeightingState};

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
    /// Memory of the allocator beside gradients; none without noise.
    pub allocator: Option<serde_json::Value>,
    /// The last round for which the ledger was asked.
    pub asked: u32,
    /// Memory of the aggregation weights.
    pub weighting: WeightingState,
    /// Gradients that the allocator remembers, in tensors of their own.
    pub remembered: usize,
}

/// Floats as a tensor.
struct Floats<'a> {
    values: &'a [f32],
    shape: Vec<usize>,
}

impl View for Floats<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}

fn write<'a>(
    path: &Path,
    tensors: impl IntoIterator<Item = (String, Floats<'a>)>,
    metadata: Option<HashMap<String, String>>,
) -> Result<(), RunError> {
    let bytes = safetensors::serialize(tensors, metadata)
        .map_err(|source| RunError::Tensors { path: path.into(), source })?;
    write_atomically(path, |file| file.write_all(&bytes)).map_err(RunError::io("write", path))
}

/// Writes a checkpoint; the one before stays whole until this one is.
pub(super) fn save(
    folder: &Path,
    state: &State,
    model: &GlobalModel,
    remembered: &[Vec<f32>],
) -> Result<(), RunError> {
    let path = folder.join(FILE);
    let json = serde_json::to_string(state)
        .map_err(|source| RunError::Json { path: path.clone(), source })?;
    let GlobalModel { parameters, velocity, average, statistics } = model;
    let tensors = [
        ("parameters", parameters),
        ("velocity", velocity),
        ("average", average),
        ("statistics", statistics),
    ]
    .map(|(name, values)| (name.into(), Floats { values, shape: vec![values.len()] }));
    let remembered = remembered.iter().enumerate().map(|(i, values)| {
        (format!("allocator.{i}"), Floats { values, shape: vec![values.len()] })
    });
    let mut tensors: Vec<(String, Floats)> = tensors.into_iter().chain(remembered).collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let bytes: Vec<Cow<[u8]>> = tensors.iter().map(|(_, values)| values.data()).collect();
    let named = tensors.iter().zip(&bytes).map(|((name, _), bytes)| (name.as_str(), &**bytes));
    let state = format!("{} {json}", checksum(&json, named));
    write(&path, tensors, Some(HashMap::from([(STATE.into(), state)])))
}

/// Reads the checkpoint of a run whose model has the lengths of `like`.
pub(super) fn load(
    folder: &Path,
    like: &GlobalModel,
) -> Result<(State, GlobalModel, Option<AllocatorState>), RunError> {
    let path = folder.join(FILE);
    let bytes = files::read(&path).map_err(RunError::io("read", &path))?;
    let tensors = |source| RunError::Tensors { path: path.clone(), source };
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(tensors)?;
    let damaged = |what: &str| RunError::Checkpoint { path: path.clone(), what: what.into() };
    let (sum, state) = metadata
        .metadata()
        .as_ref()
        .and_then(|metadata| metadata.get(STATE)?.split_once(' '))
        .ok_or_else(|| damaged("it does not say which round it is"))?;
    let file = SafeTensors::deserialize(&bytes).map_err(tensors)?;
    let mut contents = file.tensors();
    contents.sort_by(|a, b| a.0.cmp(&b.0));
    if sum != checksum(state, contents.iter().map(|(name, view)| (name.as_str(), view.data()))) {
        return Err(damaged("its content does not have the checksum that it was written with"));
    }
    let state: State = serde_json::from_str(state)
        .map_err(|source| RunError::Json { path: path.clone(), source })?;
    let values = |name: &str, len: usize| {
        let tensor = file.tensor(name).map_err(tensors)?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != [len] {
            return Err(damaged(&format!(
                "`{name}` is {:?} {:?}, but this model needs F32 [{len}]",
                tensor.dtype(),
                tensor.shape()
            )));
        }
        let bytes = tensor.data().chunks_exact(4);
        // Unwrap safety: chunks_exact gives slices of four bytes.
        Ok(bytes.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect())
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

/// A part of a trained model.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// As `0.weight`.
    pub name: String,
    /// Its shape, in C order.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f32>,
}

/// The parts of a model as it is evaluated, with its batch-norm statistics.
pub fn model_tensors(network: &Network, model: &GlobalModel) -> Vec<Tensor> {
    parts(network, model)
        .map(|(name, Floats { values, shape })| Tensor { name, shape, values: values.to_vec() })
        .collect()
}

/// Reads the trained model of a finished run in `folder`.
pub fn read_model(folder: &Path) -> Result<Vec<Tensor>, RunError> {
    let path = folder.join(MODEL);
    let bytes = files::read(&path).map_err(RunError::io("read", &path))?;
    let damaged = |source| RunError::Tensors { path: path.clone(), source };
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(damaged)?;
    let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
    let mut names = metadata.offset_keys();
    names
        .drain(..)
        .map(|name| {
            let tensor = file.tensor(&name).map_err(damaged)?;
            let (values, _) = tensor.data().as_chunks::<4>();
            let values = values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            Ok(Tensor { name, shape: tensor.shape().to_vec(), values })
        })
        .collect()
}

fn parts<'a>(
    network: &'a Network,
    model: &'a GlobalModel,
) -> impl Iterator<Item = (String, Floats<'a>)> {
    let parts = [
        (network.tensors(), model.evaluated()),
        (network.statistics_tensors(), model.statistics.as_slice()),
    ];
    parts.into_iter().flat_map(|(tensors, values)| {
        tensors.iter().map(|tensor| {
            let values = &values[tensor.range.clone()];
            (tensor.name.clone(), Floats { values, shape: tensor.shape.clone() })
        })
    })
}

/// Writes the trained model, a tensor per layer part, for any reader of safetensors; as one tensor
/// without a network of ours.
pub(super) fn save_model(
    path: &Path,
    network: Option<&Network>,
    model: &GlobalModel,
) -> Result<(), RunError> {
    let values = model.evaluated();
    let all = Floats { values, shape: vec![values.len()] };
    match network {
        Some(network) => write(path, parts(network, model), None),
        None => write(path, [("parameters".to_string(), all)], None),
    }
}
