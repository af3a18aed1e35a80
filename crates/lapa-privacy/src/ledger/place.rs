//! Place of a ledger on the disk: its creation, and the check that it stays there.

use std::cell::Cell;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::{At, LedgerError};

/// Files that SQLite keeps beside a ledger that is in use.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Attempts to copy a ledger that others write to.
const COPIES: u32 = 5;

/// The files of an open ledger. A file that is moved away goes on working for a process that has it
/// open, but no longer tells other processes what was spent.
#[derive(Debug)]
pub(super) struct Place {
    file: (PathBuf, FileId),
    log: (PathBuf, FileId),
    len: Cell<u64>,
}

/// Device and inode; elsewhere the system forbids to move files that are in use.
#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = ();

#[cfg(unix)]
fn id(metadata: &Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn id(_: &Metadata) -> FileId {}

impl Place {
    /// The files of the ledger at `path`, which is open for writing.
    pub(super) fn of(path: &Path) -> Result<Self, LedgerError> {
        // The process may go to another folder.
        let file = std::path::absolute(path).at(path)?;
        let log = beside(path, "-wal");
        let found = fs::metadata(&file).at(path)?;
        let log_id = id(&fs::metadata(&log).at(&log)?);
        let len = Cell::new(found.len());
        Ok(Self { file: (file, id(&found)), log: (log, log_id), len })
    }

    /// Refuses if the files are no longer there, or are others. A ledger never shrinks.
    pub(super) fn expect(&self, path: &Path) -> Result<(), LedgerError> {
        let moved = || LedgerError::Moved { path: path.to_path_buf() };
        let found = |path: &Path| match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(moved()),
            metadata => metadata.at(path),
        };
        let (file, log) = (found(&self.file.0)?, found(&self.log.0)?);
        if id(&file) != self.file.1 || id(&log) != self.log.1 || file.len() < self.len.get() {
            return Err(moved());
        }
        self.len.set(file.len());
        Ok(())
    }
}

/// True if there is a file at `path`; refuses one that is empty, and what is no file, which could
/// keep a reader waiting for ever.
pub(super) fn is_there(path: &Path) -> Result<bool, LedgerError> {
    for name in BESIDE.map(|suffix| beside(path, suffix)) {
        if fs::symlink_metadata(&name).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(LedgerError::NotAFile(name));
        }
    }
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        metadata => metadata.at(path)?,
    };
    let path = path.to_path_buf();
    match (metadata.is_file(), metadata.len()) {
        (false, _) => Err(LedgerError::NotAFile(path)),
        (true, 0) => Err(LedgerError::Empty { path }),
        (true, _) => Ok(true),
    }
}

/// Makes a file by `fill` under another name, readable only to its owner, then gives it the name
/// `path` unless another process was quicker.
pub(super) fn create(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), LedgerError>,
) -> Result<(), LedgerError> {
    let log = beside(path, "-wal");
    // Of another process that was quicker, the file is there before its log.
    if log.exists() && !path.exists() {
        return Err(LedgerError::OnlyLog { path: path.to_path_buf(), log });
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let partial = tempfile::Builder::new()
        .prefix(".ledger.")
        .suffix(".partial")
        .tempfile_in(folder)
        .at(path)?
        .into_temp_path();
    fill(&partial)?;
    match partial.persist_noclobber(path) {
        Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => return Ok(()),
        done => done.map_err(|failed| failed.error).at(path)?,
    }
    // The name must last as well as the file.
    #[cfg(unix)]
    File::open(folder).and_then(|folder| folder.sync_all()).at(path)?;
    Ok(())
}

/// A private copy of a ledger with its log, where the ledger itself cannot be opened: SQLite needs
/// to write beside it even to read.
pub(super) fn copy(path: &Path) -> Result<(TempDir, PathBuf), LedgerError> {
    let folder = tempfile::tempdir().at(path)?;
    let copy = folder.path().join("ledger");
    let log = beside(path, "-wal");
    for _ in 0..COPIES {
        let before = read_if_there(&log).at(&log)?;
        File::open(path)
            .and_then(|mut from| io::copy(&mut from, &mut File::create(&copy)?))
            .at(path)?;
        // With one log before and after, the copy has all that the log had not: a log is begun
        // anew only when all of it is in the file.
        if read_if_there(&log).at(&log)? == before {
            if let Some(bytes) = before {
                fs::write(beside(&copy, "-wal"), bytes).at(path)?;
            }
            return Ok((folder, copy));
        }
    }
    Err(LedgerError::Busy { path: path.to_path_buf() })
}

fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        bytes => bytes.map(Some),
    }
}

/// The file that SQLite keeps beside the ledger at `path`, or beside what that links to.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut name = real.into_os_string();
    name.push(suffix);
    name.into()
}
