//! What is on disk: opening again, folders that cannot be opened, full disks, and power cuts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;

use super::disk::platter::{Platter, Room};
use super::tests::{content, create, draft};
use super::*;

/// The log of a store that never made a snapshot.
const LOG: &str = "log-00000000000000000002";

fn open(folder: &Path) -> Result<Store, OpenError> {
    Store::open(folder, Limits::default())
}

#[tokio::test]
async fn an_opened_store_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("made").join("on the way");
    let store = open(&folder).unwrap();
    assert_eq!(store.revision(), 1);
    let kept = create(&store, "pods", "ns", "kept").await;
    create(&store, "jobs", "ns", "dropped").await;
    create(&store, "jobs.more", "ns", "not dropped").await;
    let gone = create(&store, "pods", "ns", "gone").await;
    let delete = Change::Delete(draft("gone", ""));
    let key = Key::new("pods", "ns", "gone");
    store.commit(key, Expect::Revision(gone.revision), delete).await.unwrap();
    store.drop_storage("jobs").await.unwrap();
    assert_eq!(store.revision(), 7);
    store.close().await;
    store.close().await;
    let change = Change::Put(draft("late", ""));
    let late = store.commit(Key::new("pods", "ns", "late"), Expect::Absent, change).await;
    assert_eq!(late.unwrap_err().kind(), "closed");

    let store = open(&folder).unwrap();
    assert_eq!(store.revision(), 7);
    assert_eq!(store.list("pods", &Query::default()).unwrap().items, [kept]);
    let names: Vec<_> = store.storages().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["jobs.more", "pods"]);
    for storage in ["pods", "jobs", "never seen"] {
        assert_eq!(store.watch(storage, 6).unwrap_err(), Compacted { oldest: 7 });
        assert!(store.watch(storage, 7).is_ok());
    }
    let old = Query { at: Some(6), ..Query::default() };
    assert_eq!(store.list("pods", &old), Err(ListError::Compacted { oldest: 7 }));
    assert_eq!(create(&store, "pods", "ns", "next").await.revision, 8);
}

#[tokio::test]
async fn dropping_all_clones_frees_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    create(&store, "pods", "ns", "a").await;
    drop(store.clone());
    drop(store);
    for _ in 0..500 {
        match open(folder.path()) {
            Ok(store) => return assert_eq!(store.revision(), 2),
            Err(error) => assert_eq!(error.kind(), "held"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("still held");
}

#[tokio::test]
async fn a_refusal_within_a_batch_rests_on_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    // All are asked for before the first is answered; each sees the one before.
    let put = |text: &str, expect| {
        store.commit(Key::new("pods", "ns", "a"), expect, Change::Put(draft("a", text)))
    };
    let (first, second, third) = tokio::join!(
        put("1", Expect::Absent),
        put("2", Expect::Absent),
        put("3", Expect::Revision(2))
    );
    let first = first.unwrap();
    assert_eq!(first.revision, 2);
    assert!(matches!(second, Err(CommitError::Exists(object)) if object == first));
    assert_eq!(third.unwrap().revision, 3);
    assert_eq!(content(&store.get("pods", "ns", "a").unwrap()), "3");
}

#[tokio::test]
async fn a_folder_has_one_holder() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let error = open(folder.path()).unwrap_err();
    let me = std::process::id();
    assert!(matches!(error, OpenError::Held { pid: Some(pid), .. } if pid == me));
    let text = error.to_string();
    assert!(
        text.ends_with(&format!(
            "is in use by process {me}; stop that one first or choose another folder"
        )),
        "{text}"
    );
    store.close().await;
    open(folder.path()).unwrap();
}

#[test]
fn only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("data");
    let _store = open(&inner).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    assert_eq!(mode(&inner.join(LOG)), 0o600);
}

#[test]
fn what_is_no_log_is_said_to_be_damaged() {
    for garbage in [String::new(), "x".to_owned(), "not a log\n".repeat(10_000)] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOG), &garbage).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert_eq!(error.kind(), "corrupt", "{error}");
        assert_eq!(fs::read_to_string(folder.path().join(LOG)).unwrap(), garbage);
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = open(&folder.path().join("file").join("inside")).unwrap_err();
    assert_eq!(error.kind(), "io", "{error}");
}

#[test]
fn files_of_others_in_the_folder_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["log-1", "log-0000000000000000000x", "snapshot-", "notes.new", "log.new"];
    for name in names {
        fs::write(folder.path().join(name), "mine").unwrap();
    }
    fs::write(folder.path().join(format!("{LOG}.new")), "left behind").unwrap();
    let _store = open(folder.path()).unwrap();
    for name in names {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), "mine");
    }
    assert!(!folder.path().join(format!("{LOG}.new")).exists());
}

