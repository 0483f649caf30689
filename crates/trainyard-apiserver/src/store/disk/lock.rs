//! The lock on the folder of a store.
//!
//! Must not know what is in the folder beside the lock.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::OpenError;

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
