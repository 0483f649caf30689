//! The files of a store, as little of a file system as it needs.
//!
//! Owns the two traits that tests stand in for to fail and to lose power ([`Folder`],
//! [`DataFile`]), and what they are on a real one. Must not know what is written.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A folder with files in it, each known by its name.
pub(crate) trait Folder: Debug + Send + Sync {
    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// A file that is there, to read it and to write to it.
    fn open(&self, name: &str) -> io::Result<Box<dyn DataFile>>;
    /// An empty file, in place of one of that name.
    fn create(&self, name: &str) -> io::Result<Box<dyn DataFile>>;
    /// Gives a file another name. One that has it goes.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns when all names are on disk as they are now.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is read and written at places.
pub(crate) trait DataFile: Debug + Send {
    /// How many bytes it has.
    fn len(&self) -> io::Result<u64>;
    /// Fills `out` from a place.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes all of `data` at a place, making the file longer if need be.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Makes the file shorter.
    fn cut(&self, len: u64) -> io::Result<()>;
    /// Returns when all that was written is on disk.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the file system.
#[derive(Debug)]
pub(super) struct RealFolder(pub(super) PathBuf);

impl RealFolder {
    fn options() -> OpenOptions {
        // There are secrets in the files: only their owner may read them.
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        options
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Folder for RealFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            // What is no text is no name of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DataFile>> {
        Ok(Box::new(RealFile(Self::options().open(self.path(name))?)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DataFile>> {
        // What an earlier attempt has left is not written over: in its place there could be a link.
        match self.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = Self::options().create_new(true).open(self.path(name))?;
        Ok(Box::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        sync_folder(&self.0)
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[derive(Debug)]
struct RealFile(File);

impl DataFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
