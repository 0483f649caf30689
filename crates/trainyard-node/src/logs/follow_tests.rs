//! Following a log from async code: woken by writes, over rotations, until the container has ended.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use tokio::time::timeout;

use super::{Bounds, LiveLog, LogFile, LogQuery, LogSource, pump, read};

struct Container {
    _folder: tempfile::TempDir,
    source: LogSource,
    live: LiveLog,
    stdout: File,
}

impl Container {
    fn new(bounds: Bounds) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let log = LogFile::open(&path, bounds).unwrap();
        let live = log.live();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        pump(reader, None, log).unwrap();
        let source = LogSource { path, live: Some(live.clone()) };
        Self { _folder: folder, source, live, stdout: File::from(writer) }
    }
}

fn follow() -> LogQuery {
    LogQuery { follow: true, ..LogQuery::default() }
}

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn followers_get_every_line_in_order_over_rotations() {
    // Files so small that hundreds come and go, kept long enough for a slow reader.
    let mut container = Container::new(Bounds { file_bytes: 4000, files: 500 });
    let streams = [
        read(container.source.clone(), follow()).await.unwrap(),
        read(container.source.clone(), follow()).await.unwrap(),
    ];
    let readers = streams.map(|stream| {
        tokio::spawn(async move {
            let pieces: Vec<_> = stream.try_collect().await.unwrap();
            pieces.concat()
        })
    });
    let lines: Vec<String> = (0..20_000).map(|number| format!("step {number}\n")).collect();
    let expected = lines.concat();
    let copy = expected.clone();
    let printer = tokio::task::spawn_blocking(move || {
        for piece in copy.as_bytes().chunks(777) {
            container.stdout.write_all(piece).unwrap();
        }
    });
    printer.await.unwrap();
    for reader in readers {
        let text = timeout(SOON, reader).await.unwrap().unwrap();
        assert!(text == expected.as_bytes(), "{} bytes of {}", text.len(), expected.len());
    }
}

#[tokio::test]
async fn a_follower_is_woken_by_a_line_and_ends_with_the_container() {
    let mut container = Container::new(Bounds::default());
    container.stdout.write_all(b"old 1\nold 2\n").unwrap();
    let mut growth = container.live.watch();
    timeout(SOON, growth.wait_for(|mark| mark.size > 0)).await.unwrap().unwrap();
    drop(growth);
    let query = LogQuery { tail_lines: Some(1), ..follow() };
    let mut stream = Box::pin(read(container.source.clone(), query).await.unwrap());
    assert_eq!(timeout(SOON, stream.next()).await.unwrap().unwrap().unwrap(), "old 2\n");
    let quiet = timeout(Duration::from_millis(50), stream.next()).await;
    assert!(quiet.is_err(), "nothing was printed");
    container.stdout.write_all(b"new\n").unwrap();
    assert_eq!(timeout(SOON, stream.next()).await.unwrap().unwrap().unwrap(), "new\n");
    drop(container.stdout);
    assert!(timeout(SOON, stream.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_limit_ends_a_follower() {
    let mut container = Container::new(Bounds::default());
    let query = LogQuery { limit_bytes: Some(5), ..follow() };
    let mut stream = Box::pin(read(container.source.clone(), query).await.unwrap());
    container.stdout.write_all(b"abc\ndef\n").unwrap();
    assert_eq!(timeout(SOON, stream.next()).await.unwrap().unwrap().unwrap(), "abc\nd");
    assert!(timeout(SOON, stream.next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_follower_that_is_dropped_is_gone() {
    let container = Container::new(Bounds::default());
    let mut stream = Box::pin(read(container.source.clone(), follow()).await.unwrap());
    assert!(timeout(Duration::from_millis(50), stream.next()).await.is_err());
    assert_eq!(container.live.followers(), 1);
    drop(stream);
    assert_eq!(container.live.followers(), 0);
}
