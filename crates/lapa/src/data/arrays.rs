//! Data sets as arrays of NumPy: x_train, y_train, x_test and y_test in one .npz file or four .npy files.

use std::io::{Read, Seek};
use std::path::Path;

use zip::ZipArchive;

use super::fetch::io;
use super::npy::{self, Array, Numbers};
use super::parts::{Part, Parts, hash};
use super::samples::planes;
use super::{DataError, Result, Split};
use crate::files;
use crate::shape::Shape;

/// Samples and labels for training, then for testing.
pub const NAMES: [&str; 4] = ["x_train", "y_train", "x_test", "y_test"];

/// Devices of the training samples, if they are there.
pub const DEVICES: &str = "device_train";

/// Most channels of an image.
const MOST_CHANNELS: usize = 4;

fn problem(path: &Path, problem: String) -> DataError {
    DataError::File { path: path.into(), problem }
}

/// Reads a .npz file, or a folder with x_train.npy, y_train.npy, x_test.npy and y_test.npy.
pub fn read(path: &Path) -> Result<Parts> {
    if path.is_dir() {
        let paths = NAMES.map(|name| path.join(format!("{name}.npy")));
        let read = |path: &Path| {
            let hash = hash(path)?;
            let mut file = files::open_regular(path).map_err(io(path, "open"))?;
            let array = npy::read(&mut file).map_err(|what| problem(path, what))?;
            Ok((array, hash))
        };
        let [a, b, c, d] = &paths;
        let named = path.join(format!("{DEVICES}.npy"));
        let devices = if named.is_file() { Some(read(&named)?) } else { None };
        let read = [read(a)?, read(b)?, read(c)?, read(d)?];
        let hashes = read.iter().chain(&devices).map(|(_, hash)| hash.clone()).collect();
        let [x_train, y_train, x_test, y_test] = read.map(|(array, _)| array);
        let train = part([x_train, y_train], [(a, NAMES[0]), (b, NAMES[1])])?;
        let test = part([x_test, y_test], [(c, NAMES[2]), (d, NAMES[3])])?;
        let devices = devices.map(|(array, _)| devices_of(array, train.split.len()));
        let devices = devices.transpose().map_err(|what| problem(&named, what))?;
        return Ok(Parts { train, test, hashes, devices, classes: None });
    }
    let hashes = vec![hash(path)?];
    let file = files::open_regular(path).map_err(io(path, "open"))?;
    let archive = ZipArchive::new(file);
    let mut archive =
        archive.map_err(|error| problem(path, format!("cannot be read as .npz: {error}")))?;
    let mut array = |name: &str| member(&mut archive, name).map_err(|what| problem(path, what));
    let [x_train, y_train, x_test, y_test] =
        [array(NAMES[0])?, array(NAMES[1])?, array(NAMES[2])?, array(NAMES[3])?];
    let train = part([x_train, y_train], [(path, NAMES[0]), (path, NAMES[1])])?;
    let test = part([x_test, y_test], [(path, NAMES[2]), (path, NAMES[3])])?;
    let devices = archive.index_for_name(&format!("{DEVICES}.npy")).is_some();
    let devices = devices.then(|| devices_of(member(&mut archive, DEVICES)?, train.split.len()));
    let devices = devices.transpose().map_err(|what| problem(path, what))?;
    Ok(Parts { train, test, hashes, devices, classes: None })
}

/// An array of an archive.
fn member(archive: &mut ZipArchive<impl Read + Seek>, name: &str) -> Result<Array, String> {
    let Some(index) = archive.index_for_name(&format!("{name}.npy")) else {
        let found = archive.file_names().flatten().collect::<Vec<_>>().join(", ");
        return Err(format!("no array {name}; it has {found}"));
    };
    let unreadable = |error: &dyn std::fmt::Display| format!("{name}: cannot be read: {error}");
    let mut member = archive.by_index(index).map_err(|error| unreadable(&error))?;
    npy::read(&mut member).map_err(|what| format!("{name}: {what}"))
}

