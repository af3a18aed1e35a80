//! Mistakes in a configuration, with their places.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Mistakes that an error holds in full; the others are counted.
const MOST_RELATED: usize = 20;

/// A mistake in a configuration file or in a flag that sets a key, and the other mistakes found
/// with it.
///
/// `Display` says where, what is wrong and what is allowed; the accessors give the same parts to
/// a renderer that shows the line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    message: String,
    help: Option<String>,
    place: Box<Place>,
    related: Vec<ConfigError>,
    /// Mistakes beyond `related`.
    more: usize,
    /// True for a contradiction between keys that are all given: it stands whatever else is wrong.
    pub(super) is_between_given: bool,
}

/// Place of a mistake.
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
    pub(super) fn new(message: String, help: Option<String>, place: Place) -> Self {
        let place = Box::new(place);
        Self { message, help, place, related: Vec::new(), more: 0, is_between_given: false }
    }

    /// The first of several mistakes, with the others as its related ones.
    pub(super) fn first(mut errors: impl ExactSizeIterator<Item = Self>) -> Option<Self> {
        let mut first = errors.next()?;
        first.related = errors.by_ref().take(MOST_RELATED).collect();
        first.more = errors.len();
        Some(first)
    }

    /// The other mistakes of the same configuration, in their order.
    pub fn related(&self) -> &[Self] {
        &self.related
    }

    /// Number of mistakes beyond [`ConfigError::related`].
    pub fn more(&self) -> usize {
        self.more
    }

    /// The mistake: the key, the value and what is allowed.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Advice, if there is a good guess.
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

    /// The place in words: file, line and column, or the flag.
    pub fn place(&self) -> String {
        match (&*self.place, self.line_column()) {
            (Place::File { name, .. }, Some((line, column))) => format!("{name}:{line}:{column}"),
            (Place::File { name, .. }, None) => name.clone(),
            (Place::Flag(name, text), _) => format!("{name} {text}"),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)?;
        self.help.iter().try_for_each(|help| write!(f, "\n  help: {help}"))?;
        self.related.iter().try_for_each(|error| write!(f, "\n{error}"))?;
        if self.more > 0 {
            write!(f, "\n{} more mistakes", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
