//! The cache against late, repeated and missing news.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, PartialEq)]
struct Thing {
    uid: String,
    name: String,
    version: u64,
    owner: Option<String>,
    fact: u32,
}

impl Object for Thing {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        self.fact == older.fact && self.owner == older.owner
    }
}

fn thing(uid: &str, version: u64) -> Thing {
    Thing {
        uid: uid.to_owned(),
        name: format!("name-{uid}"),
        version,
        owner: Some("job".to_owned()),
        fact: 0,
    }
}

#[test]
fn the_echo_of_an_own_write_changes_nothing() {
    let mut store = Store::default();
    store.own(thing("a", 5));
    assert!(store.see(thing("a", 5)).is_none());
    assert!(store.see(thing("a", 4)).is_none());
    assert_eq!(store.get("a").unwrap().version, 5);
}

#[test]
fn a_new_version_with_the_same_facts_is_held_but_not_told() {
    let mut store = Store::default();
    assert!(store.see(thing("a", 5)).is_some());
    assert!(store.see(thing("a", 6)).is_none());
    assert_eq!(store.get("a").unwrap().version, 6);
    let change = store.see(Thing { fact: 1, ..thing("a", 7) }).unwrap();
    assert_eq!(change.before.unwrap().version, 6);
    assert_eq!(change.after.unwrap().fact, 1);
}

#[test]
fn what_is_gone_is_told_as_it_was_at_last() {
    let mut store = Store::default();
    store.see(thing("a", 5));
    let change = store.see_gone("a", 6, Some(Thing { fact: 1, ..thing("a", 6) })).unwrap();
    assert_eq!((change.before.unwrap().fact, change.after), (1, None));
    store.see(thing("b", 7));
    let change = store.see_gone("b", 8, None).unwrap();
    assert_eq!(change.before.unwrap().version, 7, "as it was held");
}

#[test]
fn the_number_of_objects_is_told_by_how_it_changed() {
    let mut store = Store::default();
    store.own(thing("a", 5));
    store.see(thing("b", 6));
    assert_eq!((store.growth(), store.growth()), (2, 0));
    store.own_gone("a");
    assert_eq!(store.growth(), -1);
}

#[test]
fn what_we_deleted_does_not_come_back() {
    let mut store = Store::default();
    store.own(thing("a", 5));
    assert!(store.own_gone("a").is_some());
    assert!(store.see(thing("a", 5)).is_none());
    assert!(store.see(thing("a", 6)).is_none());
    assert!(store.get("a").is_none());
    assert!(store.see_gone("a", 7, None).is_none());
    assert!(store.deleted.is_empty());
}

#[test]
fn a_tombstone_outlives_a_list_that_is_older_than_the_object() {
    let mut store = Store::default();
    store.own(thing("a", 9));
    store.own_gone("a");
    store.relist(vec![], &[], 8);
    assert!(store.see(thing("a", 9)).is_none(), "the list at 8 could not know of it");
    store.relist(vec![], &[], 20);
    assert!(store.deleted.is_empty());
}

#[test]
fn a_list_removes_what_it_should_have_seen_and_nothing_newer() {
    let mut store = Store::default();
    store.see(thing("old", 3));
    store.own(thing("new", 12));
    store.see(thing("unreadable", 4));
    let changes = store.relist(vec![thing("b", 8)], &["unreadable".to_owned()], 10);
    assert_eq!(changes.len(), 2);
    assert!(store.get("old").is_none());
    assert!(store.get("new").is_some() && store.get("unreadable").is_some());
    assert_eq!(
        store.owned_by("job").iter().map(|t| &*t.uid).collect::<Vec<_>>(),
        ["b", "new", "unreadable"]
    );
}

#[test]
fn an_object_that_changes_hands_leaves_its_former_owner() {
    let mut store = Store::default();
    store.see(thing("a", 1));
    let change = store.see(Thing { owner: Some("other".to_owned()), ..thing("a", 2) }).unwrap();
    assert_eq!(change.before.unwrap().owner.as_deref(), Some("job"));
    assert!(store.owned_by("job").is_empty());
    assert_eq!(store.owned_by("other").len(), 1);
    store.see(Thing { owner: None, ..thing("a", 3) });
    assert!(store.owned_by("other").is_empty());
}

#[test]
fn versions_that_cannot_be_compared_are_taken_as_they_come() {
    let mut store = Store::default();
    store.see(thing("a", 0));
    assert!(store.see(Thing { fact: 1, ..thing("a", 0) }).is_some());
    assert!(store.see_gone("a", 0, None).is_some());
    assert_eq!(store.by_uid.len(), 0);
}

#[test]
fn an_answer_that_comes_after_the_end_brings_nothing_back() {
    let mut store = Store::default();
    store.see(thing("a", 5));
    store.see(thing("a", 6));
    assert!(store.see_gone("a", 7, None).is_some());
    store.own(thing("a", 6));
    assert!(store.get("a").is_none(), "the watch told of 6 and of the end");
    store.own(thing("b", 8));
    assert!(store.get("b").is_some(), "the watch has yet to tell of 8");
}

#[derive(Debug, Clone)]
enum Step {
    /// We write and read the answer.
    OwnWrite(u8),
    /// We write; the answer arrives only later.
    OwnWriteSlow(u8),
    AnswerArrives,
    /// We delete it for good.
    OwnDelete(u8),
    /// Somebody else writes.
    Write(u8),
    Delete(u8),
    /// The watch brings so many events.
    Watch(u8),
    /// The API server makes a list; it arrives only later.
    List,
    ListArrives,
}

