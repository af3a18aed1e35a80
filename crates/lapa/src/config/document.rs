//! The file and the flags, merged into one TOML tree that remembers where each value came from.

use super::error::{ConfigError, Place};
use super::overrides::Override;
use super::raw::RawExperiment;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

pub(super) struct Document<'a> {
    file_name: &'a str,
    text: &'a str,
    /// The text again, for errors.
    shared: Arc<str>,
    tree: DeTable<'a>,
    /// Per dotted path that a flag set (or had to create): that flag.
    flags: BTreeMap<String, &'a Override>,
}

impl<'a> Document<'a> {
    pub fn parse(
        text: &'a str,
        file_name: &'a str,
        overrides: &'a [Override],
    ) -> Result<Self, ConfigError> {
        let mut document = Self {
            file_name,
            text,
            shared: text.into(),
            tree: DeTable::new(),
            flags: BTreeMap::new(),
        };
        let not_toml = |e: &toml::de::Error| format!("not valid TOML: {}", e.message());
        let tree = DeTable::parse(text)
            .map_err(|e| document.error_at("", e.span().unwrap_or(0..0), not_toml(&e), None))?;
        document.tree = tree.into_inner();
        for flag in overrides {
            let value = DeValue::parse(&flag.value).map_err(|e| ConfigError {
                message: not_toml(&e),
                help: None,
                place: Box::new(flag.place()),
            })?;
            document.set(flag, value.into_inner());
        }
        Ok(document)
    }

    /// Puts a flag's value into the tree, in place of the file's.
    fn set(&mut self, flag: &'a Override, value: DeValue<'a>) {
        // Spans of flags are never read: `flags` is asked first.
        let key = |name: &'a str| Spanned::new(0..0, Cow::Borrowed(name));
        let value = Spanned::new(0..0, value);
        let Some(section) = &flag.section else {
            self.tree.insert(key(&flag.key), value);
            self.flags.insert(flag.key.clone(), flag);
            return;
        };
        if !self.tree.get(section.as_str()).is_some_and(|v| v.get_ref().is_table()) {
            self.tree.insert(key(section), Spanned::new(0..0, DeValue::Table(DeTable::new())));
            self.flags.insert(section.clone(), flag);
        }
        if let Some(DeValue::Table(table)) =
            self.tree.get_mut(section.as_str()).map(Spanned::get_mut)
        {
            table.insert(key(&flag.key), value);
            self.flags.insert(format!("{section}.{}", flag.key), flag);
        }
    }

    pub fn tree(&self) -> &DeTable<'a> {
        &self.tree
    }

    /// The value at a dotted path, if the file or a flag gives it.
    fn value(&self, path: &str) -> Option<&Spanned<DeValue<'a>>> {
        match path.split_once('.') {
            Some((section, key)) => self.tree.get(section)?.get_ref().as_table()?.get(key),
            None => self.tree.get(path),
        }
    }

    /// Whether a flag set this path.
    pub fn is_flagged(&self, path: &str) -> bool {
        self.flags.contains_key(path)
    }

    /// The text of a value as the user wrote it.
    pub fn shown(&self, path: &str, value: &Spanned<DeValue>) -> &str {
        match self.flags.get(path) {
            Some(flag) => &flag.value,
            None => self.text.get(value.span()).unwrap_or_default(),
        }
    }

    /// An error at `path`: in the flag that set it, else at `span` of the file.
    pub fn error_at(
        &self,
        path: &str,
        span: Range<usize>,
        message: String,
        help: Option<String>,
    ) -> ConfigError {
        let place = match self.flags.get(path) {
            Some(flag) => flag.place(),
            None => Place::File { name: self.file_name.into(), text: self.shared.clone(), span },
        };
        ConfigError { message, help, place: Box::new(place) }
    }

    /// An error between several keys. It points at one that was given: best at one that a flag
    /// set, since the file alone may well be right.
    pub fn error(&self, paths: &[&str], message: String, help: &str) -> ConfigError {
        let flagged = paths.iter().find(|path| self.flags.contains_key(**path));
        let given = paths.iter().find(|path| self.value(path).is_some());
        let path = flagged.or(given).copied().unwrap_or_default();
        let span = self.value(path).map_or(0..0, Spanned::span);
        self.error_at(path, span, message, Some(help.into()))
    }

    /// The typed form of a document that [`verify`](super::verify::verify) has passed.
    pub fn raw(&self) -> Result<RawExperiment, ConfigError> {
        let root = Spanned::new(0..self.text.len(), self.tree.clone());
        RawExperiment::deserialize(Deserializer::from(root))
            .map_err(|e| self.error_at("", e.span().unwrap_or(0..0), e.message().into(), None))
    }
}
