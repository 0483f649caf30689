//! Writes, reads, lists and watches of a store in memory.

use futures::FutureExt as _;
use serde_json::json;

use super::*;
use crate::object::Draft;

/// A draft of an object with some content.
pub(super) fn draft(name: &str, content: &str) -> Draft {
    let value = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"app": "x"}},
        "data": {"content": content},
    });
    Draft::of("v1", "ConfigMap", value.as_object().unwrap(), Box::default())
}

pub(super) fn content(object: &Object) -> String {
    object.value()["data"]["content"].as_str().unwrap_or_default().to_owned()
}

/// Creates an object.
pub(super) async fn create(store: &Store, storage: &str, namespace: &str, name: &str) -> Object {
    let key = Key::new(storage, namespace, name);
    store.commit(key, Expect::Absent, Change::Put(draft(name, "new"))).await.unwrap()
}

fn names(listing: &Listing) -> Vec<String> {
    let name = |object: &Object| object.value()["metadata"]["name"].as_str().unwrap().to_owned();
    listing.items.iter().map(name).collect()
}

fn memory() -> Store {
    Store::memory(Limits::default())
}

#[tokio::test]
async fn a_write_needs_what_it_expects() {
    let store = memory();
    let key = Key::new("pods", "a", "x");
    let put = |text: &str| Change::Put(draft("x", text));
    let delete = || Change::Delete(draft("x", "gone"));

    let missing = store.commit(key.clone(), Expect::Revision(1), put("no")).await.unwrap_err();
    assert_eq!(missing.kind(), "missing");
    let missing = store.commit(key.clone(), Expect::Absent, delete()).await.unwrap_err();
    assert_eq!(missing.kind(), "missing");
    let made = store.commit(key.clone(), Expect::Absent, put("1")).await.unwrap();
    assert_eq!((made.revision, store.revision()), (2, 2));
    assert_eq!(made.value()["metadata"]["resourceVersion"], "2");

    let exists = store.commit(key.clone(), Expect::Absent, put("no")).await.unwrap_err();
    assert!(matches!(exists, CommitError::Exists(object) if object == made));
    let changed = store.commit(key.clone(), Expect::Revision(1), put("no")).await.unwrap_err();
    assert!(matches!(changed, CommitError::Changed(object) if object == made));
    let changed = store.commit(key.clone(), Expect::Revision(1), delete()).await.unwrap_err();
    assert_eq!(changed.kind(), "changed");
    assert_eq!((store.get("pods", "a", "x"), store.revision()), (Some(made), 2));

    let updated = store.commit(key.clone(), Expect::Revision(2), put("2")).await.unwrap();
    assert_eq!((updated.revision, content(&updated).as_str()), (3, "2"));
    let gone = store.commit(key, Expect::Revision(3), delete()).await.unwrap();
    assert_eq!((gone.revision, content(&gone).as_str()), (4, "gone"));
    assert_eq!(store.get("pods", "a", "x"), None);
}

#[tokio::test]
async fn lists_are_in_the_order_of_keys() {
    let store = memory();
    for (namespace, name) in [("a", "z"), ("a-b", "y"), ("a", "b"), ("a.b", "x"), ("b", "a")] {
        create(&store, "pods", namespace, name).await;
    }
    create(&store, "nodes", "", "n").await;
    let all = store.list("pods", &Query::default()).unwrap();
    // `-` and `.` come before `/`.
    assert_eq!(names(&all), ["y", "x", "b", "z", "a"]);
    assert_eq!(all.revision, 7);
    let of = |namespace| Query { namespace: Some(namespace), ..Query::default() };
    assert_eq!(names(&store.list("pods", &of("a")).unwrap()), ["b", "z"]);
    assert_eq!(names(&store.list("pods", &of("a-")).unwrap()), Vec::<String>::new());
    assert_eq!(names(&store.list("nodes", &of("")).unwrap()), ["n"]);
    assert_eq!(store.list("none", &Query::default()).unwrap().revision, 7);
    assert_eq!(store.storages().iter().map(|name| &**name).collect::<Vec<_>>(), ["nodes", "pods"]);
}

#[tokio::test]
async fn pages_show_one_revision() {
    let store = memory();
    for name in ["a", "b", "c", "d", "e"] {
        create(&store, "pods", "ns", name).await;
    }
    let query = Query { namespace: Some("ns"), limit: 2, ..Query::default() };
    let first = store.list("pods", &query).unwrap();
    assert_eq!((names(&first), first.remaining), (vec!["a".to_owned(), "b".to_owned()], Some(3)));
    assert_eq!(first.next.as_deref(), Some("b\0"));

    let d = store.get("pods", "ns", "d").unwrap();
    let delete = Change::Delete(draft("d", ""));
    store.commit(Key::new("pods", "ns", "d"), Expect::Revision(d.revision), delete).await.unwrap();
    create(&store, "pods", "ns", "bb").await;

    let at = Some(first.revision);
    let second = store.list("pods", &Query { at, start: first.next.as_deref(), ..query }).unwrap();
    assert_eq!((names(&second), second.revision), (vec!["c".into(), "d".into()], first.revision));
    let last = store.list("pods", &Query { at, start: second.next.as_deref(), ..query }).unwrap();
    assert_eq!((names(&last), last.next, last.remaining), (vec!["e".into()], None, None));
    let beyond = Query { at: Some(99), ..query };
    assert_eq!(store.list("pods", &beyond), Err(ListError::Future { current: 8 }));
    let wild = Query { start: Some("\u{10ffff}"), ..query };
    assert_eq!(names(&store.list("pods", &wild).unwrap()), Vec::<String>::new());
}

