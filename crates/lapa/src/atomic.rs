//! Files that are either whole or not there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Writes `path` through a neighbour with the ending `.tmp`, which is renamed when it is complete
/// and on the disk. What was at `path` before stays until then.
pub fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    let mut name = OsString::from(path);
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    let result = File::create(&temporary).map_err(E::from).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        Ok(sync_folder(path)?)
    });
    if result.is_err() {
        // The first error is the one to report, whether or not the cleaning works.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Makes the rename itself last: on Unix it is on the disk once the folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) && folder != Path::new("") => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
