//! Agents on the disk, as safetensors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensorError, SafeTensors, View};

use super::agent::{Agent, Learning, Parameters, Sizes};
use crate::atomic::write_atomically;
use crate::files::FileError;

/// Key of the sizes in the metadata.
const SIZES: &str = "lapa_ddpg";

/// An agent that could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// The file cannot be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// No safetensors, or damaged ones.
    #[error("{}: {source}", path.display())]
    Tensors {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: SafeTensorError,
    },
    /// Safetensors of something else.
    #[error("{} holds no agent: {what}", path.display())]
    NoAgent {
        /// The file.
        path: PathBuf,
        /// Description of the defect.
        what: String,
    },
    /// An agent for another task.
    #[error(
        "{} is an agent with {} states, {} actions and hidden layers of {}, but {} states, {} \
         actions and hidden layers of {} are expected",
        path.display(), found.states, found.actions, found.hidden,
        wanted.states, wanted.actions, wanted.hidden
    )]
    Sizes {
        /// The file.
        path: PathBuf,
        /// Its sizes.
        found: Sizes,
        /// Expected sizes.
        wanted: Sizes,
    },
}

struct Floats<'a> {
    values: &'a [f32],
    shape: &'a [usize],
}

impl View for Floats<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()
    }

    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}

impl Agent {
    /// Writes actor, critics and targets; not what Adam remembers.
    pub fn save(&self, path: &Path) -> Result<(), SavedError> {
        let (actor, critic) = self.sizes().networks();
        let Parameters { actor: mu, critic: q, actor_target, critic_target, twin } =
            self.parameters();
        let mut networks = vec![
            ("actor", &actor, &mu),
            ("critic", &critic, &q),
            ("actor_target", &actor, &actor_target),
            ("critic_target", &critic, &critic_target),
        ];
        if let Some([twin, target]) = &twin {
            networks.extend([("twin", &critic, twin), ("twin_target", &critic, target)]);
        }
        let tensors = networks.into_iter().flat_map(|(name, network, values)| {
            network.tensors().iter().map(move |tensor| {
                let values = &values[tensor.range.clone()];
                (format!("{name}.{}", tensor.name), Floats { values, shape: &tensor.shape })
            })
        });
        let Sizes { states, actions, hidden } = self.sizes();
        let sizes = format!(r#"{{"states":{states},"actions":{actions},"hidden":{hidden}}}"#);
        let bytes = safetensors::serialize(tensors, Some(HashMap::from([(SIZES.into(), sizes)])))
            .map_err(|source| SavedError::Tensors { path: path.into(), source })?;
        let written = write_atomically(path, |file| file.write_all(&bytes));
        Ok(written.map_err(FileError::on("write", path))?)
    }

    /// Reads an agent of these sizes; it goes on learning as `learning` says.
    pub fn load(path: &Path, wanted: Sizes, learning: Learning) -> Result<Self, SavedError> {
        let bytes = fs::read(path).map_err(FileError::on("read", path))?;
        let broken = |source| SavedError::Tensors { path: path.into(), source };
        let no_agent = |what: String| SavedError::NoAgent { path: path.into(), what };
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(broken)?;
        let sizes = metadata.metadata().as_ref().and_then(|metadata| metadata.get(SIZES));
        let sizes = sizes.ok_or_else(|| no_agent("its sizes are missing".into()))?;
        let found: Sizes =
            serde_json::from_str(sizes).map_err(|error| no_agent(format!("its sizes: {error}")))?;
        if found != wanted {
            return Err(SavedError::Sizes { path: path.into(), found, wanted });
        }
        let found = found.check().map_err(|error| no_agent(error.to_string()))?;
        let file = SafeTensors::deserialize(&bytes).map_err(broken)?;
        let (actor, critic) = found.networks();
        let read = |name: &str, network: &crate::model::Network| {
            let mut parameters = Vec::with_capacity(bytes.len() / 4);
            for tensor in network.tensors() {
                let name = format!("{name}.{}", tensor.name);
                let view = file.tensor(&name).map_err(broken)?;
                if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
                    let (dtype, shape) = (view.dtype(), view.shape());
                    return Err(no_agent(format!(
                        "`{name}` is {dtype:?} {shape:?}, expected F32 {:?}",
                        tensor.shape
                    )));
                }
                let (floats, _) = view.data().as_chunks::<4>();
                parameters.extend(floats.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            }
            match parameters.iter().find(|value| !value.is_finite()) {
                Some(value) => Err(no_agent(format!("`{name}` has the parameter {value}"))),
                None => Ok(parameters),
            }
        };
        let has_twin = file.names().into_iter().any(|name| name.starts_with("twin."));
        let twin = || Ok::<_, SavedError>([read("twin", &critic)?, read("twin_target", &critic)?]);
        let parameters = Parameters {
            twin: has_twin.then(twin).transpose()?,
            actor: read("actor", &actor)?,
            critic: read("critic", &critic)?,
            actor_target: read("actor_target", &actor)?,
            critic_target: read("critic_target", &critic)?,
        };
        Self::with_parameters(found, learning, parameters)
            .map_err(|error| no_agent(error.to_string()))
    }
}
