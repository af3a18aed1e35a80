//! An experiment as the user writes it (TOML) and as the engine reads it ([`Experiment`]).
//!
//! The way of a file: TOML and flags merged (`document`) → each value checked by itself against
//! the JSON Schema (`verify`) → typed, with absent keys (`raw`) → defaults filled in and keys
//! checked against each other (`resolve`) → [`Experiment`].

mod control;
#[cfg(test)]
mod control_tests;
mod defaults;
mod document;
mod error;
mod experiment;
mod overrides;
mod privacy;
mod radio;
#[cfg(test)]
mod radio_input_tests;
#[cfg(test)]
mod radio_tests;
mod raw;
mod resolve;
mod resolve_control;
mod resolve_radio;
#[cfg(test)]
mod round_trip;
mod schema;
mod template;
#[cfg(test)]
mod tests;
mod verify;

use std::path::PathBuf;

use crate::data::DataName;

pub use control::{
    BoundForm, Control, EvaluationChoice, NoiseControl, Pilot, PowerChoice, SwitchRule,
};
pub use error::ConfigError;
pub use experiment::{
    AllocatorName, BatchSampling, Clip, Data, Entropy, Experiment, Learn, ModelName, ModelSpec,
    Norm, Observe, ObserveDevices, PartitionSpec, Privacy, Profile, Run, Scheme, Start, Update,
};
pub use overrides::Override;
pub use radio::{
    Access, Aggregate, Histograms, ModulationName, NoneSelected, Powers, Radio, RegionSpec, Rule,
    SymbolKind, Transmit, UplinkName,
};
pub use schema::json_schema;
pub use template::template;

impl Experiment {
    /// Reads a configuration file. Flags win over the file, and both win over the defaults.
    pub fn from_toml(
        text: &str,
        file_name: &str,
        overrides: &[Override],
    ) -> Result<Self, ConfigError> {
        let document = document::Document::parse(text, file_name, overrides)?;
        verify::verify(&document, &json_schema())?;
        resolve::resolve(document.raw()?, &document)
    }

    /// The experiment with paths that hold in any folder; or the path that has no such form.
    pub fn with_absolute_paths(mut self) -> Result<Self, (PathBuf, std::io::Error)> {
        let idx = match &mut self.data.name {
            DataName::Idx(path) => Some(path),
            _ => None,
        };
        for path in idx.into_iter().chain(&mut self.privacy.ledger) {
            *path = std::path::absolute(&*path).map_err(|error| (path.clone(), error))?;
        }
        Ok(self)
    }

    /// The configuration with every key that applies. Reading it back gives the same experiment.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("an experiment holds only numbers, words and pairs")
    }
}

impl Default for Experiment {
    /// The experiment of an empty configuration file.
    fn default() -> Self {
        Self::from_toml("", "", &[]).expect("the defaults go together")
    }
}
