//! Finished cells on the disk: one file each, so that an interrupted study goes on where it was.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use lapa::atomic::write_atomically;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Finished};

/// The folder of finished cells.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot {action}", path.display())]
pub struct StoreError {
    action: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

/// A file of the folder.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The resolved configuration, for readers.
    experiment: String,
    #[serde(flatten)]
    finished: Finished,
}

impl Store {
    /// The folder `cells` of `out`, which is made if need be.
    pub fn open(out: &Path) -> Result<Self, StoreError> {
        let folder = out.join("cells");
        fs::create_dir_all(&folder).map_err(|source| StoreError {
            action: "create the folder",
            path: folder.clone(),
            source,
        })?;
        Ok(Self { folder })
    }

    fn path(&self, cell: &Cell) -> PathBuf {
        self.folder.join(cell.id()).with_extension("json")
    }

    /// What a cell left; none if it is not finished, or if its file cannot be read.
    pub fn read(&self, cell: &Cell) -> Option<Finished> {
        let text = fs::read_to_string(self.path(cell)).ok()?;
        let kept: Kept = serde_json::from_str(&text).ok()?;
        Some(kept.finished)
    }

    /// Keeps what a cell left.
    pub fn write(&self, cell: &Cell, finished: &Finished) -> Result<(), StoreError> {
        let path = self.path(cell);
        let kept = Kept { experiment: cell.experiment().to_toml(), finished: finished.clone() };
        write_atomically(&path, |file| {
            serde_json::to_writer(&mut *file, &kept)?;
            file.write_all(b"\n")
        })
        .map_err(|source| StoreError { action: "write", path, source })
    }
}

/// What finished cells left, by the names of the cells.
#[derive(Clone, Debug, Default)]
pub struct Results {
    finished: BTreeMap<String, Finished>,
}

impl Results {
    /// Those of `cells` that the store has.
    pub fn read<'a>(store: &Store, cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let mut results = Self::default();
        for cell in cells {
            if let Some(finished) = store.read(cell) {
                results.insert(cell, finished);
            }
        }
        results
    }

    /// Adds what a cell left.
    pub fn insert(&mut self, cell: &Cell, finished: Finished) {
        self.finished.insert(cell.id().to_owned(), finished);
    }

    /// What a cell left; none if it is not finished.
    pub fn get(&self, cell: &Cell) -> Option<&Finished> {
        self.finished.get(cell.id())
    }

    /// What all of these cells left; none if any is not finished.
    pub fn all(&self, cells: &[Cell]) -> Option<Vec<&Finished>> {
        cells.iter().map(|cell| self.get(cell)).collect()
    }
}
