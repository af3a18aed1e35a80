//! Files in folders that others may have filled.
//!
//! A [`Folder`] is held open by a handle, and names in it are looked up in that handle: a symbolic
//! link under one of them is refused, never followed, and so is a pipe or a device, which could
//! block for ever. New files and folders are as open to others as the folder that they are in, and
//! those that [`Folder::create`] makes are private to their owner.

mod error;
#[cfg(not(unix))]
mod other;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod unix;

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sha2::{Digest, Sha256};

pub use error::FileError;

#[cfg(not(unix))]
use other as system;
#[cfg(unix)]
use unix as system;

/// Most bytes of a file that is read as a whole: a few bytes on the disk can promise terabytes.
const MOST_BYTES: u64 = 1 << 32;

/// Name of the file that is locked beside the folder itself: some network file systems lock no
/// folders.
const LOCK: &str = ".lock";

/// Purpose of opening a file.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    /// Reading.
    Read,
    /// Reading and writing one that is there.
    Change,
    /// Writing one that must not be there yet.
    New,
    /// Locking one, which is made if it is not there. Its content stays.
    Lock,
}

/// A folder that is held open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    handle: system::Handle,
}

/// The lock of a folder, until it is dropped or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    folder: Option<File>,
    file: Option<File>,
}

impl Drop for FolderLock {
    /// Unlocks explicitly: a child process that was forked, but is not yet running its own program,
    /// has copies of the files, which would hold the lock a moment longer.
    fn drop(&mut self) {
        for file in [&self.folder, &self.file].into_iter().flatten() {
            _ = file.unlock();
        }
    }
}

impl Folder {
    /// Opens the folder that a user named; links to it are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path == Path::new("") { Path::new(".") } else { path };
        Ok(Self { path: path.into(), handle: system::Handle::open(path)? })
    }

    /// Opens the folder that a user named. If it is not there, it is made, private to its owner.
    pub fn create(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            match system::make_private(path) {
                // Somebody else was quicker.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {}
                made => made?,
            }
        }
        Self::open(path)
    }

    /// The folder of a file that a user named, and the file's name in it.
    pub fn of(file: &Path) -> io::Result<(Self, &OsStr)> {
        let nameless = || io::Error::new(ErrorKind::InvalidInput, "it does not name a file");
        let name = file.file_name().ok_or_else(nameless)?;
        Ok((Self::open(file.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Its path, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder `name` in this one; makes it if it is not there.
    pub fn subfolder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let (name, path) = (name.as_ref(), self.path.join(name.as_ref()));
        match self.handle.make_folder(name) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(at(&path, self.plain_words(name, error)));
            }
            _ => {}
        }
        let handle = self.handle.open_folder(name);
        let handle = handle.map_err(|error| at(&path, self.plain_words(name, error)))?;
        Ok(Self { path, handle })
    }

    /// Opens a file for reading.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_as(name.as_ref(), Access::Read)
    }

    /// Opens a file that is there for reading and writing.
    pub fn change_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_as(name.as_ref(), Access::Change)
    }

    /// Makes a file, which must not be there yet.
    pub fn new_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_as(name.as_ref(), Access::New)
    }

    /// Opens a file in order to lock it; makes an empty one if it is not there.
    pub fn lock_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        self.open_as(name.as_ref(), Access::Lock)
    }

    /// Reads a file.
    pub fn read(&self, name: impl AsRef<OsStr>) -> io::Result<Vec<u8>> {
        whole(self.open_file(name)?)
    }

    /// Replaces a file in one step, when the new one is complete and on the disk. The old one stays
    /// until then.
    pub fn replace<E: From<io::Error>>(
        &self,
        name: impl AsRef<OsStr>,
        write: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = name.as_ref();
        if self.handle.is_link(name) {
            return Err(link().into());
        }
        let (temporary, mut file) = self.temporary()?;
        let result = write(&mut file).and_then(|()| {
            file.sync_all()?;
            self.handle.rename(temporary.as_ref(), name)?;
            Ok(self.handle.sync()?)
        });
        if result.is_err() {
            // The first error is the one to report, whether or not the cleaning works.
            let _ = self.handle.remove(temporary.as_ref());
        }
        result
    }

    /// Returns when renames in the folder are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.handle.sync()
    }

    /// A new file with a name that no other process uses.
    fn temporary(&self) -> io::Result<(String, File)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{}-{number}{}", TEMPORARY.0, std::process::id(), TEMPORARY.1);
            match self.handle.open_file(name.as_ref(), Access::New) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return Ok((name, file?)),
            }
        }
    }

    /// Removes the temporary files of processes that were killed. The caller must hold the lock.
    pub fn remove_temporaries(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if is_temporary(&name.to_string_lossy()) {
                self.handle.remove(&name)?;
            }
        }
        Ok(())
    }

    /// The first of `names` that is a symbolic link.
    pub fn link_among<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        names.iter().find(|name| self.handle.is_link(name.as_ref())).copied()
    }

    /// Locks the folder for writing: no other process has it then, for reading or writing.
    pub fn lock(&self) -> Result<FolderLock, TryLockError> {
        let folder = locked(self.handle.to_lock(), File::try_lock)?;
        let file = self.lock_file(LOCK).map_err(|error| self.no_lock(error))?;
        file.try_lock()?;
        Ok(FolderLock { folder, file: Some(file) })
    }

    /// Locks the folder for reading, beside other readers. Nothing is written: it may be on a
    /// read-only medium, or another user's.
    pub fn lock_shared(&self) -> Result<FolderLock, TryLockError> {
        let folder = locked(self.handle.to_lock(), File::try_lock_shared)?;
        let file = match self.open_file(LOCK) {
            Ok(file) => Some(file),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => None,
                _ => return Err(self.no_lock(error)),
            },
        };
        Ok(FolderLock { folder, file: locked(file, File::try_lock_shared)? })
    }

    fn no_lock(&self, error: io::Error) -> TryLockError {
        TryLockError::Error(at(&self.path.join(LOCK), error))
    }

    fn open_as(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let file = self.handle.open_file(name, access);
        regular(file.map_err(|error| self.plain_words(name, error))?)
    }

    /// Error of a link under `name`, in words that say so.
    fn plain_words(&self, name: &OsStr, error: io::Error) -> io::Error {
        if self.handle.is_link(name) { link() } else { error }
    }
}

