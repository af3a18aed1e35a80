//! What is wrong with a configuration, and where.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A mistake in a configuration file or in a flag that sets a key.
///
/// `Display` says where, what is wrong and what is allowed; the accessors give the same parts to
/// a renderer that shows the line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub(super) message: String,
    pub(super) help: Option<String>,
    pub(super) place: Box<Place>,
}

/// Where the mistake stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    File {
        name: String,
        /// Shared by all errors of the file.
        text: Arc<str>,
        span: Range<usize>,
    },
    /// The flag's name, and what stands after it.
    Flag(&'static str, String),
}

impl ConfigError {
    /// What is wrong: the key, the value and what is allowed.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, if there is a good guess.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The text after the flag that holds the mistake, unless it is in the file.
    pub fn flag(&self) -> Option<&str> {
        match &*self.place {
            Place::Flag(_, text) => Some(text),
            Place::File { .. } => None,
        }
    }

    /// The name of the file that holds the mistake, unless it is in a flag.
    pub fn file_name(&self) -> Option<&str> {
        match &*self.place {
            Place::File { name, .. } => Some(name),
            Place::Flag(..) => None,
        }
    }

    /// The whole text of that file.
    pub fn source_text(&self) -> Option<&str> {
        match &*self.place {
            Place::File { text, .. } => Some(text),
            Place::Flag(..) => None,
        }
    }

    /// The bytes of [`ConfigError::source_text`] to point at.
    pub fn span(&self) -> Option<Range<usize>> {
        match &*self.place {
            Place::File { span, .. } => Some(span.clone()),
            Place::Flag(..) => None,
        }
    }

    /// Line and column of the span's start, both from 1; columns count characters.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        match &*self.place {
            Place::File { text, span, .. } => {
                let before = text.get(..span.start).unwrap_or(text);
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let line = before.matches('\n').count() + 1;
                Some((line, before[line_start..].chars().count() + 1))
            }
            Place::Flag(..) => None,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.place, self.line_column()) {
            (Place::File { name, .. }, Some((line, column))) => {
                write!(f, "{name}:{line}:{column}")?
            }
            (Place::File { name, .. }, None) => f.write_str(name)?,
            (Place::Flag(name, text), _) => write!(f, "{name} {text}")?,
        }
        write!(f, ": {}", self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "\n  help: {help}"))
    }
}

impl std::error::Error for ConfigError {}
