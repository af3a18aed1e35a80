//! Errors of data sets.

use std::path::PathBuf;

use super::Format;
use crate::shape::Shape;

/// Result of work on data sets.
pub type Result<T, E = DataError> = std::result::Result<T, E>;

/// A data set that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// The environment names no folder for the cache.
    #[error("no folder for the data cache: set LAPA_DATA, XDG_CACHE_HOME or HOME to a folder")]
    NoCacheFolder,
    /// A file or folder could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The action.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The value found and what is expected.
        problem: String,
    },
    /// Features that cannot be had of these samples.
    #[error("model.features = \"{features}\": {problem}")]
    Features {
        /// The features, in a word.
        features: &'static str,
        /// The value found and what is expected.
        problem: String,
    },
    /// The normalization has numbers for other samples.
    #[error(
        "`data.{key}` has {given} numbers, but samples are of {}: expected one number, or {expected}: one for \
         each channel, or each value of a vector",
        shape.of_image()
    )]
    Normalization {
        /// `mean` or `std`.
        key: &'static str,
        /// Numbers that are given.
        given: usize,
        /// Channels, or values of a vector.
        expected: usize,
        /// Shape of the samples.
        shape: Shape,
    },
    /// No source could deliver the data set.
    #[error(
        "data set `{name}` is not available; tried{}\n\
         put its files into {}, or use {}:PATH",
        list(tried), folder.display(), format.word()
    )]
    Unavailable {
        /// The data set.
        name: &'static str,
        /// The format of its files.
        format: Format,
        /// Its folder in the cache.
        folder: PathBuf,
        /// Every source, in the order tried.
        tried: Vec<Tried>,
    },
}

/// A source that did not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The source, in words.
    pub source: String,
    /// The cause.
    pub reason: String,
}

fn list(tried: &[Tried]) -> String {
    tried.iter().map(|t| format!("\n  - {}: {}", t.source, t.reason)).collect()
}
