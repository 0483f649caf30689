//! Random histories against a model that remembers everything.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use proptest::prelude::*;

use super::listing::Filter;
use super::tests::{content, draft};
use super::*;

const STORAGES: [&str; 2] = ["pods", "tfjobs.kubeflow.org"];
const PLACES: [(&str, &str); 6] =
    [("a", "x"), ("a", "y"), ("a-b", "x"), ("b", "a.b"), ("b", "x"), ("", "alone")];

#[derive(Debug, Clone)]
enum Step {
    /// A write at a place; whether its expectation is to hold.
    Put(usize, usize, bool),
    Delete(usize, usize, bool),
    Drop(usize),
    /// Looks at a state of the past, in pages.
    List {
        storage: usize,
        back: u64,
        namespace: Option<usize>,
        limit: usize,
        filter: bool,
    },
    Watch {
        storage: usize,
        back: u64,
    },
    /// Lets a watch look.
    Look(usize),
    /// Closes and opens a store on disk; in memory nothing.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let (storage, place) = (0..STORAGES.len(), 0..PLACES.len());
    prop_oneof![
        8 => (storage.clone(), place.clone(), prop::bool::weighted(0.9))
            .prop_map(|(storage, place, right)| Step::Put(storage, place, right)),
        4 => (storage.clone(), place.clone(), prop::bool::weighted(0.9))
            .prop_map(|(storage, place, right)| Step::Delete(storage, place, right)),
        1 => storage.clone().prop_map(Step::Drop),
        4 => (storage.clone(), 0..14_u64, prop::option::of(place), 0..4_usize, any::<bool>())
            .prop_map(|(storage, back, namespace, limit, filter)| {
                Step::List { storage, back, namespace, limit, filter }
            }),
        2 => (storage, 0..14_u64).prop_map(|(storage, back)| Step::Watch { storage, back }),
        4 => (0..8_usize).prop_map(Step::Look),
        1 => Just(Step::Reopen),
    ]
}

type Contents = BTreeMap<String, (u64, String)>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Happened {
    storage: usize,
    revision: u64,
    path: String,
    deleted: bool,
    content: String,
    previous: Option<(u64, String)>,
}

/// Every state there ever was, by revision from 1, and every event that is to be remembered.
struct Model {
    states: Vec<[Contents; 2]>,
    events: Vec<Happened>,
    floors: [u64; 2],
    history: usize,
}

impl Model {
    fn revision(&self) -> u64 {
        self.states.len() as u64
    }

    fn at(&self, storage: usize, revision: u64) -> &Contents {
        &self.states[usize::try_from(revision.max(1)).unwrap() - 1][storage]
    }

    fn write(&mut self, storage: usize, path: &str, text: Option<&str>) {
        let mut state = self.states.last().unwrap().clone();
        let revision = self.revision() + 1;
        let content = text.unwrap_or("last").to_owned();
        let previous = match text {
            Some(_) => state[storage].insert(path.to_owned(), (revision, content.clone())),
            None => state[storage].remove(path),
        };
        self.states.push(state);
        let (path, deleted) = (path.to_owned(), text.is_none());
        self.events.push(Happened { storage, revision, path, deleted, content, previous });
        while self.events.len() > self.history {
            let forgotten = self.events.remove(0);
            self.floors[forgotten.storage] = forgotten.revision;
        }
    }

    fn drop_storage(&mut self, storage: usize) {
        let mut state = self.states.last().unwrap().clone();
        state[storage].clear();
        self.states.push(state);
        self.events.retain(|event| event.storage != storage);
        self.floors[storage] = self.revision();
    }

    fn reopen(&mut self) {
        self.events.clear();
        self.floors = [self.revision(); 2];
    }

    fn since(&self, storage: usize, revision: u64) -> Vec<Happened> {
        let wanted = |event: &&Happened| event.storage == storage && event.revision > revision;
        self.events.iter().filter(wanted).cloned().collect()
    }
}

fn happened(storage: usize, event: &Event) -> Happened {
    assert_eq!(event.revision, event.object.revision);
    Happened {
        storage,
        revision: event.revision,
        path: change::path(event.namespace(), event.name()),
        deleted: event.deleted,
        content: content(&event.object),
        previous: event.previous.as_ref().map(|object| (object.revision, content(object))),
    }
}

struct Run {
    limits: Limits,
    store: Store,
    /// Where the store is, and what runs it, when it is on disk.
    disk: Option<(tempfile::TempDir, tokio::runtime::Runtime)>,
    model: Model,
    /// Watches with their storage and the number of drops of it when they began.
    cursors: Vec<(usize, u32, Cursor)>,
    drops: [u32; 2],
    counter: u32,
}

