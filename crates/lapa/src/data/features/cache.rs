//! Cached features: a file per map and split, which says what it is of and what is in it.
//!
//! A file enters the folder complete or not at all, and is verified at every read. Its name, and its
//! first line, have the SHA-256 of the samples and of the map.

use std::fs::File;
use std::io::{BufReader, Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use half::f16;
use sha2::{Digest, Sha256};

use super::FeatureMap;
use crate::data::{FetchEvent, Split, Values};
use crate::files::{self, Folder};
use crate::shape::Shape;

/// Version of the maps: another number where a map gives other values.
const VERSION: u32 = 1;

/// Values read or written at a time.
const CHUNK: usize = 1 << 19;

/// The place of cached features.
pub struct Entry {
    map: FeatureMap,
    folder: PathBuf,
    /// SHA-256 of the map and the samples.
    key: String,
}

impl Entry {
    pub fn new(map: FeatureMap, split: &Split, folder: &Path) -> Self {
        let Shape { channels, rows, cols } = split.shape;
        let mut hash = Sha256::new();
        let float = |value: &f32| value.to_le_bytes();
        let kind = match &split.values {
            Values::Normalized(..) => "normalized",
            values => values.kind(),
        };
        hash.update(format!("{VERSION} {map:?} {kind} {channels}x{rows}x{cols}\n"));
        match &split.values {
            Values::Bytes(bytes) => hash.update(&***bytes),
            Values::Normalized(bytes, tables) => {
                hash.update(&***bytes);
                hash.update(tables.iter().flatten().flat_map(float).collect::<Vec<u8>>());
            }
            Values::Floats(floats) => {
                for chunk in floats.chunks(CHUNK) {
                    hash.update(chunk.iter().flat_map(float).collect::<Vec<u8>>());
                }
            }
            Values::Halves(halves) => hash_halves(&mut hash, halves),
        }
        Self { map, folder: folder.into(), key: files::hex(hash.finalize()) }
    }

    fn name(&self) -> String {
        format!("{}-{}.f16", self.map.features.word(), &self.key[..32])
    }

    /// The event of a cache that is of no use, for this reason.
    pub fn rejected(&self, reason: &Error) -> FetchEvent {
        let source = format!("cache {}", self.folder.join(self.name()).display());
        FetchEvent::Rejected { source, reason: reason.to_string() }
    }

    /// The features; `None` if they are not there, an error if they are not what they should be.
    pub fn read(&self, split: &Split) -> Result<Option<Split>, Error> {
        let path = self.folder.join(self.name());
        if !path.exists() {
            return Ok(None);
        }
        let shape = self.map.shape(split.shape).map_err(Error::other)?;
        let halves = self.read_halves(&path, shape.len() * split.len())?;
        Ok(Some(Split { values: halves.into(), labels: split.labels.clone(), shape }))
    }

    fn read_halves(&self, path: &Path, count: usize) -> Result<Vec<f16>, Error> {
        let file = files::open(path)?;
        let head_len = self.head("").len() + 64;
        let (found, expected) = (file.metadata()?.len(), (head_len + 2 * count) as u64);
        let wrong = |what: String| Error::new(ErrorKind::InvalidData, what);
        if found != expected {
            return Err(wrong(format!("{found} bytes; expected {expected}")));
        }
        let mut file = BufReader::new(file);
        let mut head = vec![0; head_len];
        file.read_exact(&mut head)?;
        let (mut hash, mut halves) = (Sha256::new(), Vec::with_capacity(count));
        let mut chunk = vec![0; 2 * CHUNK];
        while halves.len() < count {
            let chunk = &mut chunk[..2 * CHUNK.min(count - halves.len())];
            file.read_exact(chunk)?;
            hash.update(&*chunk);
            halves.extend(chunk.as_chunks::<2>().0.iter().map(|&pair| f16::from_le_bytes(pair)));
        }
        if head != self.head(&files::hex(hash.finalize())).as_bytes() {
            return Err(wrong("its first line is not that of its content".into()));
        }
        Ok(halves)
    }

    /// Replaces the file by one with these features.
    pub fn write(&self, features: &Split) -> Result<(), Error> {
        let Values::Halves(halves) = &features.values else { return Ok(()) };
        let mut hash = Sha256::new();
        hash_halves(&mut hash, halves);
        let head = self.head(&files::hex(hash.finalize()));
        Folder::create(&self.folder)?.replace(self.name(), |file: &mut File| {
            file.write_all(head.as_bytes())?;
            halves.chunks(CHUNK).try_for_each(|chunk| file.write_all(&bytes(chunk)))
        })
    }

    /// The first line of a file whose values have this SHA-256.
    fn head(&self, sha256: &str) -> String {
        format!("lapa features {} {sha256}\n", self.key)
    }
}

fn bytes(halves: &[f16]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
}

fn hash_halves(hash: &mut Sha256, halves: &[f16]) {
    halves.chunks(CHUNK).for_each(|chunk| hash.update(bytes(chunk)));
}
