//! `-c section.key=value`: keys set on the command line.

use super::error::{ConfigError, Place};
use serde::Deserialize;
use toml::de::{DeValue, ValueDeserializer};

/// One key set on the command line; it wins over the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The flag's name and text, for error messages.
    name: &'static str,
    flag: String,
    /// The key that is set, with dots: `section.key`.
    pub(super) path: String,
    /// The value as TOML.
    pub(super) value: String,
}

impl Override {
    /// Reads `section.key=value`. The value is TOML; a bare word is taken as a string.
    pub fn parse(flag: &str) -> Result<Self, ConfigError> {
        Self::parse_flag("-c", flag)
    }

    /// The same for a flag of another name, which errors then give.
    pub fn parse_flag(name: &'static str, flag: &str) -> Result<Self, ConfigError> {
        let error = |message: String, help: &str| {
            ConfigError::new(message, Some(help.into()), Place::Flag(name, flag.into()))
        };
        let form = "write section.key=value, for example run.rounds=30";
        let (path, value) =
            flag.split_once('=').ok_or_else(|| error("no `=` in it".into(), form))?;
        let keys: Vec<&str> = path.split('.').map(str::trim).collect();
        let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if keys.iter().any(|key| key.is_empty() || !key.chars().all(bare)) {
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
        Ok(Self { name, flag: flag.into(), path: keys.join("."), value: toml })
    }

    /// The key that is set: `section.key`, or `key` at the top.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value as JSON.
    pub fn value(&self) -> serde_json::Value {
        // Reading checked the value, and what JSON lacks (dates, not a number) is no value of a key.
        let value = ValueDeserializer::parse(&self.value).ok();
        value.and_then(|value| serde_json::Value::deserialize(value).ok()).unwrap_or_default()
    }

    pub(super) fn place(&self) -> Place {
        Place::Flag(self.name, self.flag.clone())
    }
}
