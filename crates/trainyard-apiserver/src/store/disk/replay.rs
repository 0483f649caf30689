//! What a folder holds: the newest snapshot, and the log behind it.
//!
//! Owns which files count and what makes them damaged; changes nothing. Must not know how they come
//! about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{DataFile, Folder};
use super::frame::{FileHead, FrameHead, Sort, UNIT};
use super::record::{self, Entry};
use super::scan::{Next, Scan};
use super::{FORMAT, FORMER, Loaded, NEW, OpenError, log, snapshot};
use crate::object::Stored;

type Objects = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Stored>>;

/// What was found.
pub(super) struct Found {
    pub(super) loaded: Loaded,
    /// The last segment of the log; `None` in a fresh folder.
    pub(super) last: Option<Last>,
    /// How many bytes the segments before it have.
    pub(super) older: u64,
    /// Files that nothing needs any more.
    pub(super) idle: Vec<String>,
}

/// The segment in which the log goes on.
pub(super) struct Last {
    pub(super) file: Box<dyn DataFile>,
    pub(super) name: String,
    /// Behind its last frame.
    pub(super) end: u64,
    /// Whether there is the beginning of another, which never counted.
    pub(super) unfinished: bool,
}

/// Reads a folder.
pub(super) fn read(folder: &dyn Folder, at: &Path) -> Result<Found, OpenError> {
    let names = folder.names().map_err(|error| OpenError::of_io(at, error))?;
    let mut snapshots: Vec<u64> = names.iter().filter_map(|name| snapshot::of(name)).collect();
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| log::first_of(name)).collect();
    snapshots.sort_unstable();
    firsts.sort_unstable();
    let mut reading = Reading { folder, at, objects: Objects::new(), revision: 1 };
    let newest = snapshots.pop();
    if newest.is_none() && firsts.is_empty() {
        if names.iter().any(|name| name == FORMER) {
            return Err(OpenError::Former { path: at.join(FORMER) });
        }
        let loaded = Loaded { revision: 1, objects: Vec::new() };
        return Ok(Found { loaded, last: None, older: 0, idle: leftovers(&names) });
    }
    if let Some(revision) = newest {
        reading.snapshot(revision)?;
    }
    let wanted = reading.revision + 1;
    let (covered, needed): (Vec<u64>, Vec<u64>) =
        firsts.into_iter().partition(|first| *first < wanted);
    if needed.first() != Some(&wanted) {
        let path = at.join(log::name(wanted));
        return Err(OpenError::Corrupt { path, why: "it is missing".to_owned() });
    }
    let (mut last, mut older) = (None, 0);
    for (place, first) in needed.iter().enumerate() {
        let segment = reading.segment(*first, place + 1 == needed.len())?;
        older += last.replace(segment).map_or(0, |before: Last| before.end);
    }
    let mut idle = leftovers(&names);
    idle.extend(snapshots.into_iter().map(snapshot::name));
    idle.extend(covered.into_iter().map(log::name));
    Ok(Found { loaded: reading.loaded(), last, older, idle })
}

/// What was being made aside when a process ended.
fn leftovers(names: &[String]) -> Vec<String> {
    let is_ours = |name: &&String| {
        let made = name.strip_suffix(NEW);
        made.is_some_and(|made| log::first_of(made).is_some() || snapshot::of(made).is_some())
    };
    names.iter().filter(is_ours).cloned().collect()
}

struct Reading<'a> {
    folder: &'a dyn Folder,
    at: &'a Path,
    objects: Objects,
    revision: u64,
}

/// A place in a file, to say what is wrong there.
struct Place {
    path: PathBuf,
    offset: u64,
}

impl Place {
    fn damaged(&self, why: &str) -> OpenError {
        let why = format!("at byte {}: {why}", self.offset);
        OpenError::Corrupt { path: self.path.clone(), why }
    }
}

