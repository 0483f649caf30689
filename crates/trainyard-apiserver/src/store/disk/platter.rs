//! A folder in memory for tests, that can run out of room and lose its power.
//!
//! When the power goes, what was not synced is there or not, sector by sector, and the names are as
//! they were at some moment since they were synced.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::files::{DataFile, Folder};

const SECTOR: usize = 512;

/// How much can still be written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Room {
    /// All.
    #[default]
    Free,
    /// What has its place already.
    NoGrowth,
    /// Half of everything, and zeros.
    Half,
}

#[derive(Debug, Clone)]
enum Op {
    Write(usize, Vec<u8>),
    Cut(usize),
}

#[derive(Debug, Clone, Default)]
struct Image {
    cached: Vec<u8>,
    synced: Vec<u8>,
    pending: Vec<Op>,
}

fn put(image: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if image.len() < offset + data.len() {
        image.resize(offset + data.len(), 0);
    }
    image[offset..offset + data.len()].copy_from_slice(data);
}

type Names = BTreeMap<String, usize>;

#[derive(Debug, Clone, Default)]
struct Inner {
    images: Vec<Image>,
    names: Names,
    synced_names: Names,
    pending_names: Vec<Names>,
    fuse: Option<u32>,
    steps: u32,
    room: Room,
}

impl Inner {
    fn burn(&mut self) -> io::Result<()> {
        match &mut self.fuse {
            Some(0) => return Err(io::Error::other("no power")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.steps += 1;
        Ok(())
    }

    fn renamed(&mut self) {
        self.pending_names.push(self.names.clone());
    }
}

/// The folder. Clones are the same folder.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Platter(Arc<Mutex<Inner>>);

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

impl Platter {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After so many steps the power goes.
    pub(in crate::store) fn set_fuse(&self, steps: u32) {
        self.inner().fuse = Some(steps);
    }

    pub(in crate::store) fn set_room(&self, room: Room) {
        self.inner().room = room;
    }

    /// How many steps were done.
    pub(in crate::store) fn steps(&self) -> u32 {
        self.inner().steps
    }

    /// A copy with its own fate.
    pub(in crate::store) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.inner().clone())))
    }

    /// What is found when a process was killed and the machine went on.
    pub(in crate::store) fn after_the_kill(&self) -> Self {
        let copy = self.copy();
        copy.inner().fuse = None;
        copy
    }

    /// What is found after the power is back.
    pub(in crate::store) fn after_the_cut(&self, chance: u64) -> Self {
        let mut chance = Chance(chance.max(1));
        let mut inner = self.inner().clone();
        inner.fuse = None;
        let states = inner.pending_names.len() as u64 + 1;
        inner.names = match chance.next() % states {
            0 => inner.synced_names.clone(),
            n => inner.pending_names[usize::try_from(n).unwrap() - 1].clone(),
        };
        for image in &mut inner.images {
            for op in std::mem::take(&mut image.pending) {
                match op {
                    Op::Cut(len) if chance.next().is_multiple_of(2) => image.synced.truncate(len),
                    Op::Cut(_) => {}
                    Op::Write(mut offset, data) => {
                        let mut rest = data.as_slice();
                        while !rest.is_empty() {
                            let len = (SECTOR - offset % SECTOR).min(rest.len());
                            let (sector, behind) = rest.split_at(len);
                            if chance.next().is_multiple_of(2) {
                                put(&mut image.synced, offset, sector);
                            }
                            (offset, rest) = (offset + len, behind);
                        }
                    }
                }
            }
            image.cached = image.synced.clone();
        }
        (inner.synced_names, inner.pending_names) = (inner.names.clone(), Vec::new());
        Self(Arc::new(Mutex::new(inner)))
    }

    /// What is in a file.
    pub(in crate::store) fn bytes(&self, name: &str) -> Vec<u8> {
        let inner = self.inner();
        inner.images[inner.names[name]].cached.clone()
    }

    /// Replaces what is in a file.
    pub(in crate::store) fn replace(&self, name: &str, bytes: &[u8]) {
        let mut inner = self.inner();
        let (cached, synced) = (bytes.to_vec(), bytes.to_vec());
        let image = Image { cached, synced, pending: Vec::new() };
        if let Some(id) = inner.names.get(name).copied() {
            inner.images[id] = image;
            return;
        }
        let id = inner.images.len();
        inner.images.push(image);
        inner.names.insert(name.to_owned(), id);
        inner.synced_names.insert(name.to_owned(), id);
    }

    /// All files.
    pub(in crate::store) fn all(&self) -> BTreeMap<String, Vec<u8>> {
        let names: Vec<String> = self.inner().names.keys().cloned().collect();
        names.into_iter().map(|name| (name.clone(), self.bytes(&name))).collect()
    }
}

impl Folder for Platter {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.inner().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DataFile>> {
        let id = *self.inner().names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(File { platter: self.clone(), id }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DataFile>> {
        let mut inner = self.inner();
        inner.burn()?;
        let id = inner.images.len();
        inner.images.push(Image::default());
        inner.names.insert(name.to_owned(), id);
        inner.renamed();
        Ok(Box::new(File { platter: self.clone(), id }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.burn()?;
        let id = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inner.names.insert(to.to_owned(), id);
        inner.renamed();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.burn()?;
        inner.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        inner.renamed();
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.burn()?;
        (inner.synced_names, inner.pending_names) = (inner.names.clone(), Vec::new());
        Ok(())
    }
}

#[derive(Debug)]
struct File {
    platter: Platter,
    id: usize,
}

impl DataFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.platter.inner().images[self.id].cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let inner = self.platter.inner();
        let found = inner.images[self.id].cached.get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let mut inner = self.platter.inner();
        let lit = inner.burn();
        let room = inner.room;
        let image = &mut inner.images[self.id];
        let is_zero = data.iter().all(|byte| *byte == 0);
        let (data, done) = match room {
            Room::Free => (data, Ok(())),
            Room::NoGrowth if offset + data.len() <= image.cached.len() => (data, Ok(())),
            Room::NoGrowth => (&data[..0], Err(io::ErrorKind::StorageFull.into())),
            Room::Half if is_zero => (data, Ok(())),
            Room::Half => (&data[..data.len() / 2], Err(io::ErrorKind::StorageFull.into())),
        };
        // Of the write during which the power goes, something may be there.
        image.pending.push(Op::Write(offset, data.to_vec()));
        put(&mut image.cached, offset, data);
        lit.and(done)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap();
        let mut inner = self.platter.inner();
        inner.burn()?;
        let image = &mut inner.images[self.id];
        image.cached.truncate(len);
        image.pending.push(Op::Cut(len));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.platter.inner();
        inner.burn()?;
        let image = &mut inner.images[self.id];
        image.pending.clear();
        image.synced = image.cached.clone();
        Ok(())
    }
}