/// Samples and their labels, each with the file and the name that errors give.
fn part([x, y]: [Array; 2], [x_from, y_from]: [(&Path, &str); 2]) -> Result<Part> {
    let refuse =
        |(path, name): (&Path, &str), what: String| problem(path, format!("{name}: {what}"));
    let (count, expected) =
        (y.dims.first().copied().unwrap_or(0), x.dims.first().copied().unwrap_or(0));
    let labels = labels(y).map_err(|what| refuse(y_from, what))?;
    if count != expected {
        let what =
            format!("{count} labels; expected {expected}, one for each sample of {}", x_from.1);
        return Err(refuse(y_from, what));
    }
    let split = samples(x, labels).map_err(|what| refuse(x_from, what))?;
    Ok(Part { split, values: x_from.0.into(), labels: y_from.0.into() })
}

/// Labels of n or n×1.
fn labels(array: Array) -> Result<Vec<u8>, String> {
    let sizes = array.sizes();
    if !matches!(array.dims[..], [_] | [_, 1]) {
        return Err(format!("dimensions are {sizes}; expected one label for each sample"));
    }
    match array.numbers {
        Numbers::Bytes(labels) => Ok(labels),
        Numbers::Floats(_) => Err("floats; expected classes, whole numbers from 0 to 255".into()),
        Numbers::Whole(labels) => {
            let label = |(at, label): (usize, i64)| {
                label.try_into().map_err(|_| {
                    format!("at {at} (from 0) it is {label}; expected a class from 0 to 255")
                })
            };
            labels.into_iter().enumerate().map(label).collect()
        }
    }
}

/// Whole numbers of devices, one for each of `count` samples.
fn devices_of(array: Array, count: usize) -> Result<Vec<String>, String> {
    let sizes = array.sizes();
    if array.dims[..] != [count] {
        return Err(format!(
            "{DEVICES}: dimensions are {sizes}; expected {count}, one for each sample"
        ));
    }
    match array.numbers {
        Numbers::Bytes(numbers) => Ok(numbers.iter().map(u8::to_string).collect()),
        Numbers::Whole(numbers) => Ok(numbers.iter().map(i64::to_string).collect()),
        Numbers::Floats(_) => Err(format!("{DEVICES}: floats; expected whole numbers")),
    }
}

/// Samples of n × values, n × rows × columns, or with channels last or first.
fn samples(array: Array, labels: Vec<u8>) -> Result<Split, String> {
    let sizes = array.sizes();
    let (shape, is_last) = match array.dims[..] {
        [_, len] => (Shape::new(1, 1, len), false),
        [_, rows, cols] => (Shape::new(1, rows, cols), false),
        [_, rows, cols, channels @ 1..=MOST_CHANNELS] => (Shape::new(channels, rows, cols), true),
        [_, channels @ 1..=MOST_CHANNELS, rows, cols] => (Shape::new(channels, rows, cols), false),
        _ => {
            return Err(format!(
                "dimensions are {sizes}; expected samples × values, samples × rows × columns, or \
                 these with 1 to {MOST_CHANNELS} channels last or first"
            ));
        }
    };
    if shape.is_empty() || labels.is_empty() {
        return Err(format!("dimensions are {sizes}; expected each to be at least 1"));
    }
    let values = match array.numbers {
        Numbers::Bytes(bytes) if is_last => planes(&bytes, shape).into(),
        Numbers::Bytes(bytes) => bytes.into(),
        Numbers::Floats(floats) => {
            if let Some(at) = floats.iter().position(|value| !value.is_finite()) {
                let (sample, value) = (at / shape.len(), floats[at]);
                return Err(format!(
                    "sample {sample} (from 0) has {value}; expected finite numbers"
                ));
            }
            if is_last { planes(&floats, shape).into() } else { floats.into() }
        }
        Numbers::Whole(_) => {
            return Err(
                "whole numbers of more than a byte; expected uint8, float32 or float64".into()
            );
        }
    };
    Ok(Split { values, labels, shape })
}

#[cfg(test)]
mod tests;
