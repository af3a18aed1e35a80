//! The binary files of CIFAR-10 and CIFAR-100: a label or two, then 32×32 pixels of red, green, blue.
//!
//! Format: A. Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009, and the page
//! of the data sets, "Binary version". Of the two labels of CIFAR-100 the second, the fine one, counts.

use std::path::Path;

use super::parts::{self, Part, Parts};
use super::{DataError, FileHash, Result, Split};
use crate::shape::Shape;

const SHAPE: Shape = Shape::new(3, 32, 32);

/// The training files of CIFAR-10; its test file.
pub const TEN: [&str; 5] = [
    "data_batch_1.bin",
    "data_batch_2.bin",
    "data_batch_3.bin",
    "data_batch_4.bin",
    "data_batch_5.bin",
];
pub const TEN_TEST: &str = "test_batch.bin";

/// Samples of one file, and its hash.
struct File {
    pixels: Vec<u8>,
    labels: Vec<u8>,
    hash: FileHash,
}

/// Reads a folder with the files of either data set.
pub fn read(folder: &Path) -> Result<Parts> {
    let problem = |problem: &str| DataError::File { path: folder.into(), problem: problem.into() };
    let is_there = |name: &str| folder.join(name).is_file();
    let (train, test, labels): (&[&str], _, _) = if is_there(TEN_TEST) {
        (&TEN, TEN_TEST, 1)
    } else if is_there("test.bin") {
        (&["train.bin"], "test.bin", 2)
    } else {
        return Err(problem(
            "no test_batch.bin and no test.bin; expected a folder with the binary files of CIFAR-10 \
             (data_batch_1.bin to data_batch_5.bin, test_batch.bin) or CIFAR-100 (train.bin, test.bin)",
        ));
    };
    let part = |names: &[&str]| -> Result<(Part, Vec<FileHash>)> {
        let files = names.iter().map(|name| read_file(&folder.join(name), labels));
        let files: Vec<File> = files.collect::<Result<_>>()?;
        let (mut pixels, mut labels, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            pixels.extend(file.pixels);
            labels.extend(file.labels);
            hashes.push(file.hash);
        }
        let path = folder.join(names[0]);
        let split = Split { values: pixels.into(), labels, shape: SHAPE };
        Ok((Part { split, values: path.clone(), labels: path }, hashes))
    };
    let ((train, mut hashes), (test, test_hashes)) = (part(train)?, part(&[test])?);
    hashes.extend(test_hashes);
    Ok(Parts { train, test, hashes, devices: None, classes: None })
}

/// Reads a file whose samples begin with `labels` labels, of which the last counts.
fn read_file(path: &Path, labels: usize) -> Result<File> {
    let problem = |problem: String| DataError::File { path: path.into(), problem };
    let (bytes, hash) = parts::read_file(path)?;
    let (found, each) = (bytes.len(), labels + SHAPE.len());
    if found == 0 || found % each != 0 {
        let what = format!(
            "{found} bytes; expected a multiple of {each}: {labels} of labels and {} of pixels for \
             each image",
            SHAPE.len()
        );
        return Err(problem(what));
    }
    let samples = bytes.chunks_exact(each);
    Ok(File {
        labels: samples.clone().map(|sample| sample[labels - 1]).collect(),
        pixels: samples.flat_map(|sample| &sample[labels..]).copied().collect(),
        hash,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::data::{Data, DataName};

    /// `count` images whose pixels are 0, 1, 2, … and whose labels count up to `classes`.
    fn bytes(count: usize, labels: usize, classes: usize) -> Vec<u8> {
        let image = |i: usize| {
            let labels = (0..labels).map(move |at| if at + 1 == labels { i % classes } else { 7 });
            labels.chain((0..SHAPE.len()).map(move |pixel| i + pixel)).map(|value| value as u8)
        };
        (0..count).flat_map(image).collect()
    }

    fn load(folder: &Path) -> Result<crate::data::Dataset, String> {
        let name = DataName::try_from(format!("cifar:{}", folder.display())).unwrap();
        Data::named(name).load(&mut |_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn both_data_sets_are_read() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for name in TEN {
            fs::write(folder.join(name), bytes(3, 1, 10)).unwrap();
        }
        fs::write(folder.join(TEN_TEST), bytes(10, 1, 10)).unwrap();
        let ten = load(folder).unwrap();
        assert_eq!((ten.train.len(), ten.test.len(), ten.classes), (15, 10, 10));
        assert_eq!((ten.train.shape, ten.hashes.len()), (SHAPE, 6));
        assert_eq!(ten.train.labels[..4], [0, 1, 2, 0]);
        // Sample 4 is the second of its file: its first pixel is 1, the first green one 1024 later.
        assert_eq!(ten.train.input(4)[1024], f32::from((1025 % 256) as u8) * (1.0 / 255.0));

        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("train.bin"), bytes(120, 2, 100)).unwrap();
        fs::write(other.path().join("test.bin"), bytes(100, 2, 100)).unwrap();
        let hundred = load(other.path()).unwrap();
        assert_eq!((hundred.train.len(), hundred.classes), (120, 100));
        assert_eq!(hundred.train.labels[101], 1);
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_numbers() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        assert!(load(folder).unwrap_err().contains("no test_batch.bin and no test.bin"));
        fs::write(folder.join("test.bin"), bytes(2, 2, 2)).unwrap();
        assert!(load(folder).unwrap_err().contains("train.bin: cannot open"));
        fs::write(folder.join("train.bin"), &bytes(2, 2, 2)[1..]).unwrap();
        let error = load(folder).unwrap_err();
        assert!(error.contains("train.bin: 6147 bytes; expected a multiple of 3074"), "{error}");
        fs::write(folder.join("train.bin"), bytes(9, 2, 9)).unwrap();
        let error = load(folder).unwrap_err();
        assert!(error.contains("train.bin: label 2 (from 0) is 2; expected below 2"), "{error}");
    }
}