/// Beginning and end of names of temporary files.
const TEMPORARY: (&str, &str) = (".lapa-", ".tmp");

/// True if a file of this name is one in the making.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)
}

/// Locks a file by `lock`; `None` if the file system has no locks of this kind.
fn locked(
    file: Option<File>,
    lock: fn(&File) -> Result<(), TryLockError>,
) -> Result<Option<File>, TryLockError> {
    match file.as_ref().map(lock) {
        Some(Err(TryLockError::WouldBlock)) => Err(TryLockError::WouldBlock),
        Some(Err(TryLockError::Error(_))) => Ok(None),
        _ => Ok(file),
    }
}

fn link() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidInput,
        "it is a symbolic link, and links here are not followed",
    )
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The file, if it is a regular one.
fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// All of a file.
fn whole(file: File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= MOST_BYTES {
        // One more than allowed, to see that there are more.
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    }
    match length.max(bytes.len() as u64) {
        0..=MOST_BYTES => Ok(bytes),
        length => Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has {length} bytes, and at most {MOST_BYTES} are read"),
        )),
    }
}

/// SHA-256 of some texts, told apart by their lengths, in hexadecimal: damage to a file shows.
pub fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(hash.finalize())
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Opens a file for reading, if it is a regular one; a link to it is followed.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(system::open_without_waiting(path)?)
}

/// Opens a file of a folder for reading; `path` itself must not be a link.
pub fn open(path: &Path) -> io::Result<File> {
    let (folder, name) = Folder::of(path)?;
    folder.open_file(name)
}

/// Reads a file of a folder; `path` itself must not be a link.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    whole(open(path)?)
}

/// Reads a text of a folder; `path` itself must not be a link.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let not_text = |_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path)?).map_err(not_text)
}
