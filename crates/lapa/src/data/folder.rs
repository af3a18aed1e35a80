//! Folders: where the cache is, and a folder of IDX files as a data set.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::idx::{self, Idx};
use super::parts::{Part, Parts};
use super::{DataError, FileHash, Result};

/// The folder of cached data sets: `LAPA_DATA`, or `lapa/data` in the user's cache folder.
pub fn cache_dir() -> Result<PathBuf> {
    cache_dir_from(|variable| std::env::var_os(variable))
}

/// XDG Base Directory Specification 0.8: an empty or relative `XDG_CACHE_HOME` is ignored.
fn cache_dir_from(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("LAPA_DATA")
        .or_else(|| Some(path("XDG_CACHE_HOME").filter(|p| p.is_absolute())?.join("lapa/data")))
        .or_else(|| Some(path("HOME")?.join(".cache/lapa/data")))
        .ok_or(DataError::NoCacheFolder)
}

/// Reads a folder of IDX files with the standard names, plain or gzip; images in color have `idx4` in
/// their names.
pub fn read(folder: &Path) -> Result<Parts> {
    let problem = |problem: String| DataError::File { path: folder.into(), problem };
    if !folder.is_dir() {
        return Err(problem("not a folder; expected a folder of IDX files".into()));
    }
    let read = |at: usize, dimensions| {
        let name = idx::FILES[at];
        let color = name.replace("idx3", "idx4");
        let missing = || format!("{name} is missing; expected that file, plain or with .gz added");
        match (idx::locate(folder, name), idx::locate(folder, &color)) {
            (Some(path), _) => idx::read_file(&path, dimensions),
            (None, Some(path)) => idx::read_file(&path, dimensions + 1),
            (None, None) => Err(problem(missing())),
        }
    };
    parts([read(0, 3)?, read(1, 1)?, read(2, 3)?, read(3, 1)?])
}

/// Pairs four files, in the order of [`idx::FILES`].
pub fn parts(files: [Idx; 4]) -> Result<Parts> {
    let hashes = idx::FILES
        .iter()
        .zip(&files)
        .map(|(name, idx)| FileHash { file: name.to_string(), sha256: idx.sha256.clone() })
        .collect();
    let part = |images: Idx, labels: Idx| -> Result<Part> {
        let paths = (images.path.clone(), labels.path.clone());
        let split = idx::split(images, labels)?;
        Ok(Part { split, values: paths.0, labels: paths.1 })
    };
    let [train_images, train_labels, test_images, test_labels] = files;
    let (train, test) = (part(train_images, train_labels)?, part(test_images, test_labels)?);
    Ok(Parts { train, test, hashes, devices: None, classes: None })
}

#[cfg(test)]
mod tests;
