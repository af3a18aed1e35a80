//! Training and test samples as they were read, and what a data set must be.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::fetch::io;
use super::{DataError, DataName, Dataset, FeatureMap, FileHash, Result, Split};
use crate::files;

/// Most bytes of a file that is read whole, and of the values of a data set.
pub const MAX_BYTES: u64 = 1 << 30;

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

/// The hash of a file of any length.
pub fn hash(path: &Path) -> Result<FileHash> {
    let mut file = files::open_regular(path).map_err(io(path, "open"))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(io(path, "read"))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(FileHash { file: name.into(), sha256: files::hex(hash.finalize()) })
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
    /// The device of each training sample, where the data name it.
    pub devices: Option<Vec<String>>,
    /// The number of classes, where the files tell it beside the labels.
    pub classes: Option<u32>,
}

/// Without a second file, each row with this number is a test sample: rows 5, 10, 15, …
const HELD_OUT: usize = 5;

/// True for a row of a single file that is for testing.
pub fn is_held_out(row: usize) -> bool {
    (row + 1).is_multiple_of(HELD_OUT)
}

/// The rows of a single file, of which every fifth is for testing.
pub fn hold_out(
    all: Split,
    devices: Option<Vec<String>>,
    path: &Path,
    hash: FileHash,
) -> Result<Parts> {
    if all.len() < HELD_OUT {
        let problem = format!("{} rows; expected at least {HELD_OUT}", all.len());
        return Err(DataError::File { path: path.into(), problem });
    }
    let part = |is_test: bool| {
        let rows = 0..all.len() as u32;
        let rows: Vec<u32> = rows.filter(|&row| is_held_out(row as usize) == is_test).collect();
        Part { split: all.select(&rows), values: path.into(), labels: path.into() }
    };
    let training = |devices: Vec<String>| {
        let rows = devices.into_iter().enumerate();
        rows.filter(|(row, _)| !is_held_out(*row)).map(|(_, device)| device).collect()
    };
    let (train, test) = (part(false), part(true));
    Ok(Parts { train, test, hashes: vec![hash], devices: devices.map(training), classes: None })
}

/// Numbers in place of the names of devices, in the order of the names; of whole numbers, in theirs.
fn numbered(names: &[String]) -> Vec<u32> {
    let mut distinct: Vec<&String> = names.iter().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let numbers: Option<Vec<i64>> = distinct.iter().map(|name| name.parse().ok()).collect();
    if let Some(numbers) = numbers {
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&at| numbers[at]);
        distinct = order.into_iter().map(|at| distinct[at]).collect();
    }
    let number: HashMap<&String, u32> = distinct.into_iter().zip(0..).collect();
    names.iter().map(|name| number[name]).collect()
}

impl Parts {
    /// The data set. Without `classes` their number is that of the test labels. Training labels are
    /// private: the number, which shapes the model, must not follow from them.
    pub fn join(self, name: DataName, source: String, classes: Option<u32>) -> Result<Dataset> {
        let Self { train, test, hashes, devices, classes: known } = self;
        let problem = |path: &Path, problem: String| DataError::File { path: path.into(), problem };
        if test.split.shape != train.split.shape {
            let found = format!("images of {}", test.split.shape.of_image());
            let expected = format!("expected {} as in training", train.split.shape.of_image());
            return Err(problem(&test.values, format!("{found}; {expected}")));
        }
        let labels = &test.split.labels;
        if let [first, _, ..] = labels[..]
            && labels.iter().all(|&label| label == first)
        {
            let what = format!(
                "every label is {first}, of {} test samples; expected at least 2 classes",
                labels.len()
            );
            return Err(problem(&test.labels, what));
        }
        let largest = test.split.labels.iter().max().copied().unwrap_or(0);
        let (found, origin) = match classes.or(known) {
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
        let (devices, features) = (devices.map(|names| numbered(&names)), FeatureMap::default());
        Ok(Dataset { name, source, train, test, classes: found, features, devices, hashes })
    }
}
