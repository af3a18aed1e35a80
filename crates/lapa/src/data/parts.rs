//! Training and test samples as they were read, and what a data set must be.

use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::fetch::io;
use super::{DataError, DataName, Dataset, FeatureMap, FileHash, Result, Split};
use crate::files;

/// Most bytes of a file that is read whole.
const MAX_BYTES: u64 = 1 << 30;

/// A whole file, and its hash.
pub fn read_file(path: &Path) -> Result<(Vec<u8>, FileHash)> {
    let file = files::open_regular(path).map_err(io(path, "open"))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io(path, "read"))?;
    if bytes.len() as u64 > MAX_BYTES {
        let problem = format!("more than {MAX_BYTES} bytes, which are the most allowed");
        return Err(DataError::File { path: path.into(), problem });
    }
    let file = path.file_name().unwrap_or_default().to_string_lossy().into();
    let hash = FileHash { file, sha256: files::hex(Sha256::digest(&bytes)) };
    Ok((bytes, hash))
}

/// Samples as they were read, with the files that errors name.
pub struct Part {
    pub split: Split,
    pub values: PathBuf,
    pub labels: PathBuf,
}

/// Samples for training and for testing, and the hashes of their files.
pub struct Parts {
    pub train: Part,
    pub test: Part,
    pub hashes: Vec<FileHash>,
}

impl Parts {
    /// The data set. Without `classes` their number is that of the test labels. Training labels are
    /// private: the number, which shapes the model, must not follow from them.
    pub fn join(self, name: DataName, source: String, classes: Option<u32>) -> Result<Dataset> {
        let Self { train, test, hashes } = self;
        let problem = |path: &Path, problem: String| DataError::File { path: path.into(), problem };
        if test.split.shape != train.split.shape {
            let found = format!("images of {}", test.split.shape.of_image());
            let expected = format!("expected {} as in training", train.split.shape.of_image());
            return Err(problem(&test.values, format!("{found}; {expected}")));
        }
        let largest = test.split.labels.iter().max().copied().unwrap_or(0);
        let (found, origin) = match classes {
            Some(classes) => (classes as usize, "data.classes"),
            None if largest == 0 => {
                let all = "every label is 0; expected at least 2 classes, or set data.classes";
                return Err(problem(&test.labels, all.into()));
            }
            None => (usize::from(largest) + 1, "the largest label of the test set plus one"),
        };
        for Part { split, labels, .. } in [&train, &test] {
            if let Some(index) = split.labels.iter().position(|&label| usize::from(label) >= found)
            {
                let what = format!(
                    "label {index} (from 0) is {}; expected below {found}, {origin}: set \
                     data.classes to the number of classes",
                    split.labels[index]
                );
                return Err(problem(labels, what));
            }
        }
        let (train, test) = (train.split, test.split);
        let features = FeatureMap::default();
        Ok(Dataset { name, source, train, test, classes: found, features, hashes })
    }
}