impl Reading<'_> {
    /// Opens a file and looks at its head.
    fn open(&self, name: &str, sort: Sort, revision: u64) -> Result<Box<dyn DataFile>, OpenError> {
        let path = self.at.join(name);
        let failed = |error| OpenError::of_io(&path, error);
        let file = self.folder.open(name).map_err(failed)?;
        let place = Place { path: path.clone(), offset: 0 };
        if file.len().map_err(failed)? < UNIT as u64 {
            return Err(place.damaged("the file breaks off"));
        }
        let mut bytes = [0; UNIT];
        file.read(0, &mut bytes).map_err(failed)?;
        let Some(head) = FileHead::read(&bytes, sort) else {
            return Err(place.damaged("the head of the file is not what it should be"));
        };
        if head.format != FORMAT {
            return Err(OpenError::OtherFormat { path, found: u64::from(head.format) });
        }
        if head.revision != revision {
            return Err(place.damaged("the file is of another revision than its name says"));
        }
        Ok(file)
    }

    fn snapshot(&mut self, revision: u64) -> Result<(), OpenError> {
        let name = snapshot::name(revision);
        let file = self.open(&name, Sort::Snapshot, revision)?;
        let path = self.at.join(name);
        let failed = |error| OpenError::of_io(&path, error);
        let mut scan = Scan::new(&*file).map_err(failed)?;
        let (mut number, mut objects, mut total) = (0, 0, None);
        loop {
            let place = Place { path: path.clone(), offset: scan.offset() };
            let (head, mut body) = match scan.next().map_err(failed)? {
                Next::Frame(head, body) => (head, body),
                Next::End if total == Some(objects) => break,
                Next::End => return Err(place.damaged("the file breaks off")),
                Next::Bad(why) => return Err(place.damaged(why)),
            };
            if head.number != number || total.is_some() {
                return Err(place.damaged("a frame is out of its order"));
            }
            number += 1;
            for _ in 0..head.count {
                match record::take(&mut body) {
                    Some(Entry::Put(storage, path, object)) if object.revision <= revision => {
                        self.put(storage, path, object);
                        objects += 1;
                    }
                    Some(Entry::Total(count)) if head.count == 1 => total = Some(count),
                    _ => return Err(place.damaged("an entry makes no sense")),
                }
            }
        }
        self.revision = revision;
        Ok(())
    }

    fn segment(&mut self, first: u64, is_last: bool) -> Result<Last, OpenError> {
        let name = log::name(first);
        let file = self.open(&name, Sort::Log, first)?;
        let path = self.at.join(&name);
        if first != self.revision + 1 {
            let why = format!("begins with revision {first} instead of {}", self.revision + 1);
            return Err(OpenError::Corrupt { path, why });
        }
        let failed = |error| OpenError::of_io(&path, error);
        let mut scan = Scan::new(&*file).map_err(failed)?;
        let mut unfinished = false;
        loop {
            let place = Place { path: path.clone(), offset: scan.offset() };
            match scan.next().map_err(failed)? {
                Next::Frame(head, body) => self.replay(&place, head, body)?,
                Next::End => break,
                Next::Bad(why) => {
                    unfinished = is_last && scan.is_unfinished().map_err(failed)?;
                    if !unfinished {
                        return Err(place.damaged(why));
                    }
                    break;
                }
            }
        }
        let end = scan.offset();
        Ok(Last { file, name, end, unfinished })
    }

    fn replay(&mut self, place: &Place, head: FrameHead, mut body: &[u8]) -> Result<(), OpenError> {
        if head.number != self.revision + 1 || head.count == 0 {
            return Err(place.damaged("a frame is out of its order"));
        }
        for _ in 0..head.count {
            self.revision += 1;
            match record::take(&mut body) {
                Some(Entry::Put(storage, path, object)) if object.revision == self.revision => {
                    self.put(storage, path, object);
                }
                Some(Entry::Delete(storage, path)) => {
                    self.objects.get_mut(storage).and_then(|objects| objects.remove(path));
                }
                Some(Entry::Drop(storage)) => {
                    self.objects.remove(storage);
                }
                _ => return Err(place.damaged("an entry makes no sense")),
            }
        }
        Ok(())
    }

    fn put(&mut self, storage: &str, path: &str, object: Stored) {
        if !self.objects.contains_key(storage) {
            self.objects.insert(storage.into(), BTreeMap::new());
        }
        let Some(objects) = self.objects.get_mut(storage) else { return };
        match objects.get_mut(path) {
            Some(known) => *known = object,
            None => {
                objects.insert(path.into(), object);
            }
        }
    }

    fn loaded(self) -> Loaded {
        let mut objects = Vec::new();
        for (storage, of_storage) in self.objects {
            objects.extend(
                of_storage.into_iter().map(|(path, object)| (Arc::clone(&storage), path, object)),
            );
        }
        Loaded { revision: self.revision, objects }
    }
}
