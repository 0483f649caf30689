//! Many who write and watch at once, in memory and on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::tests::{content, create, draft};
use super::*;

const OBJECTS: usize = 4;
const WRITERS: usize = 8;
const ROUNDS: usize = 40;

fn name(number: usize) -> String {
    format!("object-{number}")
}

/// Adds one to the number in an object, again and again until nobody was in between.
async fn count_up(store: &Store, name: &str) {
    loop {
        let current = store.get("maps", "ns", name).unwrap();
        let next = content(&current).parse::<u64>().unwrap_or(0) + 1;
        let change = Change::Put(draft(name, &next.to_string()));
        let key = Key::new("maps", "ns", name);
        match store.commit(key, Expect::Revision(current.revision), change).await {
            Ok(_) => return,
            Err(CommitError::Changed(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Lists, then watches, as clients do, and rebuilds the objects until all numbers are complete.
async fn follow(store: Store, total: u64) -> BTreeMap<String, Object> {
    let listing = store.list("maps", &Query::default()).unwrap();
    let mut known: BTreeMap<String, Object> = listing
        .items
        .iter()
        .map(|object| {
            (object.value()["metadata"]["name"].as_str().unwrap().to_owned(), Arc::clone(object))
        })
        .collect();
    let mut cursor = store.watch("maps", listing.revision).unwrap();
    let mut last = listing.revision;
    let sum = |known: &BTreeMap<String, Object>| {
        known.values().map(|object| content(object).parse::<u64>().unwrap_or(0)).sum::<u64>()
    };
    while sum(&known) < total {
        for event in cursor.next().await.unwrap() {
            assert!(event.revision > last, "revisions grow");
            last = event.revision;
            let before = known.insert(event.name().to_owned(), Arc::clone(&event.object));
            assert_eq!(before, event.previous, "no version is left out");
        }
    }
    known
}

async fn contend(store: Store) {
    for number in 0..OBJECTS {
        create(&store, "maps", "ns", &name(number)).await;
    }
    let total = (WRITERS * ROUNDS) as u64;
    let mut watchers: Vec<_> = (0..4).map(|_| tokio::spawn(follow(store.clone(), total))).collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    count_up(&store, &name((writer + round) % OBJECTS)).await;
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    watchers.extend((0..4).map(|_| tokio::spawn(follow(store.clone(), total))));
    for writer in writers {
        writer.await.unwrap();
    }
    let listing = store.list("maps", &Query::default()).unwrap();
    for watcher in watchers {
        let seen: Vec<Object> = watcher.await.unwrap().into_values().collect();
        assert_eq!(seen, listing.items);
    }
    // Every write had a revision of its own.
    assert_eq!(store.revision(), 1 + OBJECTS as u64 + total);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_overwrites_and_nobody_misses_in_memory() {
    contend(Store::memory(Limits::default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_overwrites_and_nobody_misses_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Limits::default()).unwrap();
    contend(store.clone()).await;
    let before = store.list("maps", &Query::default()).unwrap();
    store.close().await;
    let store = Store::open(folder.path(), Limits::default()).unwrap();
    assert_eq!(store.list("maps", &Query::default()).unwrap(), before);
}
