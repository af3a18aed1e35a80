//! Errors of files.

use std::path::{Path, PathBuf};

/// A file or folder that the system refuses.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// The attempt, as a verb.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub source: std::io::Error,
}

impl FileError {
    /// The error of an attempt on a file.
    pub fn on(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self { action, path: path.into(), source }
    }
}
