//! The objects on disk, in an embedded database: the newest text of each, and the revision.
//!
//! Owns the format and what happens when the disk is full. History is not kept: who watched before
//! begins anew. Must not know how writes are decided or who waits for them.

mod error;
mod file;
mod record;

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use redb::{
    Database, DatabaseError, ReadableDatabase as _, StorageBackend, TableDefinition,
    WriteTransaction,
};

use super::change::{Deed, Write};
use crate::object::Stored;
pub use error::OpenError;
pub(super) use error::WriteError;
pub(crate) use file::DataFile;
use file::FolderLock;

/// The number of the format. Every change of what is written counts it up.
const FORMAT: u64 = 1;
/// The database's cache. All reads are answered from memory, so it needs next to none.
const CACHE_BYTES: usize = 4 << 20;
/// So many writes at once are made in the way that is quicker now and slower after a crash.
const BURST: usize = 4;
const FILE: &str = "objects.redb";
const NEW_FILE: &str = "objects.redb.new";

/// `storage`, a zero byte, and the path, to what [`record`] writes.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// Makes a database of the file at a path, new when there is none.
type Opener = Box<dyn Fn(&Path) -> Result<Database, redb::Error> + Send>;

/// The disk side of a store. Dropping it closes the database and lets go of the folder.
pub(super) struct Disk {
    opener: Opener,
    path: std::path::PathBuf,
    /// Gone while there is no room even to open it.
    database: Option<Database>,
    broken: Option<String>,
    /// After the database, so that it is let go last.
    _lock: FolderLock,
}

/// What was on disk.
pub(super) struct Loaded {
    pub(super) revision: u64,
    /// Storage, path and object, in order.
    pub(super) objects: Vec<(Arc<str>, Arc<str>, Stored)>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A database on a file, be it what it may.
pub(super) fn database(backend: impl StorageBackend) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(CACHE_BYTES).create_with_backend(backend)
}

impl Disk {
    /// Opens a folder as a store, a fresh one if it is empty.
    pub(super) fn open(folder: &Path) -> Result<(Self, Loaded), OpenError> {
        Self::open_with(folder, Box::new(|path| Ok(database(DataFile::open(path)?)?)))
    }

    pub(super) fn open_with(folder: &Path, opener: Opener) -> Result<(Self, Loaded), OpenError> {
        let lock = FolderLock::take(folder)?;
        let path = folder.join(FILE);
        let found = |error| OpenError::of_database(&path, error);
        // The database does not expect its file to have been damaged and may panic on it.
        let read = catch_unwind(AssertUnwindSafe(|| {
            if !path.exists() {
                create(folder, &opener).map_err(found)?;
            }
            let database = opener(&path).map_err(found)?;
            let loaded = load(&path, &database)?;
            Ok((database, loaded))
        }));
        let (database, loaded) = read.unwrap_or_else(|_| {
            let why = "the database could not make sense of it".to_owned();
            Err(OpenError::Corrupt { path: path.clone(), why })
        })?;
        let disk = Self { opener, path, database: Some(database), broken: None, _lock: lock };
        Ok((disk, loaded))
    }

    /// Writes all or nothing; when it returns, all is on disk. `revision` is the one before.
    pub(super) fn write(&mut self, revision: u64, writes: &[Write]) -> Result<(), WriteError> {
        if let Some(why) = &self.broken {
            return Err(WriteError::Broken(why.clone()));
        }
        let database = match self.database.take() {
            Some(database) => database,
            None => self.reopen(revision)?,
        };
        let Err(error) = write(&database, writes) else {
            self.database = Some(database);
            return Ok(());
        };
        // A database that met an error must be opened anew; what it then holds shows whether the
        // write is in it.
        drop(database);
        let error = WriteError::of(&error);
        match &error {
            WriteError::Full(_) => self.database = Some(self.reopen(revision)?),
            WriteError::Broken(why) => self.broken = Some(why.clone()),
        }
        Err(error)
    }

