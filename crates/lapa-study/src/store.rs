//! Finished cells on the disk: one file each, so that an interrupted study goes on where it was.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::path::Path;

use lapa::files::FileError;
use lapa::files::{Folder, checksum};
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Finished};

/// The folder of finished cells.
#[derive(Debug)]
pub struct Store {
    folder: Folder,
}

/// A file of the folder.
#[derive(Serialize, Deserialize)]
struct CellFile {
    /// The resolved configuration, for readers.
    experiment: String,
    /// Hash of the cell's name and all that is here.
    sha256: String,
    #[serde(flatten)]
    finished: Finished,
}

impl CellFile {
    fn new(cell: &Cell, finished: Finished) -> serde_json::Result<Self> {
        let experiment = cell.experiment().to_toml();
        let text = serde_json::to_string(&finished)?;
        let sha256 = checksum([cell.id(), &experiment, &text].map(str::as_bytes));
        Ok(Self { experiment, sha256, finished })
    }
}

impl Store {
    /// The folder `cells` of `out`; both are made if need be.
    pub fn open(out: &Path) -> Result<Self, FileError> {
        let folder = Folder::create(out).and_then(|out| out.subfolder("cells"));
        let path = out.join("cells");
        Ok(Self { folder: folder.map_err(FileError::on("create", &path))? })
    }

    fn name(&self, cell: &Cell) -> String {
        format!("{}.json", cell.id())
    }

    /// Result of a finished cell. An error says why its file cannot be used.
    pub fn read(&self, cell: &Cell) -> Result<Option<Finished>, String> {
        let name = self.name(cell);
        let refuse = |what: &dyn std::fmt::Display| {
            format!("{}: {what}", self.folder.path().join(&name).display())
        };
        let bytes = match self.folder.read(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| refuse(&error))?,
        };
        let kept: CellFile = serde_json::from_slice(&bytes).map_err(|error| refuse(&error))?;
        let expected = CellFile::new(cell, kept.finished).map_err(|error| refuse(&error))?;
        if (kept.experiment, kept.sha256) == (expected.experiment, expected.sha256) {
            Ok(Some(expected.finished))
        } else {
            Err(refuse(&"wrong checksum: damaged, or the result of another run"))
        }
    }

    /// Keeps what a cell left.
    pub fn write(&self, cell: &Cell, finished: &Finished) -> Result<(), FileError> {
        let path = self.folder.path().join(self.name(cell));
        let failed = |source| FileError { action: "write", path: path.clone(), source };
        let kept = CellFile::new(cell, finished.clone()).map_err(|error| failed(error.into()))?;
        let written = self.folder.replace(self.name(cell), |file| {
            serde_json::to_writer(&mut *file, &kept)?;
            file.write_all(b"\n")
        });
        written.map_err(failed)
    }
}

/// Results of finished cells, by the names of the cells.
#[derive(Clone, Debug, Default)]
pub struct Results {
    finished: BTreeMap<String, Finished>,
    unusable: Vec<String>,
}

impl Results {
    /// Those of `cells` that the store has.
    pub fn read<'a>(store: &Store, cells: impl IntoIterator<Item = &'a Cell>) -> Self {
        let (mut results, mut seen) = (Self::default(), BTreeSet::new());
        for cell in cells.into_iter().filter(|cell| seen.insert(cell.id())) {
            match store.read(cell) {
                Ok(Some(finished)) => results.insert(cell, finished),
                Ok(None) => {}
                Err(unusable) => results.unusable.push(unusable),
            }
        }
        results
    }

    /// Files that could not be used, and why. Their cells count as not finished.
    pub fn unusable(&self) -> &[String] {
        &self.unusable
    }

    /// Adds what a cell left.
    pub fn insert(&mut self, cell: &Cell, finished: Finished) {
        self.finished.insert(cell.id().to_owned(), finished);
    }

    /// Result of a finished cell.
    pub fn get(&self, cell: &Cell) -> Option<&Finished> {
        self.finished.get(cell.id())
    }

    /// Results of those of these cells that are finished.
    pub fn finished(&self, cells: &[Cell]) -> Vec<&Finished> {
        cells.iter().filter_map(|cell| self.get(cell)).collect()
    }

    /// Results of all of these cells; `None` if any is not finished.
    pub fn all(&self, cells: &[Cell]) -> Option<Vec<&Finished>> {
        cells.iter().map(|cell| self.get(cell)).collect()
    }
}