fn step() -> impl Strategy<Value = Step> {
    let slot = 0_u8..4;
    prop_oneof![
        slot.clone().prop_map(Step::OwnWrite),
        slot.clone().prop_map(Step::OwnWriteSlow),
        Just(Step::AnswerArrives),
        slot.clone().prop_map(Step::OwnDelete),
        slot.clone().prop_map(Step::Write),
        slot.prop_map(Step::Delete),
        (1_u8..4).prop_map(Step::Watch),
        Just(Step::List),
        Just(Step::ListArrives),
    ]
}

/// An API server with its history, and one watch on it.
#[derive(Default)]
struct World {
    version: u64,
    next_uid: u32,
    /// By name: at most one object of a name at a time.
    there: BTreeMap<u8, Thing>,
    history: Vec<(u64, Thing, bool)>,
    watched: usize,
    list: Option<(Vec<Thing>, u64)>,
    /// The answer to a write of ours, under way.
    answer: Option<Thing>,
    store: Store<Thing>,
    /// What we wrote, by identity: the version, or `None` once we deleted it.
    own: BTreeMap<String, Option<u64>>,
}

impl World {
    fn write(&mut self, slot: u8) -> Thing {
        self.version += 1;
        let uid = self.there.get(&slot).map_or_else(
            || {
                self.next_uid += 1;
                format!("uid-{}", self.next_uid)
            },
            |thing| thing.uid.clone(),
        );
        let fact = u32::try_from(self.version).unwrap();
        let name = format!("name-{slot}");
        let object = Thing { uid, name, version: self.version, owner: Some("job".into()), fact };
        self.there.insert(slot, object.clone());
        self.history.push((self.version, object.clone(), true));
        object
    }

    fn delete(&mut self, slot: u8) -> Option<Thing> {
        let mut object = self.there.remove(&slot)?;
        self.version += 1;
        object.version = self.version;
        self.history.push((self.version, object.clone(), false));
        Some(object)
    }

    fn watch(&mut self, events: usize) {
        for _ in 0..events {
            let Some((version, object, alive)) = self.history.get(self.watched).cloned() else {
                return;
            };
            self.watched += 1;
            if alive {
                self.store.see(object);
            } else {
                self.store.see_gone(&object.uid.clone(), version, Some(object));
            }
        }
    }

    fn answer_arrives(&mut self) {
        if let Some(object) = self.answer.take() {
            let written = self.own.entry(object.uid.clone()).or_insert(Some(0));
            *written = written.map(|before| before.max(object.version));
            self.store.own(object);
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::OwnWrite(slot) => {
                let object = self.write(slot);
                self.own.insert(object.uid.clone(), Some(object.version));
                self.store.own(object);
            }
            Step::OwnWriteSlow(slot) => {
                // As in life: one write at a time.
                if self.answer.is_none() {
                    let object = self.write(slot);
                    self.answer = Some(object);
                }
            }
            Step::AnswerArrives => self.answer_arrives(),
            Step::OwnDelete(slot) => {
                // As in life: only what we know of is deleted, by identity.
                let known = self.there.get(&slot).map(|thing| thing.uid.clone());
                let busy = self.answer.as_ref().map(|thing| thing.uid.clone());
                let known = known.filter(|uid| busy.as_ref() != Some(uid));
                if let Some(uid) = known.filter(|uid| self.store.get(uid).is_some()) {
                    self.delete(slot);
                    self.store.own_gone(&uid);
                    self.own.insert(uid, None);
                }
            }
            Step::Write(slot) => {
                self.write(slot);
            }
            Step::Delete(slot) => {
                self.delete(slot);
            }
            Step::Watch(events) => self.watch(events.into()),
            Step::List => self.list = Some((self.there.values().cloned().collect(), self.version)),
            Step::ListArrives => {
                if let Some((objects, version)) = self.list.take() {
                    // A list is asked for when the watch has ended, so it is not behind it.
                    let seen = self.history.iter().filter(|(at, ..)| *at <= version).count();
                    if seen >= self.watched {
                        self.store.relist(objects, &[], version);
                        self.watched = seen;
                    }
                }
            }
        }
    }

    fn check(&self) {
        for (uid, written) in &self.own {
            let held = self.store.get(uid).map(|thing| thing.version);
            match (written, held) {
                (None, Some(_)) => panic!("{uid} is back although we deleted it"),
                (Some(written), Some(held)) => assert!(held >= *written, "{uid} went back"),
                (Some(_), None) => {
                    let alive = self.there.values().any(|thing| thing.uid == *uid);
                    assert!(!alive, "{uid} is lost although it exists");
                }
                (None, None) => {}
            }
        }
        let grouped: usize = self.store.by_owner.values().map(Vec::len).sum();
        assert_eq!(grouped, self.store.by_uid.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reads_never_go_back_behind_own_writes(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World { version: 1, ..World::default() };
        for step in &steps {
            world.take(step);
            world.check();
        }
        // The worst that can be: everything is told before the last answer is read.
        world.watch(usize::MAX);
        world.answer_arrives();
        world.check();
        let expected: BTreeMap<_, _> =
            world.there.values().map(|thing| (thing.uid.clone(), thing.clone())).collect();
        let held: BTreeMap<_, _> = world
            .store
            .by_uid
            .values()
            .map(|thing| (thing.uid.clone(), (**thing).clone()))
            .collect();
        prop_assert_eq!(held, expected);
        prop_assert!(world.store.deleted.is_empty());
    }
}
