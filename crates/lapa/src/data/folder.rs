//! Folders: where the cache is, and a folder of IDX files as a data set.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::idx::{self, Idx};
use super::{DataError, DataName, Dataset, FileHash, Result};

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

/// Loads a folder of IDX files with the standard names, plain or gzip; as [`dataset`].
pub fn load(folder: &Path, classes: Option<u32>) -> Result<Dataset> {
    let problem = |problem: String| DataError::Idx { path: folder.into(), problem };
    if !folder.is_dir() {
        return Err(problem("not a folder; expected a folder of IDX files".into()));
    }
    let read = |at: usize, dimensions| {
        let name = idx::FILES[at];
        let missing = || format!("{name} is missing; expected that file, plain or with .gz added");
        let path = idx::locate(folder, name).ok_or_else(|| problem(missing()))?;
        idx::read_file(&path, dimensions)
    };
    let files = [read(0, 3)?, read(1, 1)?, read(2, 3)?, read(3, 1)?];
    dataset(DataName::Idx(folder.into()), folder.display().to_string(), files, classes)
}

/// Joins four files, in the order of [`idx::FILES`].
///
/// Without `classes` their number is that of the test labels. Training labels are private: the
/// number, which shapes the model, must not follow from them.
pub fn dataset(
    name: DataName,
    source: String,
    files: [Idx; 4],
    classes: Option<u32>,
) -> Result<Dataset> {
    let hashes = idx::FILES
        .iter()
        .zip(&files)
        .map(|(name, idx)| FileHash { file: name.to_string(), sha256: idx.sha256.clone() })
        .collect();
    let [train_images, train_labels, test_images, test_labels] = files;
    let problem = |path: &Path, problem: String| DataError::Idx { path: path.into(), problem };
    let (images_path, train_path) = (test_images.path.clone(), train_labels.path.clone());
    let test_path = test_labels.path.clone();
    let train = idx::split(train_images, train_labels)?;
    let test = idx::split(test_images, test_labels)?;
    if test.shape != train.shape {
        let found = format!("images of {}", test.shape.of_image());
        let expected = format!("expected {} as in training", train.shape.of_image());
        return Err(problem(&images_path, format!("{found}; {expected}")));
    }
    let largest = test.labels.iter().max().copied().unwrap_or(0);
    let (found, origin) = match classes {
        Some(classes) => (classes as usize, "data.classes"),
        None if largest == 0 => {
            let all = "every label is 0; expected at least 2 classes, or set data.classes";
            return Err(problem(&test_path, all.into()));
        }
        None => (usize::from(largest) + 1, "the largest label of the test set plus one"),
    };
    for (path, labels) in [(train_path, &train.labels), (test_path, &test.labels)] {
        if let Some(index) = labels.iter().position(|&label| usize::from(label) >= found) {
            let what = format!(
                "label {index} (from 0) is {}; expected below {found}, {origin}: set data.classes \
                 to the number of classes",
                labels[index]
            );
            return Err(problem(&path, what));
        }
    }
    Ok(Dataset { name, source, train, test, classes: found, hashes })
}

#[cfg(test)]
mod tests;
