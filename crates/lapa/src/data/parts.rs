//! Training and test samples as they were read, and what a data set must be.

use std::path::{Path, PathBuf};

use super::{DataError, DataName, Dataset, FileHash, Result, Split};

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
        Ok(Dataset { name, source, train, test, classes: found, hashes })
    }
}
