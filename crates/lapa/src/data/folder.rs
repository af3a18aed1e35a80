//! Folders: where the cache is, and a folder of IDX files as a data set.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::idx::{self, Idx};
use super::{DataError, DataName, Dataset, FileHash};

/// The folder of cached data sets: `LAPA_DATA`, or `lapa/data` in the user's cache folder.
pub fn cache_dir() -> Result<PathBuf, DataError> {
    cache_dir_from(|variable| std::env::var_os(variable))
}

/// XDG Base Directory Specification 0.8: an empty or relative `XDG_CACHE_HOME` is ignored.
fn cache_dir_from(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, DataError> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("LAPA_DATA")
        .or_else(|| Some(path("XDG_CACHE_HOME").filter(|p| p.is_absolute())?.join("lapa/data")))
        .or_else(|| Some(path("HOME")?.join(".cache/lapa/data")))
        .ok_or(DataError::NoCacheFolder)
}

/// Loads a folder of IDX files with the standard names, plain or gzip.
pub fn load(folder: &Path) -> Result<Dataset, DataError> {
    let problem = |problem: String| DataError::Idx { path: folder.into(), problem };
    if !folder.is_dir() {
        return Err(problem("is not a folder, expected a folder of IDX files".into()));
    }
    let read = |name: &str, dimensions| {
        let path = idx::locate(folder, name).ok_or_else(|| {
            problem(format!("has no {name}, expected that file, plain or with .gz added"))
        })?;
        idx::read_file(&path, dimensions)
    };
    let [train_images, train_labels, test_images, test_labels] = idx::FILES;
    let files = [
        read(train_images, 3)?,
        read(train_labels, 1)?,
        read(test_images, 3)?,
        read(test_labels, 1)?,
    ];
    dataset(DataName::Idx(folder.into()), folder.display().to_string(), files)
}

/// Joins four files, in the order of [`idx::FILES`].
pub fn dataset(name: DataName, source: String, files: [Idx; 4]) -> Result<Dataset, DataError> {
    let hashes = idx::FILES
        .iter()
        .zip(&files)
        .map(|(name, idx)| FileHash { file: name.to_string(), sha256: idx.sha256.clone() })
        .collect();
    let [train_images, train_labels, test_images, test_labels] = files;
    let (test_path, labels_path) = (test_images.path.clone(), train_labels.path.clone());
    let train = idx::split(train_images, train_labels)?;
    let test = idx::split(test_images, test_labels)?;
    if (test.rows, test.cols) != (train.rows, train.cols) {
        let problem = format!(
            "images of {}×{}, expected {}×{} as in training",
            test.rows, test.cols, train.rows, train.cols
        );
        return Err(DataError::Idx { path: test_path, problem });
    }
    let largest = train.labels.iter().chain(&test.labels).max().copied().unwrap_or(0);
    if largest == 0 {
        let problem = "every label is 0, expected at least 2 classes".into();
        return Err(DataError::Idx { path: labels_path, problem });
    }
    Ok(Dataset { name, source, train, test, classes: largest as usize + 1, hashes })
}

#[cfg(test)]
mod tests;
