//! The file under the database, and the lock on the folder it is in.
//!
//! Must not know what is written.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use redb::StorageBackend;

use super::OpenError;

/// The database's file. Two processes are kept apart by [`FolderLock`], not by it.
#[derive(Debug)]
pub(crate) struct DataFile(File);

impl DataFile {
    /// Opens a file that only its owner may read: there are secrets in it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        options.open(path).map(Self)
    }
}

impl StorageBackend for DataFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        // After a failed sync nobody knows what is on disk, whatever the cause: it must not look
        // like a write that found no room.
        self.0.sync_data().map_err(|error| io::Error::other(format!("sync failed: {error}")))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

/// Holds a folder for this process, until dropped or the process ends in whatever way.
#[derive(Debug)]
pub(super) struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is not enough while another thread is starting a process: until that one
        // runs its own program it has the file open too.
        let _ = self.0.unlock();
    }
}

impl FolderLock {
    /// Makes the folder if there is none, and takes it.
    pub(super) fn take(folder: &Path) -> Result<Self, OpenError> {
        let refused = |error| OpenError::of_io(folder, error);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(refused)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(folder.join("lock")).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Held { folder: folder.to_owned(), pid: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(refused(error)),
        }
        file.set_len(0).map_err(refused)?;
        writeln!(file, "{}", std::process::id()).map_err(refused)?;
        Ok(Self(file))
    }
}

/// The process that wrote its number into the lock.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