impl Run {
    fn new(history: usize, on_disk: bool) -> Self {
        let limits = Limits { history_events: history, ..Limits::default() };
        let states = vec![[Contents::new(), Contents::new()]];
        let model = Model { states, events: Vec::new(), floors: [1, 1], history };
        let disk = on_disk.then(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            (tempfile::tempdir().unwrap(), runtime)
        });
        let store = match &disk {
            Some((folder, _)) => Store::open(folder.path(), limits).unwrap(),
            None => Store::memory(limits),
        };
        Self { limits, store, disk, model, cursors: Vec::new(), drops: [0, 0], counter: 0 }
    }

    /// The end of a write, which in memory never waits.
    fn done<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.disk {
            Some((_, runtime)) => runtime.block_on(future),
            None => future.now_or_never().unwrap(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Put(storage, place, right) => self.write(storage, place, right, false),
            Step::Delete(storage, place, right) => self.write(storage, place, right, true),
            Step::Drop(storage) => {
                let known = self.store.shared.read().section(STORAGES[storage]).is_some();
                self.done(self.store.drop_storage(STORAGES[storage])).unwrap();
                if known {
                    self.model.drop_storage(storage);
                    // A storage that has no section has the floor of the last drop.
                    self.drops[storage] += 1;
                    let other = 1 - storage;
                    if self.store.shared.read().section(STORAGES[other]).is_none() {
                        self.model.floors[other] = self.model.revision();
                    }
                }
            }
            Step::List { storage, back, namespace, limit, filter } => {
                let revision = (self.model.revision() + 1).saturating_sub(back);
                let namespace = namespace.map(|place| PLACES[place].0).filter(|it| !it.is_empty());
                self.list(storage, revision, namespace, limit, filter);
            }
            Step::Watch { storage, back } => self.watch(storage, back),
            Step::Look(which) => self.look(which),
            Step::Reopen => self.reopen(),
        }
        assert_eq!(self.store.revision(), self.model.revision());
    }

    fn write(&mut self, storage: usize, place: usize, right: bool, delete: bool) {
        let (namespace, name) = PLACES[place];
        let path = change::path(namespace, name);
        let current = self.model.states.last().unwrap()[storage].get(&path).cloned();
        let expect = match (&current, right) {
            (Some((revision, _)), true) => Expect::Revision(*revision),
            (None, true) | (Some(_), false) => Expect::Absent,
            (None, false) => Expect::Revision(1),
        };
        self.counter += 1;
        let text = format!("content {}", self.counter);
        let change = if delete {
            Change::Delete(draft(name, "last"))
        } else {
            Change::Put(draft(name, &text))
        };
        let key = Key::new(STORAGES[storage], namespace, name);
        let result = self.done(self.store.commit(key, expect, change));
        let wanted = match (&current, right, delete) {
            (Some(_), false, _) => Some("exists"),
            (None, false, _) | (None, true, true) => Some("missing"),
            _ => None,
        };
        assert_eq!(result.as_ref().err().map(CommitError::kind), wanted);
        if wanted.is_none() {
            self.model.write(storage, &path, (!delete).then_some(text.as_str()));
            assert_eq!(result.unwrap().revision, self.model.revision());
        }
    }

    fn list(&self, storage: usize, at: u64, namespace: Option<&str>, limit: usize, filter: bool) {
        let wants = |_: &str, name: &str, _: &crate::object::Stored| name.contains('x');
        let filter: Option<&Filter<'_>> = if filter { Some(&wants) } else { None };
        let query = Query { namespace, at: Some(at), start: None, limit, filter };
        let mut found: Vec<(u64, String)> = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let query = Query { start: next.as_deref(), ..query };
            let page = match self.store.list(STORAGES[storage], &query) {
                Ok(page) => page,
                Err(ListError::Future { current }) => {
                    assert_eq!(current, self.model.revision());
                    assert!(at > current);
                    return;
                }
                Err(ListError::Compacted { oldest }) => {
                    assert_eq!(oldest, self.model.floors[storage]);
                    assert!(at < oldest);
                    return;
                }
            };
            assert_eq!(page.revision, at);
            assert!(limit == 0 || page.items.len() <= limit);
            assert!(page.next.is_none() || page.items.len() == limit, "pages are full");
            found.extend(page.items.iter().map(|object| (object.revision, content(object))));
            let Some(following) = page.next else { break };
            next = Some(following);
        }
        let of_namespace = |path: &str| namespace.is_none_or(|it| change::parts(path).0 == it);
        let wanted = |path: &str| filter.is_none() || change::parts(path).1.contains('x');
        let expected: Vec<(u64, String)> = self
            .model
            .at(storage, at)
            .iter()
            .filter(|(path, _)| of_namespace(path) && wanted(path))
            .map(|(_, object)| object.clone())
            .collect();
        assert_eq!(found, expected);
    }

    fn watch(&mut self, storage: usize, back: u64) {
        let from = (self.model.revision() + 1).saturating_sub(back);
        match self.store.watch(STORAGES[storage], from) {
            Ok(cursor) => {
                assert!(from >= self.model.floors[storage]);
                self.cursors.push((storage, self.drops[storage], cursor));
            }
            Err(Compacted { oldest }) => {
                assert_eq!(oldest, self.model.floors[storage]);
                assert!(from < oldest);
            }
        }
    }

    fn reopen(&mut self) {
        let Some((folder, _)) = &self.disk else {
            return;
        };
        self.done(self.store.close());
        self.store = Store::open(folder.path(), self.limits).unwrap();
        self.cursors.clear();
        self.model.reopen();
    }

    fn look(&mut self, which: usize) {
        if self.cursors.is_empty() {
            return;
        }
        let which = which % self.cursors.len();
        let (storage, drops, cursor) = &mut self.cursors[which];
        let storage = *storage;
        let from = cursor.position();
        let lost = *drops != self.drops[storage] || from < self.model.floors[storage];
        match cursor.next().now_or_never() {
            Some(Err(_)) => {
                assert!(lost);
                self.cursors.remove(which);
            }
            Some(Ok(events)) => {
                assert!(!lost);
                let seen: Vec<_> = events.iter().map(|event| happened(storage, event)).collect();
                assert_eq!(seen, self.model.since(storage, from));
                assert_eq!(cursor.position(), events.last().unwrap().revision);
            }
            None => {
                assert!(!lost);
                assert_eq!(self.model.since(storage, from), []);
                assert_eq!(cursor.quiet(), from.max(self.model.revision()));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_version_once_in_order_or_compacted(
        history in 0..12_usize,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut run = Run::new(history, false);
        for step in &steps {
            run.step(step);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_disk_it_is_the_same(
        history in 0..12_usize,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut run = Run::new(history, true);
        for step in &steps {
            run.step(step);
        }
    }
}
