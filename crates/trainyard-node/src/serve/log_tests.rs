//! Logs through the API: queries, following, and clients that go away.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};

use super::fake::{FakeNode, FakePods};
use crate::logs::{Bounds, LiveLog, LogFile, LogSource, Stream, pump};

const SOON: Duration = Duration::from_secs(20);

struct Running {
    node: FakeNode,
    live: LiveLog,
    stdout: File,
    _folder: tempfile::TempDir,
}

/// A node with one container that runs and ran once before.
fn running() -> Running {
    let folder = tempfile::tempdir().unwrap();
    let node = FakeNode::new(FakePods::default());
    let before = folder.path().join("0.log");
    let mut log = LogFile::open(&before, Bounds::default()).unwrap();
    log.append(Stream::Stderr, b"crashed\n", jiff::Timestamp::UNIX_EPOCH);
    drop(log);
    let path = folder.path().join("1.log");
    let log = LogFile::open(&path, Bounds { file_bytes: 8192, files: 100 }).unwrap();
    let live = log.live();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    pump(reader, None, log).unwrap();
    let mut logs = node.pods.logs.lock().unwrap();
    let key = |previous| ("pod".to_owned(), "main".to_owned(), previous);
    logs.insert(key(true), LogSource { path: before, live: None });
    logs.insert(key(false), LogSource { path, live: Some(live.clone()) });
    drop(logs);
    Running { node, live, stdout: File::from(writer), _folder: folder }
}

/// Waits until a condition holds.
async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..400 {
        if condition() {
            return;
        }
        sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} never came true");
}

const PATH: &str = "/containerLogs/ns/pod/main";

#[tokio::test]
async fn logs_are_given_as_asked() {
    let mut container = running();
    let mut lines: Vec<String> = (0..1000).map(|number| format!("step {number}\n")).collect();
    container.stdout.write_all(lines.concat().as_bytes()).unwrap();
    drop(container.stdout);
    until("the end", || container.live.ended()).await;
    let node = &container.node;
    let (status, text) = node.ask("GET", PATH).await;
    assert_eq!(status, 200);
    assert!(text == lines.concat(), "over rotated files");
    let tail = lines.split_off(997).concat();
    assert_eq!(node.ask("GET", &format!("{PATH}?tailLines=3")).await, (200, tail.clone()));
    assert_eq!(node.ask("GET", &format!("{PATH}?tailLines=3&follow=true")).await, (200, tail));
    let limited = format!("{PATH}?limitBytes=10&sinceSeconds=3600");
    assert_eq!(node.ask("GET", &limited).await, (200, "step 0\nste".to_owned()));
    let before = format!("{PATH}?previous=true&timestamps=true");
    let stamped = "1970-01-01T00:00:00.000000000Z crashed\n".to_owned();
    assert_eq!(node.ask("GET", &before).await, (200, stamped));
}

#[tokio::test]
async fn a_log_that_was_removed_is_not_found() {
    let container = running();
    let key = ("pod".to_owned(), "main".to_owned(), true);
    let path = container.node.pods.logs.lock().unwrap()[&key].path.clone();
    std::fs::remove_file(path).unwrap();
    let (status, words) = container.node.ask("GET", &format!("{PATH}?previous=true")).await;
    assert_eq!(status, 404);
    assert!(words.contains("removed to make room"), "{words}");
}

#[tokio::test]
async fn a_follower_sees_lines_at_once_and_ends_with_the_container() {
    let mut container = running();
    let path = format!("{PATH}?follow=true");
    let answer = timeout(SOON, container.node.begin("GET", &path, &[])).await.unwrap();
    assert_eq!(answer.status(), 200, "the head comes before the first line");
    let mut body = answer.into_body();
    for line in ["one\n", "two\n"] {
        container.stdout.write_all(line.as_bytes()).unwrap();
        let frame = timeout(SOON, body.frame()).await.unwrap().unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), line);
    }
    drop(container.stdout);
    assert!(timeout(SOON, body.frame()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_client_that_goes_away_frees_its_follower() {
    let container = running();
    let path = format!("{PATH}?follow=true");
    let first = container.node.begin("GET", &path, &[]).await;
    let second = container.node.begin("GET", &path, &[]).await;
    until("two followers", || container.live.followers() == 2).await;
    // Nothing is printed: only the closed connection tells.
    drop(first);
    until("one follower", || container.live.followers() == 1).await;
    drop(second);
    until("no follower", || container.live.followers() == 0).await;
}

#[tokio::test]
async fn stopping_ends_followers() {
    let container = running();
    let path = format!("{PATH}?follow=true");
    let _answer = container.node.begin("GET", &path, &[]).await;
    until("a follower", || container.live.followers() == 1).await;
    container.node.stop.cancel();
    timeout(SOON, container.node.server).await.unwrap().unwrap().unwrap();
    assert_eq!(container.live.followers(), 0);
}