    fn reopen(&mut self, revision: u64) -> Result<Database, WriteError> {
        let opened = (self.opener)(&self.path)
            .and_then(|database| Ok((number(&database, "revision")?, database)));
        match opened {
            Ok((Some(found), database)) if found == revision => Ok(database),
            Ok((found, _)) => {
                let found = found.unwrap_or_default();
                let why = format!("revision {found} is on disk instead of {revision}; restart");
                self.broken = Some(why.clone());
                Err(WriteError::Broken(why))
            }
            // It may go better next time.
            Err(error) => Err(WriteError::Full(error.to_string())),
        }
    }
}

/// Makes a new database aside, so that there is never half of one.
fn create(folder: &Path, opener: &Opener) -> Result<(), redb::Error> {
    let aside = folder.join(NEW_FILE);
    match fs::remove_file(&aside) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let database = opener(&aside)?;
    let transaction = begin(&database, 0)?;
    {
        transaction.open_table(OBJECTS)?;
        let mut numbers = transaction.open_table(NUMBERS)?;
        numbers.insert("format", FORMAT)?;
        numbers.insert("revision", 1)?;
    }
    transaction.commit()?;
    drop(database);
    fs::rename(&aside, folder.join(FILE))?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn begin(database: &Database, writes: usize) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    // Without it the whole file is walked at the first opening after a crash; with it the disk is
    // waited for twice. A crash within a burst is rare, and the next single write ends the risk.
    transaction.set_quick_repair(writes < BURST);
    Ok(transaction)
}

fn number(database: &Database, name: &str) -> Result<Option<u64>, redb::Error> {
    let numbers = database.begin_read()?.open_table(NUMBERS)?;
    let number = numbers.get(name)?.map(|number| number.value());
    Ok(number)
}

fn load(path: &Path, database: &Database) -> Result<Loaded, OpenError> {
    let found = |error: redb::Error| OpenError::of_database(path, error);
    let corrupt = |why: String| OpenError::Corrupt { path: path.to_owned(), why };
    let format = number(database, "format").map_err(found)?.unwrap_or_default();
    if format != FORMAT {
        return Err(OpenError::OtherFormat { path: path.to_owned(), found: format });
    }
    let revision = number(database, "revision").map_err(found)?.unwrap_or_default();
    let mut loaded = Loaded { revision, objects: Vec::new() };
    let mut storage: Arc<str> = "".into();
    let entries =
        || database.begin_read()?.open_table(OBJECTS)?.range::<&str>(..).map_err(redb::Error::from);
    for entry in entries().map_err(found)? {
        let (key, value) = entry.map_err(|error| found(error.into()))?;
        let (name, object_path) = key
            .value()
            .split_once('\0')
            .ok_or_else(|| corrupt(format!("unreadable key {:?}", key.value())))?;
        let object = record::decode(value.value())
            .filter(|object| object.revision <= revision)
            .ok_or_else(|| corrupt(format!("unreadable object {name} {object_path}")))?;
        if *storage != *name {
            storage = name.into();
        }
        loaded.objects.push((Arc::clone(&storage), object_path.into(), object));
    }
    Ok(loaded)
}

fn write(database: &Database, writes: &[Write]) -> Result<(), redb::Error> {
    let transaction = begin(database, writes.len())?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        let mut numbers = transaction.open_table(NUMBERS)?;
        for write in writes {
            match &write.deed {
                Deed::Event(event) if event.deleted => {
                    objects.remove(key(&write.storage, &event.path).as_str())?;
                }
                Deed::Event(event) => {
                    let key = key(&write.storage, &event.path);
                    objects.insert(key.as_str(), record::encode(&event.object).as_slice())?;
                }
                Deed::Drop(_) => {
                    let (from, to) = (key(&write.storage, ""), [&*write.storage, "\u{1}"].concat());
                    objects.retain_in(from.as_str()..to.as_str(), |_, _| false)?;
                }
            }
        }
        if let Some(last) = writes.last() {
            numbers.insert("revision", last.revision())?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn key(storage: &str, path: &str) -> String {
    [storage, "\0", path].concat()
}
