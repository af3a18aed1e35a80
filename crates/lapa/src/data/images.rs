//! Folders of pictures: train/CLASS/*.png and test/CLASS/*.png, or .jpg.

use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::fetch::io;
use super::format::Request;
use super::parts::{self, Part, Parts};
use super::picture::{self, Frame, Picture};
use super::{DataError, FetchEvent, FileHash, Result, Split};
use crate::files;

/// Pictures between two reports.
const TOGETHER: usize = 256;
/// Most classes: labels are bytes.
const MOST_CLASSES: usize = 256;

/// A picture's file, and its class.
struct Entry {
    path: PathBuf,
    label: u8,
    bytes: u64,
}

fn refuse<T>(path: &Path, problem: String) -> Result<T> {
    Err(DataError::File { path: path.into(), problem })
}

/// Reads a folder. The test pictures are public: the names of their folders are the classes, in their
/// order, and all samples are in color if one of them is.
pub fn read(request: Request) -> Result<Parts> {
    let [train_folder, test_folder] = ["train", "test"].map(|name| request.path.join(name));
    let classes = entries(&test_folder)?.into_iter().filter(|path| path.is_dir());
    let classes: Vec<String> = classes.map(|path| name(&path)).collect();
    if !(2..=MOST_CLASSES).contains(&classes.len()) {
        let what = format!("{} folders of classes; expected 2 to {MOST_CLASSES}", classes.len());
        return refuse(&test_folder, what);
    }
    let (train, test) = (list(&train_folder, &classes)?, list(&test_folder, &classes)?);
    let count = train.len() + test.len();
    let first = parts::read_file(&test[0].path)?.0;
    let frame = Frame::new(request.size, &first, count);
    let frame = frame.or_else(|what| refuse(&test[0].path, what))?;
    let total = train.iter().chain(&test).map(|entry| entry.bytes).sum();
    let (on_event, mut done) = (request.on_event, 0);
    let mut decode = |folder: &Path, list: &[Entry]| {
        let mut report = |bytes| {
            done += bytes;
            on_event(FetchEvent::Progress { file: name(folder), bytes: done, total });
        };
        decode(folder, list, &frame, &mut report)
    };
    let (test_pictures, test_hash) = decode(&test_folder, &test)?;
    let (train_pictures, train_hash) = decode(&train_folder, &train)?;
    let shape = frame.shape(&test_pictures);
    let part = |pictures, list: &[Entry], folder: PathBuf| -> Result<Part> {
        let values = picture::planes(pictures, shape).or_else(|at: usize| {
            refuse(&list[at].path, "in color; expected gray, as all test pictures are".into())
        })?;
        let labels = list.iter().map(|entry| entry.label).collect();
        let split = Split { values: values.into(), labels, shape };
        Ok(Part { split, values: folder.clone(), labels: folder })
    };
    Ok(Parts {
        train: part(train_pictures, &train, train_folder)?,
        test: part(test_pictures, &test, test_folder)?,
        hashes: vec![train_hash, test_hash],
        devices: None,
        classes: Some(classes.len() as u32),
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Entries of a folder, by name, without hidden ones.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = |error| io(folder, "read the folder")(error);
    let entries = folder.read_dir().map_err(read)?.map(|entry| Ok(entry?.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<std::io::Result<_>>().map_err(read)?;
    entries.retain(|path| !name(path).starts_with('.'));
    entries.sort();
    Ok(entries)
}

/// The pictures in the folders of the classes.
fn list(folder: &Path, classes: &[String]) -> Result<Vec<Entry>> {
    let mut list = Vec::new();
    for class in entries(folder)? {
        let Some(label) = classes.iter().position(|known| *known == name(&class)) else {
            let known = classes.join(", ");
            return refuse(&class, format!("not among the folders of test: {known}"));
        };
        for path in entries(&class)? {
            let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            if !["png", "jpg", "jpeg"].contains(&extension.as_str()) {
                return refuse(&path, "expected a name that ends in .png, .jpg or .jpeg".into());
            }
            let bytes = fs::metadata(&path).map_err(io(&path, "read"))?.len();
            list.push(Entry { path, label: label as u8, bytes });
        }
    }
    if list.is_empty() {
        refuse(folder, "no pictures; expected at least one".into())
    } else {
        Ok(list)
    }
}

/// The pictures of a list, and the hash of their names and files.
fn decode(
    folder: &Path,
    list: &[Entry],
    frame: &Frame,
    report: &mut dyn FnMut(u64),
) -> Result<(Vec<Picture>, FileHash)> {
    let (mut pictures, mut hash) = (Vec::with_capacity(list.len()), Sha256::new());
    let decode = |entry: &Entry| {
        let (bytes, hash) = parts::read_file(&entry.path)?;
        Ok((frame.fit(&bytes).or_else(|what| refuse(&entry.path, what))?, hash))
    };
    for list in list.chunks(TOGETHER) {
        // The first error of the list is told, whichever thread is first.
        let decoded: Vec<Result<(Picture, FileHash)>> = list.par_iter().map(decode).collect();
        for (decoded, entry) in decoded.into_iter().zip(list) {
            let (picture, file) = decoded?;
            hash.update(format!("{} {}/{}\n", file.sha256, entry.label, file.file));
            pictures.push(picture);
        }
        report(list.iter().map(|entry| entry.bytes).sum());
    }
    Ok((pictures, FileHash { file: name(folder), sha256: files::hex(hash.finalize()) }))
}

#[cfg(test)]
mod tests;
