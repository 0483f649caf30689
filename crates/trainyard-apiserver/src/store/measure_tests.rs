//! What the store costs, in numbers. Run by hand:
//! `cargo test --profile driver -p trainyard-apiserver --lib store::measure -- --ignored --nocapture`

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::tests::draft;
use super::*;

/// The size of a pod with its status.
const CONTENT: usize = 2600;

fn key(name: &str) -> Key {
    Key::new("pods", "default", name)
}

async fn fill(store: &Store, writers: usize, total: usize) -> Duration {
    let content: Arc<str> = "x".repeat(CONTENT).into();
    let begin = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (store, content) = (store.clone(), Arc::clone(&content));
            tokio::spawn(async move {
                for number in (writer..total).step_by(writers) {
                    let name = format!("pod-{number:06}");
                    let change = Change::Put(draft(&name, &content));
                    store.commit(key(&name), Expect::Absent, change).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    begin.elapsed()
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[expect(clippy::cast_precision_loss, reason = "numbers to look at")]
fn rate(count: usize, took: Duration) -> f64 {
    (count as f64 / took.as_secs_f64()).round()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn commits() {
    for (writers, total) in [(1, 3_000), (16, 20_000), (64, 20_000)] {
        let store = Store::memory(Limits::default());
        let took = fill(&store, writers, total).await;
        println!("memory, {writers} writers: {} commits/s", rate(total, took));
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Limits::default()).unwrap();
        let took = fill(&store, writers, total).await;
        println!("durable, {writers} writers: {} commits/s", rate(total, took));
        store.close().await;
        let files = std::fs::read_dir(folder.path()).unwrap();
        let len: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
        let begin = Instant::now();
        let store = Store::open(folder.path(), Limits::default()).unwrap();
        println!("  opened {total} objects, {} MiB, in {:?}", len >> 20, begin.elapsed());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn lists() {
    let store = Store::memory(Limits::default());
    let before = resident_kib();
    fill(&store, 1, 10_000).await;
    let held = resident_kib() - before;
    println!(
        "10000 objects of {} bytes: {} MiB",
        draft("", &"x".repeat(CONTENT)).len(),
        held >> 10
    );
    for query in [
        Query::default(),
        Query { filter: Some(&|_, _, object| object.meta.labels.len() == 1), ..Query::default() },
        Query { at: Some(5_001), ..Query::default() },
        Query { limit: 500, ..Query::default() },
    ] {
        let begin = Instant::now();
        let mut found = 0;
        for _ in 0..20 {
            found = store.list("pods", &query).unwrap().items.len();
        }
        println!("a list of {found} of 10000: {:?}", begin.elapsed() / 20);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn fan_out() {
    let store = Store::memory(Limits::default());
    let watchers: Vec<_> = (0..100)
        .map(|_| {
            let mut cursor = store.watch("pods", 1).unwrap();
            tokio::spawn(async move {
                let (mut seen, mut bytes) = (0, 0);
                while seen < 1_000 {
                    let events = cursor.next().await.unwrap();
                    seen += events.len();
                    bytes += events.iter().map(|event| event.object.text.len()).sum::<usize>();
                }
                bytes
            })
        })
        .collect();
    let begin = Instant::now();
    let wrote = fill(&store, 1, 1_000).await;
    let mut bytes = 0;
    for watcher in watchers {
        bytes += watcher.await.unwrap();
    }
    println!(
        "1000 events to 100 watchers: {:?} (writing {wrote:?}), {} MiB",
        begin.elapsed(),
        bytes >> 20
    );
}
