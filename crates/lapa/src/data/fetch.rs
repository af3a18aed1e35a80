//! The cache of known data sets: verified at every load, filled from the first source that can.
//!
//! Files enter the cache complete or not at all (written aside, synced, renamed), and one process
//! at a time fills a folder. A reader needs no lock: it verifies what it reads.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::atomic::write_bytes;
use crate::files::{self, Folder};

use super::format::Request;
use super::known::{Known, KnownFile};
use super::parts::Parts;
use super::source::read_verified;
use super::{CacheState, DataError, Result, Tried};

#[cfg(test)]
mod tests;

/// Event while a data set is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchEvent {
    /// Another process is fetching the same data set; waiting for it.
    Waiting {
        /// The lock file it holds.
        lock: PathBuf,
    },
    /// A source is asked.
    Trying {
        /// The source, in words.
        source: String,
    },
    /// A file arrives; lengths are uncompressed.
    Progress {
        /// File name.
        file: String,
        /// Bytes so far.
        bytes: u64,
        /// Bytes of the complete file.
        total: u64,
    },
    /// Features of samples are computed.
    Features {
        /// The features, in a word.
        features: &'static str,
        /// Samples so far.
        done: usize,
        /// Samples of the split.
        of: usize,
    },
    /// A source, or a file in the cache, is no good.
    Rejected {
        /// The source, in words.
        source: String,
        /// The cause.
        reason: String,
    },
    /// All files are in the cache.
    Done {
        /// The source that had them.
        source: String,
        /// The folder in the cache.
        folder: PathBuf,
    },
}

/// A data set, and where its files were found.
pub struct Found {
    /// Samples of the files.
    pub parts: Parts,
    /// In words.
    pub source: String,
}

/// Reads a data set from its folder in the cache, after fetching what is missing or altered.
pub fn ensure(set: &Known, folder: &Path, on_event: &mut dyn FnMut(FetchEvent)) -> Result<Found> {
    let cache = format!("cache {}", folder.display());
    if let Some(parts) = read_all(set, folder) {
        return Ok(Found { parts, source: cache });
    }
    fs::create_dir_all(folder).map_err(io(folder, "create"))?;
    let _lock = lock(&folder.join(".lock"), on_event)?;
    let cleaned = Folder::open(folder).and_then(|folder| folder.remove_temporaries());
    cleaned.map_err(io(folder, "clean up"))?;

    let mut wanted = Vec::new();
    let mut reasons = Vec::new();
    for file in &set.files {
        match is_cached(file, folder) {
            Ok(true) => continue,
            Ok(false) => reasons.push(format!("no {}", file.name)),
            Err(refused) => {
                let reason = refused.to_string();
                on_event(FetchEvent::Rejected { source: cache.clone(), reason: reason.clone() });
                reasons.push(reason);
            }
        }
        wanted.push(file);
    }

    let source = if wanted.is_empty() {
        cache
    } else {
        let cache = Tried { source: cache, reason: reasons.join("; ") };
        fetch(set, &wanted, folder, cache, on_event)?
    };
    let problem = "files disappeared or changed while they were read; expected all of them";
    let parts = read_all(set, folder);
    let parts = parts.ok_or(DataError::File { path: folder.into(), problem: problem.into() })?;
    Ok(Found { parts, source })
}

/// Brings the wanted files into the cache from the first source that has them all.
fn fetch(
    set: &Known,
    wanted: &[&KnownFile],
    folder: &Path,
    cache: Tried,
    on_event: &mut dyn FnMut(FetchEvent),
) -> Result<String> {
    let mut tried = vec![cache];
    for source in &set.sources {
        let words = source.to_string();
        on_event(FetchEvent::Trying { source: words.clone() });
        match source.fetch(wanted, on_event) {
            Ok(contents) => {
                // Only the holder of the lock gets here.
                for (file, bytes) in wanted.iter().zip(contents) {
                    let path = folder.join(file.name);
                    write_bytes(&path, bytes).map_err(io(&path, "write"))?;
                }
                on_event(FetchEvent::Done { source: words.clone(), folder: folder.into() });
                return Ok(words);
            }
            Err(reason) => {
                on_event(FetchEvent::Rejected { source: words.clone(), reason: reason.clone() });
                tried.push(Tried { source: words, reason });
            }
        }
    }
    let (name, format) = (set.name, set.format);
    Err(DataError::Unavailable { name, format, folder: folder.into(), tried })
}

/// Samples of the files, if every one is there and unaltered.
fn read_all(set: &Known, folder: &Path) -> Option<Parts> {
    let request = Request { path: folder, size: None, on_event: &mut |_| {} };
    let parts = set.format.read(request).ok()?;
    let hashes = parts.hashes.iter().map(|hash| &hash.sha256);
    hashes.eq(set.files.iter().map(|file| &file.sha256)).then_some(parts)
}

/// True for a file of the cache, false if it is not there, an error if it is not what it should be.
fn is_cached(file: &KnownFile, folder: &Path) -> Result<bool> {
    let path = folder.join(file.name);
    if !path.exists() {
        return Ok(false);
    }
    let input = files::open_regular(&path).map_err(io(&path, "open"))?;
    let read = read_verified(file, input, &mut |_| {});
    read.map_err(|problem| DataError::File { path, problem })?;
    Ok(true)
}

/// State of a data set in the cache. Altered wins over missing: it is the worse news.
pub fn state(set: &Known, folder: &Path) -> CacheState {
    let mut state = CacheState::Verified;
    for file in &set.files {
        match is_cached(file, folder) {
            Ok(true) => {}
            Ok(false) => state = CacheState::Missing,
            Err(refused) => return CacheState::Altered(refused.to_string()),
        }
    }
    state
}

/// Held until the file is dropped, also when the process dies.
fn lock(path: &Path, on_event: &mut dyn FnMut(FetchEvent)) -> Result<File> {
    let file = Folder::of(path).and_then(|(folder, name)| folder.lock_file(name));
    let file = file.map_err(io(path, "open"))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => on_event(FetchEvent::Waiting { lock: path.into() }),
        Err(TryLockError::Error(e)) => return Err(io(path, "lock")(e)),
    }
    file.lock().map_err(io(path, "lock"))?;
    Ok(file)
}

/// The error of an action on a file or folder.
pub(super) fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> DataError {
    move |source| DataError::Io { path: path.into(), action, source }
}