#[tokio::test]
async fn a_store_that_is_written_to_for_long_does_not_grow_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let real = |name: &str| -> PathBuf { folder.path().join(name) };
    let store = open(folder.path()).unwrap();
    let mut object = create(&store, "pods", "ns", "a").await;
    let text = "x".repeat(1 << 20);
    let mut snapshots = 0;
    for round in 0..150 {
        let change = Change::Put(draft("a", &format!("{round} {text}")));
        let key = Key::new("pods", "ns", "a");
        object = store.commit(key, Expect::Revision(object.revision), change).await.unwrap();
        let entries = fs::read_dir(folder.path()).unwrap();
        let held: u64 =
            entries.map(|entry| entry.unwrap().metadata().map_or(0, |it| it.len())).sum();
        // Twice what makes a snapshot due, for the time in which one is made.
        assert!(held < 90 << 20, "{held} bytes in round {round}");
        snapshots += usize::from(!real(LOG).exists());
    }
    assert!(snapshots > 0);
    let before = store.list("pods", &Query::default()).unwrap();
    store.close().await;
    let store = open(folder.path()).unwrap();
    assert_eq!(store.list("pods", &Query::default()).unwrap(), before);
    assert_eq!(store.revision(), 152);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Damage is told or not noticed; it never takes the process down.
    #[test]
    fn damage_does_not_panic(places in prop::collection::vec((any::<u32>(), any::<u8>()), 1..40)) {
        let bytes = {
            let folder = tempfile::tempdir().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let store = open(folder.path()).unwrap();
                for number in 0..8 {
                    create(&store, "pods", "ns", &format!("pod-{number}")).await;
                }
                store.close().await;
            });
            fs::read(folder.path().join(LOG)).unwrap()
        };
        let mut damaged = bytes;
        // Where there is something, rather than in the empty rest of the file.
        let len = damaged.iter().rposition(|byte| *byte != 0).unwrap_or(0) + 1;
        for (place, byte) in places {
            damaged[place as usize % len] ^= byte;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(LOG), damaged).unwrap();
        if let Err(error) = open(folder.path()) {
            prop_assert!(["corrupt", "other-format"].contains(&error.kind()), "{}", error);
        }
    }
}

fn on_platter(folder: &Path, platter: &Platter) -> Result<Store, OpenError> {
    let (disk, loaded) = Disk::open_in(folder, Arc::new(platter.clone()), 40_000)?;
    Store::on(folder, Limits::default(), disk, loaded)
}

#[tokio::test]
async fn a_full_disk_refuses_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let platter = Platter::default();
    let store = on_platter(folder.path(), &platter).unwrap();
    let kept = create(&store, "pods", "ns", "kept").await;
    let mut cursor = store.watch("pods", kept.revision).unwrap();
    for room in [Room::NoGrowth, Room::NoGrowth, Room::Half] {
        platter.set_room(room);
        for _ in 0..3 {
            let before = store.revision();
            let change = Change::Put(draft("more", &"x".repeat(50 << 10)));
            let key = Key::new("pods", "ns", &format!("more-{before}"));
            let error = store.commit(key, Expect::Absent, change).await.unwrap_err();
            assert_eq!(error.kind(), "full", "{error}");
            assert_eq!(store.revision(), before);
            assert_eq!(store.get("pods", "ns", "kept").as_ref(), Some(&kept));
        }
        platter.set_room(Room::Free);
        let revision = store.revision();
        let more = create(&store, "pods", "ns", &format!("more-{revision}")).await;
        assert_eq!(more.revision, revision + 1);
        assert_eq!(cursor.next().await.unwrap()[0].object, more);
    }
    let before = store.list("pods", &Query::default()).unwrap();
    store.close().await;
    let store = on_platter(folder.path(), &platter).unwrap();
    assert_eq!(store.list("pods", &Query::default()).unwrap(), before);
}

/// What may be found of each object: the acknowledged text, then those of writes without an answer.
type Known = BTreeMap<String, Vec<Option<String>>>;

/// Writes several objects at a time until the power is gone.
async fn write_until_dark(store: &Store) -> Known {
    let mut known = Known::new();
    for round in 0..10_000_u32 {
        let count = 1 + round % 7;
        let wishes = (0..count).map(|number| {
            let name = format!("pod-{number}");
            let current = store.get("pods", "ns", &name).map(|object| object.revision);
            let expect = current.map_or(Expect::Absent, Expect::Revision);
            let text = format!("{round} {}", "x".repeat((round * 37 % 5000) as usize));
            let delete = (round + number) % 5 == 3 && current.is_some();
            let draft = draft(&name, &text);
            let change = if delete { Change::Delete(draft) } else { Change::Put(draft) };
            let text = (!delete).then_some(text);
            async move {
                (store.commit(Key::new("pods", "ns", &name), expect, change).await, name, text)
            }
        });
        let mut dark = false;
        for (result, name, text) in futures::future::join_all(wishes).await {
            let known = known.entry(name).or_insert_with(|| vec![None]);
            if let Err(error) = result {
                assert_eq!(error.kind(), "closed", "{error}");
                known.push(text);
                dark = true;
            } else {
                *known = vec![text];
            }
        }
        if dark {
            return known;
        }
    }
    panic!("the power never went");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_power_cut_loses_nothing_acknowledged(fuse in 1..900_u32, chance in 1..u64::MAX) {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let platter = Platter::default();
            let store = on_platter(folder.path(), &platter).unwrap();
            platter.set_fuse(fuse);
            let known = write_until_dark(&store).await;
            let revision = store.revision();
            store.close().await;
            let store = on_platter(folder.path(), &platter.after_the_cut(chance)).unwrap();
            assert!(store.revision() >= revision);
            for (name, known) in known {
                let found = store.get("pods", "ns", &name).map(|object| content(&object));
                assert!(known.contains(&found), "{name}");
                // All of a batch or nothing of it.
                assert!(store.revision() > revision || found == known[0], "{name}");
            }
            create(&store, "pods", "ns", "after").await;
        });
    }
}
