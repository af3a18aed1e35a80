//! Files that are either whole or not there.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::{self, Folder};

/// Writes `path` through a neighbor with a name of its own, which is renamed when it is complete
/// and on the disk. What was at `path` before stays until then; a symbolic link there is refused.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let (folder, name) = Folder::of(path)?;
    folder.replace(name, write)
}

/// Writes `bytes` as the whole of a file.
pub fn write_bytes(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_atomically(path, |file| file.write_all(bytes.as_ref()))
}

/// Writes a value as pretty JSON, with a line end.
pub fn write_json(path: &Path, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    write_bytes(path, serde_json::to_string_pretty(value)? + "\n")
}

/// Reads a value from JSON; `None` if the file is not there.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<serde_json::Result<T>>> {
    match files::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(serde_json::from_str(&text?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write_atomically::<io::Error>(&path, |f| f.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |f| {
            f.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        write_atomically::<io::Error>(&path, |f| f.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
