//! A disk beside a model of what it must hold, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::platter::Platter;
use super::*;
use crate::store::Event;
use crate::store::tests::draft;

/// Storage and path to revision and content.
pub(super) type Contents = BTreeMap<(String, String), (u64, String)>;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deal {
    Put(&'static str, String, String),
    Delete(&'static str, String),
    Drop(&'static str),
}

/// What a store would hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) revision: u64,
    pub(super) contents: Contents,
}

impl Model {
    pub(super) fn fresh() -> Self {
        Self { revision: 1, contents: Contents::new() }
    }

    fn of(loaded: &Loaded) -> Self {
        let content = |object: &Stored| {
            object.value()["data"]["content"].as_str().unwrap_or_default().to_owned()
        };
        let contents = loaded.objects.iter().map(|(storage, path, object)| {
            let place = (storage.to_string(), path.to_string());
            (place, (object.revision, content(object)))
        });
        Self { revision: loaded.revision, contents: contents.collect() }
    }

    /// The model after some writes, and the writes as a disk takes them.
    pub(super) fn after(&self, deals: &[Deal]) -> (Self, Vec<Write>) {
        let mut model = self.clone();
        let writes = deals.iter().map(|deal| model.deal(deal)).collect();
        (model, writes)
    }

    fn deal(&mut self, deal: &Deal) -> Write {
        self.revision += 1;
        let revision = self.revision;
        let event = |storage: &str, path: &str, text: &str, deleted| {
            let object = Arc::new(draft(path, text).at(revision));
            let event = Event { revision, path: path.into(), deleted, object, previous: None };
            Write::event(storage.into(), event)
        };
        match deal {
            Deal::Put(storage, path, text) => {
                let place = ((*storage).to_owned(), path.clone());
                self.contents.insert(place, (revision, text.clone()));
                event(storage, path, text, false)
            }
            Deal::Delete(storage, path) => {
                self.contents.remove(&((*storage).to_owned(), path.clone()));
                event(storage, path, "", true)
            }
            Deal::Drop(storage) => {
                self.contents.retain(|(of, _), _| of != storage);
                Write { storage: (*storage).into(), deed: Deed::Drop(revision) }
            }
        }
    }

    /// What a snapshot is made of.
    pub(super) fn everything(&self) -> Everything {
        let objects = self.contents.iter().map(|((storage, path), (revision, text))| {
            let object = Arc::new(draft(path, text).at(*revision));
            (storage.as_str().into(), path.as_str().into(), object)
        });
        Everything { revision: self.revision, objects: objects.collect() }
    }
}

pub(super) fn deal(storage: &'static str, path: &str, text: &str) -> Deal {
    Deal::Put(storage, path.to_owned(), text.to_owned())
}

/// A folder on a platter, and the real one that is locked for it.
pub(super) struct Bed {
    locked: tempfile::TempDir,
    pub(super) platter: Platter,
}

impl Bed {
    pub(super) fn new() -> Self {
        Self::on(Platter::default())
    }

    pub(super) fn on(platter: Platter) -> Self {
        Self { locked: tempfile::tempdir().unwrap(), platter }
    }

    pub(super) fn open(&self) -> Result<(Disk, Model), OpenError> {
        let folder = Arc::new(self.platter.clone());
        let (disk, loaded) = Disk::open_in(self.locked.path(), folder, u64::MAX)?;
        Ok((disk, Model::of(&loaded)))
    }

    /// Makes some batches of writes in a folder.
    pub(super) fn write(&self, batches: &[Vec<Deal>]) -> Model {
        let (mut disk, mut model) = self.open().unwrap();
        for batch in batches {
            let (after, writes) = model.after(batch);
            disk.write(&writes).unwrap();
            model = after;
        }
        model
    }

    /// Holds the folder to a model, now and after it was written to.
    pub(super) fn holds(&self, model: &Model) {
        let (disk, found) = self.open().unwrap();
        assert_eq!(&found, model);
        drop(disk);
        let more = self.write(&[vec![deal("pods", "ns/after", "all")]]);
        assert_eq!(more.revision, model.revision + 1);
        let (_disk, found) = self.open().unwrap();
        assert_eq!(found, more);
    }

    /// The one file whose name begins so.
    pub(super) fn name(&self, prefix: &str) -> String {
        let names = self.platter.names().unwrap();
        let mut found = names.into_iter().filter(|name| name.starts_with(prefix));
        let name = found.next().unwrap();
        assert_eq!(found.next(), None);
        name
    }
}

impl Disk {
    /// Makes a snapshot and waits for its end.
    pub(super) fn condensed(&mut self, model: &Model) {
        self.condense(model.everything());
        if let Some(making) = self.making.take() {
            self.made(making);
        }
    }
}
