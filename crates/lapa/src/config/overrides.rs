//! `-c section.key=value`: keys set on the command line.

use super::error::{ConfigError, Place};
use toml::de::DeValue;

/// One key set on the command line; it wins over the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The flag's text, for error messages.
    pub(super) flag: String,
    /// The section, absent for a top-level key.
    pub(super) section: Option<String>,
    pub(super) key: String,
    /// The value as TOML.
    pub(super) value: String,
}

impl Override {
    /// Reads `section.key=value`. The value is TOML; a bare word is taken as a string.
    pub fn parse(flag: &str) -> Result<Self, ConfigError> {
        let error = |message: String, help: &str| ConfigError {
            message,
            help: Some(help.into()),
            place: Box::new(Place::Flag(flag.into())),
        };
        let form = "write section.key=value, for example run.rounds=30";
        let (path, value) =
            flag.split_once('=').ok_or_else(|| error("no `=` in it".into(), form))?;
        let (section, key) = match path.trim().split_once('.') {
            Some((section, key)) => (Some(section.trim()), key.trim()),
            None => (None, path.trim()),
        };
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if [section.unwrap_or(key), key].iter().any(|k| k.is_empty() || !k.chars().all(bare)) {
            return Err(error(format!("`{}` is not a key", path.trim()), form));
        }

        let value = value.trim();
        let toml = match DeValue::parse(value) {
            Ok(parsed) if parsed.get_ref().is_table() => {
                return Err(error(
                    format!("`{value}` is a table, but a flag sets one key"),
                    "give one flag per key, for example run.rounds=30",
                ));
            }
            Ok(_) => value.to_owned(),
            Err(_) if value.is_empty() => return Err(error("no value after `=`".into(), form)),
            // Quotes and brackets announce TOML; anything else was meant as a string.
            Err(e) if value.starts_with(['"', '\'', '[', '{']) => {
                return Err(error(
                    format!("`{value}` is not a TOML value: {}", e.message()),
                    "check the quotes and brackets; a bare word needs none",
                ));
            }
            Err(_) => toml::Value::from(value).to_string(),
        };
        Ok(Self {
            flag: flag.into(),
            section: section.map(Into::into),
            key: key.into(),
            value: toml,
        })
    }
}
