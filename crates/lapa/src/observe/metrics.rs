//! metrics.jsonl: one [`RoundRecord`] per line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{ObserveError, RoundRecord};
use crate::files::{self, Folder};

/// Most bytes of a line: enough for half a million devices, one by one.
pub(super) const MOST_BYTES: u64 = 1 << 28;

/// Appends rounds to metrics.jsonl.
#[derive(Debug)]
pub struct MetricsWriter {
    path: PathBuf,
    file: File,
    len: u64,
}

impl MetricsWriter {
    /// Creates an empty file; an existing one is an error.
    pub fn create(path: &Path) -> Result<Self, ObserveError> {
        let file = Folder::of(path).and_then(|(folder, name)| folder.new_file(name));
        let file = file.map_err(|e| ObserveError::io(path, "create", e))?;
        Ok(Self { path: path.into(), file, len: 0 })
    }

    /// Opens an existing file as it was when it had `len` bytes; what came later is cut off.
    pub fn open_at(path: &Path, len: u64) -> Result<Self, ObserveError> {
        let cannot = |action, e| ObserveError::io(path, action, e);
        let file = Folder::of(path).and_then(|(folder, name)| folder.change_file(name));
        let mut file = file.map_err(|e| cannot("open", e))?;
        let found = file.metadata().map_err(|e| cannot("read the length of", e))?.len();
        if found < len {
            return Err(ObserveError::Short { path: path.into(), found, wanted: len });
        }
        if len > 0 && !ends_line(&mut file, len).map_err(|e| cannot("read", e))? {
            return Err(ObserveError::InsideLine { path: path.into(), len });
        }
        file.set_len(len).map_err(|e| cannot("truncate", e))?;
        file.seek(SeekFrom::Start(len)).map_err(|e| cannot("seek in", e))?;
        Ok(Self { path: path.into(), file, len })
    }

    /// Writes one line.
    pub fn append(&mut self, record: &RoundRecord) -> Result<(), ObserveError> {
        let mut line = serde_json::to_vec(record).map_err(|source| ObserveError::Record {
            path: self.path.clone(),
            round: record.round,
            source,
        })?;
        line.push(b'\n');
        if line.len() as u64 > MOST_BYTES {
            return Err(ObserveError::long(&self.path, record.round as usize));
        }
        self.file.write_all(&line).map_err(|e| ObserveError::io(&self.path, "write", e))?;
        self.len += line.len() as u64;
        Ok(())
    }

    /// Returns when everything written so far is on the disk.
    pub fn sync(&self) -> Result<(), ObserveError> {
        self.file.sync_data().map_err(|e| ObserveError::io(&self.path, "write", e))
    }

    /// Bytes written so far, for [`MetricsWriter::open_at`].
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if no round has been written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn ends_line(file: &mut File, len: u64) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::Start(len - 1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Reads every round of a metrics.jsonl.
pub fn read_metrics(path: &Path) -> Result<Vec<RoundRecord>, ObserveError> {
    let mut records = Vec::new();
    for_each_line(path, |record| -> Result<(), ObserveError> {
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

/// Parses a file of JSON lines one by one; errors name the file and the line.
pub fn for_each_line<T: DeserializeOwned, E: From<ObserveError>>(
    path: &Path,
    mut each: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let file = files::open(path).map_err(|e| ObserveError::io(path, "open", e))?;
    let (mut file, mut text) = (BufReader::new(file), Vec::new());
    for line in 1.. {
        text.clear();
        // One more than allowed, to see that there are more.
        let read = (&mut file).take(MOST_BYTES + 1).read_until(b'\n', &mut text);
        match read.map_err(|e| ObserveError::io(path, "read", e))? {
            0 => break,
            length if length as u64 > MOST_BYTES => {
                return Err(ObserveError::long(path, line).into());
            }
            _ => {}
        }
        let value = serde_json::from_slice(text.strip_suffix(b"\n").unwrap_or(&text));
        each(value.map_err(|source| ObserveError::Line { path: path.into(), line, source })?)?;
    }
    Ok(())
}
