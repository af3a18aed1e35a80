//! Names looked up in a folder by its path: for systems whose folders cannot be held open. Links
//! are seen before a file is opened, not while it is.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::Access;

/// A folder.
#[derive(Debug)]
pub struct Handle(PathBuf);

impl Handle {
    pub fn open(path: &Path) -> io::Result<Self> {
        if fs::metadata(path)?.is_dir() {
            Ok(Self(path.into()))
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    pub fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        if self.is_link(name) { Err(super::link()) } else { Self::open(&self.0.join(name)) }
    }

    pub fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    pub fn open_file(&self, name: &OsStr, access: Access) -> io::Result<File> {
        if self.is_link(name) {
            return Err(super::link());
        }
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        options.create_new(access == Access::New).create(access == Access::Lock);
        options.open(self.0.join(name))
    }

    pub fn is_link(&self, name: &OsStr) -> bool {
        fs::symlink_metadata(self.0.join(name)).is_ok_and(|found| found.is_symlink())
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    pub fn to_lock(&self) -> Option<File> {
        None
    }
}

pub fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}
