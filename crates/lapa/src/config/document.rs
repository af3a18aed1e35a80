//! The file and the flags, merged into one TOML tree that remembers where each value came from.

use super::choice::pointer;
use super::error::{ConfigError, Place};
use super::overrides::Override;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Paths of refused keys and values, which count as not given.
    refused: BTreeSet<String>,
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
            refused: BTreeSet::new(),
        };
        let not_toml = |e: &toml::de::Error| format!("not valid TOML: {}", e.message());
        let tree = DeTable::parse(text)
            .map_err(|e| document.error_at("", e.span().unwrap_or(0..0), not_toml(&e), None))?;
        document.tree = tree.into_inner();
        for flag in overrides {
            let value = DeValue::parse(&flag.value)
                .map_err(|e| ConfigError::new(not_toml(&e), None, flag.place()))?;
            document.set(flag, value.into_inner());
        }
        Ok(document)
    }

    /// Puts a flag's value into the tree, in place of the file's.
    fn set(&mut self, flag: &'a Override, value: DeValue<'a>) {
        // Spans of flags are never read: `flags` is asked first.
        let spanned = |value| Spanned::new(0..0, value);
        let mut table = &mut self.tree;
        for (dot, _) in flag.path.match_indices('.') {
            let parent = &flag.path[..dot];
            let name = &parent[parent.rfind('.').map_or(0, |dot| dot + 1)..];
            let place = table
                .entry(Spanned::new(0..0, Cow::Borrowed(name)))
                .or_insert_with(|| spanned(DeValue::Boolean(false)));
            if !place.get_ref().is_table() {
                *place = spanned(DeValue::Table(DeTable::new()));
                self.flags.insert(parent.into(), flag);
            }
            let DeValue::Table(inner) = place.get_mut() else { return };
            table = inner;
        }
        let name = &flag.path[flag.path.rfind('.').map_or(0, |dot| dot + 1)..];
        table.insert(Spanned::new(0..0, Cow::Borrowed(name)), spanned(value));
        self.flags.insert(flag.path.clone(), flag);
    }

    pub fn tree(&self) -> &DeTable<'a> {
        &self.tree
    }

    /// The value at a dotted path, if the file or a flag gives it.
    fn value(&self, path: &str) -> Option<&Spanned<DeValue<'a>>> {
        let mut keys = path.split('.');
        let first = self.tree.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get_ref().as_table()?.get(key))
    }

    /// Takes keys and values for not given.
    pub fn refuse(&mut self, paths: BTreeSet<String>) {
        self.refused = paths;
    }

    /// True if the file or a flag gives the key, with a value that is allowed.
    pub fn is_given(&self, path: &str) -> bool {
        let refused = |end| self.refused.contains(&path[..end]);
        let ends = path.match_indices('.').map(|(dot, _)| dot).chain([path.len()]);
        self.value(path).is_some() && !ends.into_iter().any(refused)
    }

    /// True if a flag set a key of this table.
    pub fn has_flags_in(&self, table: &str) -> bool {
        let inside =
            |path: &str| path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        self.flags.keys().any(|path| inside(path))
    }

    /// True if a flag set this path.
    pub fn is_flagged(&self, path: &str) -> bool {
        self.flags.contains_key(path)
    }

    /// The flag that set this path, or a list that it lies in.
    pub fn flag(&self, path: &str) -> Option<&'a Override> {
        let ends = path.rmatch_indices('.').map(|(dot, _)| dot);
        let mut paths = std::iter::once(path.len()).chain(ends).map(|end| &path[..end]);
        paths.find_map(|path| self.flags.get(path).copied())
    }

    /// The text of a value as the user wrote it.
    pub fn shown(&self, path: &str, value: &Spanned<DeValue>) -> &str {
        let text = match (self.flags.get(path), self.flag(path)) {
            (Some(flag), _) => return &flag.value,
            (None, Some(flag)) => &flag.value,
            (None, None) => self.text,
        };
        text.get(value.span()).unwrap_or_default()
    }

    /// An error at `path`: in the flag that set it, else at `span` of the file.
    pub fn error_at(
        &self,
        path: &str,
        span: Range<usize>,
        message: String,
        help: Option<String>,
    ) -> ConfigError {
        let place = match self.flag(path) {
            Some(flag) => flag.place(),
            None => Place::File { name: self.file_name.into(), text: self.shared.clone(), span },
        };
        ConfigError::new(message, help, place)
    }

    /// An error between several keys. It points at one that was given: best at one that a flag
    /// set, since the file alone may well be right.
    pub fn error(&self, paths: &[&str], message: impl Into<String>, help: &str) -> ConfigError {
        let flagged = paths.iter().find(|path| self.flags.contains_key(**path));
        let given = paths.iter().find(|path| self.value(path).is_some());
        let path = flagged.or(given).copied().unwrap_or_default();
        let span = self.value(path).map_or(0..0, Spanned::span);
        let mut error = self.error_at(path, span, message.into(), Some(help.into()));
        error.is_between_given = paths.iter().all(|path| self.is_given(path));
        error
    }

    /// All values that are given.
    pub fn values(&self) -> Result<Value, ConfigError> {
        let root = Spanned::new(0..self.text.len(), self.tree.clone());
        let mut values = Value::deserialize(Deserializer::from(root))
            .map_err(|e| self.error_at("", e.span().unwrap_or(0..0), e.message().into(), None))?;
        for path in &self.refused {
            remove(&mut values, path);
        }
        Ok(values)
    }
}

/// Removes the value at a dotted path, if there is one.
pub(super) fn remove(values: &mut Value, path: &str) {
    let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
    let section =
        if section.is_empty() { Some(values) } else { values.pointer_mut(&pointer(section)) };
    if let Some(Value::Object(keys)) = section {
        keys.remove(key);
    }
}
