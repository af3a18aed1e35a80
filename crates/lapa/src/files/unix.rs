//! Names looked up in an open folder, as Unix does it.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::Access;

/// An open folder.
#[derive(Debug)]
pub struct Handle(File);

impl Handle {
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?.into()))
    }

    pub fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self(rustix::fs::openat(&self.0, name, flags, Mode::empty())?.into()))
    }

    pub fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, self.mode(0o777)?)?)
    }

    /// Opens a file; a pipe that nobody writes to is opened at once.
    pub fn open_file(&self, name: &OsStr, access: Access) -> io::Result<File> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Change => OFlags::RDWR,
            Access::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Access::Lock => OFlags::RDWR | OFlags::CREATE,
        };
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, name, flags, self.mode(0o666)?)?.into())
    }

    pub fn is_link(&self, name: &OsStr) -> bool {
        rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Makes renames in the folder last.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// The folder itself, opened once more to be locked: a removed lock file lets nobody in then.
    pub fn to_lock(&self) -> Option<File> {
        Some(self.open_folder(".".as_ref()).ok()?.0)
    }

    /// Permissions of something new: as open as the folder.
    fn mode(&self, most: u32) -> io::Result<Mode> {
        let folder = self.0.metadata()?.permissions().mode();
        // The owner can always use what is his.
        Ok(Mode::from_bits_truncate(((folder | 0o700) & most) as _))
    }
}

pub fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Opens a file for reading; a pipe that nobody writes to is opened at once.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}
