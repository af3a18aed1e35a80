//! An experiment as the user writes it (TOML) and as the engine reads it ([`Experiment`]).
//!
//! The way of a file: TOML and flags merged (`document`) → each value checked by itself against
//! the JSON Schema (`verify`), and forgotten if it is refused → values that follow others filled in
//! (`resolve`, `defaults`) → tables of choices turned into enums (`choice`) → keys checked against
//! each other (`check`) → [`Experiment`]. Types, ranges, meanings and all other defaults stand in the sections' structs;
//! those of a choice stand beside its implementation.

mod aggregate;
mod check;
mod choice;
mod control;
mod defaults;
mod document;
mod error;
mod experiment;
mod moved;
mod overrides;
mod printed;
mod privacy;
mod resolve;
mod schema;
mod template;
#[cfg(test)]
mod tests;
mod verify;

use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::{Path, PathBuf};

use self::resolve::Resolved;
use crate::data::DataName;

pub use crate::data::Data;
pub use crate::device::{BatchSampling, Clip, Learn, Update};
pub use crate::model::{ModelName, ModelSpec, Norm, Start};
pub use crate::radio::settings::{
    Access, FixedScale, ModulationName, Places, Powers, Radio, RegionSpec, Scale, Transmit,
};
pub use crate::radio::{BelowThreshold, NoneSelected};
pub use crate::seed::Entropy;
pub use aggregate::Aggregate;
pub use control::{
    BoundForm, Control, EvaluationChoice, MOST_CELLS, MOST_FITTED, NoiseControl, Pilot,
    PilotTooLarge, PrivatePilot, SwitchConfig, SwitchRule,
};
pub use error::ConfigError;
pub(crate) use experiment::MANY_DEVICES;
pub use experiment::{Experiment, Observe, ObserveDevices, PartitionSpec, Profile, Run};
pub use lapa_privacy::word_of;
pub use overrides::Override;
pub use privacy::{NoiseLevel, Privacy};
pub use schema::json_schema;
pub use template::template;

/// Most bytes of a configuration. In memory each may take fifty.
pub const MOST_BYTES: usize = 8 << 20;

/// The text of a configuration file; an error if it is longer than [`MOST_BYTES`].
pub fn read_file(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES {
        let what = format!("it has more than the {MOST_BYTES} bytes that a configuration may have");
        return Err(Error::new(ErrorKind::FileTooLarge, what));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("byte {at} is not UTF-8"))
    })
}

impl Experiment {
    /// Reads a configuration file. Flags win over the file, and both win over the defaults.
    pub fn from_toml(
        text: &str,
        file_name: &str,
        overrides: &[Override],
    ) -> Result<Self, ConfigError> {
        Self::resolve(text, file_name, overrides).map(|resolved| resolved.experiment)
    }

    fn resolve(
        text: &str,
        file_name: &str,
        overrides: &[Override],
    ) -> Result<Resolved, ConfigError> {
        if text.len() > MOST_BYTES {
            let place = error::Place::File { name: file_name.into(), text: "".into(), span: 0..0 };
            let message = format!("{} bytes: expected at most {MOST_BYTES}", text.len());
            return Err(ConfigError::new(message, None, place));
        }
        let mut document = document::Document::parse(text, file_name, overrides)?;
        let mistakes = verify::verify(&document, &schema::FILE);
        let (refused, mistakes) = mistakes.into_iter().unzip();
        document.refuse(refused);
        let resolved = resolve::resolve(&document, mistakes)?;
        // Written down with all its digits it must be read again.
        if text.len() > MOST_BYTES / 64 {
            let written = resolved.experiment.to_toml().len();
            if written > MOST_BYTES {
                let message =
                    format!("written in full {written} bytes: expected at most {MOST_BYTES}");
                return Err(document.error_at("", 0..0, message, None));
            }
        }
        Ok(resolved)
    }

    /// The experiment with paths that hold in any folder; or the path that has no such form, or none
    /// that a configuration can hold.
    pub fn with_absolute_paths(mut self) -> Result<Self, (PathBuf, std::io::Error)> {
        let idx = match &mut self.data.name {
            DataName::Files(_, path) => Some(path),
            _ => None,
        };
        for path in idx.into_iter().chain(&mut self.run.ledger) {
            *path = std::path::absolute(&*path).map_err(|error| (path.clone(), error))?;
            if path.to_str().is_none() {
                let what = "this path is not UTF-8, and a configuration can hold no other: rename \
                            the folder, or use another";
                return Err((path.clone(), Error::new(ErrorKind::InvalidInput, what)));
            }
        }
        Ok(self)
    }

    /// The configuration with every key that applies. Reading it back gives the same experiment.
    ///
    /// # Panics
    /// If a path is not UTF-8, which no configuration gives and [`Self::with_absolute_paths`]
    /// refuses.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_json()).expect("an experiment holds only numbers and words")
    }

    /// The same as JSON.
    ///
    /// # Panics
    /// As [`Self::to_toml`].
    pub fn to_json(&self) -> serde_json::Value {
        let mut values = serde_json::to_value(self).expect("an experiment holds UTF-8 paths");
        choice::to_file(&mut values, &schema::TYPES);
        values
    }
}