#[tokio::test]
async fn filtered_pages_fill_up() {
    let store = memory();
    for name in ["a", "b", "c", "d", "e"] {
        create(&store, "pods", "ns", name).await;
    }
    let odd = |namespace: &str, name: &str, _: &crate::object::Stored| {
        namespace == "ns" && ["a", "c", "e"].contains(&name)
    };
    let query = Query { limit: 2, filter: Some(&odd), ..Query::default() };
    let first = store.list("pods", &query).unwrap();
    assert_eq!((names(&first), first.remaining), (vec!["a".into(), "c".into()], None));
    assert_eq!(first.next.as_deref(), Some("ns/c\0"));
    let second = store.list("pods", &Query { start: first.next.as_deref(), ..query }).unwrap();
    assert_eq!((names(&second), second.next), (vec!["e".into()], None));
}

#[tokio::test]
async fn a_watch_waits_and_gets_everything_once() {
    let store = memory();
    let made = create(&store, "pods", "ns", "a").await;
    let mut cursor = store.watch("pods", 1).unwrap();
    let events = cursor.next().await.unwrap();
    assert_eq!((events.len(), events[0].revision, cursor.position()), (1, 2, 2));
    assert_eq!((events[0].namespace(), events[0].name()), ("ns", "a"));
    assert!(cursor.next().now_or_never().is_none());

    create(&store, "nodes", "", "n").await;
    assert!(cursor.next().now_or_never().is_none());
    assert_eq!(cursor.quiet(), 3);
    let waiting = tokio::spawn(async move { (cursor.next().await, cursor) });
    tokio::task::yield_now().await;
    let delete = Change::Delete(draft("a", "gone"));
    store.commit(Key::new("pods", "ns", "a"), Expect::Revision(2), delete).await.unwrap();
    let (events, mut cursor) = waiting.await.unwrap();
    let event = &events.unwrap()[0];
    assert_eq!((event.revision, event.deleted, event.previous.as_ref()), (4, true, Some(&made)));
    assert_eq!(event.object.value()["metadata"]["resourceVersion"], "4");
    create(&store, "pods", "ns", "b").await;
    assert_eq!(cursor.quiet(), 4, "an event is waiting");
    // From a revision that is yet to come: only what comes after it.
    let mut later = store.watch("pods", 6).unwrap();
    create(&store, "pods", "ns", "c").await;
    create(&store, "pods", "ns", "d").await;
    assert_eq!(later.next().await.unwrap()[0].name(), "d");
}

#[tokio::test]
async fn a_dropped_storage_ends_its_watches() {
    let store = memory();
    create(&store, "jobs", "ns", "a").await;
    let mut cursor = store.watch("jobs", 2).unwrap();
    let waiting = tokio::spawn(async move { cursor.next().await });
    tokio::task::yield_now().await;
    store.drop_storage("jobs").await.unwrap();
    assert_eq!(waiting.await.unwrap(), Err(Compacted { oldest: 3 }));
    assert_eq!(store.get("jobs", "ns", "a"), None);
    assert_eq!(store.watch("jobs", 2).unwrap_err().oldest, 3);
    let at = Query { at: Some(2), ..Query::default() };
    assert_eq!(store.list("jobs", &at), Err(ListError::Compacted { oldest: 3 }));
    create(&store, "jobs", "ns", "b").await;
    let mut cursor = store.watch("jobs", 3).unwrap();
    assert_eq!(cursor.next().await.unwrap()[0].name(), "b");
    store.drop_storage("unknown").await.unwrap();
    assert_eq!(store.revision(), 4);
}

#[tokio::test]
async fn history_is_bounded_by_bytes_and_count() {
    let limits = Limits { history_events: 100, history_bytes: 20_000, ..Limits::default() };
    let store = Store::memory(limits);
    create(&store, "rare", "", "x").await;
    let mut object = create(&store, "pods", "ns", "a").await;
    let mut slow = store.watch("pods", object.revision).unwrap();
    for _ in 0..60 {
        let change = Change::Put(draft("a", &"x".repeat(1000)));
        let key = Key::new("pods", "ns", "a");
        object = store.commit(key, Expect::Revision(object.revision), change).await.unwrap();
    }
    let oldest = slow.next().await.unwrap_err().oldest;
    assert!((40..60).contains(&oldest), "{oldest}");
    assert_eq!(slow.next().await, Err(Compacted { oldest }), "it stays so");
    assert_eq!(store.watch("pods", oldest - 1).unwrap_err(), Compacted { oldest });
    assert!(store.watch("pods", oldest).is_ok());
    // Nothing of that storage was forgotten but its one event.
    assert!(store.watch("rare", 2).is_ok());
    assert_eq!(store.watch("rare", 1).unwrap_err(), Compacted { oldest: 2 });
}

#[tokio::test]
async fn a_full_store_refuses_growth_only() {
    let store = Store::memory(Limits { object_bytes: 4_000, ..Limits::default() });
    let big = create(&store, "maps", "ns", "a").await;
    let put = |text: &str| Change::Put(draft("a", text));
    let key = || Key::new("maps", "ns", "a");
    let full = store.commit(key(), Expect::Revision(2), put(&"x".repeat(4_000))).await.unwrap_err();
    assert_eq!(full.kind(), "full");
    let full = store.commit(key(), Expect::Absent, put(&"x".repeat(4_000))).await.unwrap_err();
    assert_eq!(full.kind(), "exists", "what is wrong with the request comes first");
    let changed = store.commit(key(), Expect::Revision(big.revision), put("newer")).await.unwrap();
    store
        .commit(key(), Expect::Revision(changed.revision), Change::Delete(draft("a", "")))
        .await
        .unwrap();
    store.commit(key(), Expect::Absent, put(&"x".repeat(3_000))).await.unwrap();
}
