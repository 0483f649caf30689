//! What a query gets, over one file and over rotated ones, finished or being written.

use std::fs;
use std::path::Path;

use jiff::Timestamp;

use super::read::{Progress, Reader};
use super::{Bounds, LiveLog, LogError, LogFile, LogQuery, Stream, Streams};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// Everything a query gets now, and how the reading ended.
fn all(path: &Path, live: Option<LiveLog>, query: &LogQuery) -> (String, Progress) {
    let mut reader = Reader::open(path, live, query).unwrap();
    let mut text = Vec::new();
    loop {
        let mut piece = Vec::new();
        let progress = reader.fill(&mut piece).unwrap();
        assert!(piece.len() < 80 << 10, "pieces are bounded");
        text.extend_from_slice(&piece);
        if progress != Progress::More {
            return (String::from_utf8_lossy(&text).into_owned(), progress);
        }
    }
}

struct Written {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    log: Option<LogFile>,
}

impl Written {
    /// Each piece is printed one second after the other.
    fn new(bounds: Bounds, pieces: &[(Stream, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut log = LogFile::open(&path, bounds).unwrap();
        for (second, (stream, bytes)) in (0..).zip(pieces) {
            log.append(*stream, bytes, at(second));
        }
        Self { _folder: folder, path, log: Some(log) }
    }

    fn live(&self) -> Option<LiveLog> {
        self.log.as_ref().map(LogFile::live)
    }

    fn end(&mut self) {
        if let Some(log) = self.log.take() {
            log.finish(at(1000));
        }
    }

    fn read(&self, query: &LogQuery) -> String {
        all(&self.path, self.live(), query).0
    }
}

const OUT: Stream = Stream::Stdout;
const ERR: Stream = Stream::Stderr;

fn tail(lines: u64) -> LogQuery {
    LogQuery { tail_lines: Some(lines), ..LogQuery::default() }
}

#[test]
fn queries_over_one_file() {
    let mut log = Written::new(
        Bounds::default(),
        &[(OUT, b"one\n"), (ERR, b"two\n"), (OUT, b"thr"), (OUT, b"ee\nfour\n"), (OUT, b"\n")],
    );
    let since = LogQuery { since: Some(at(1)), ..LogQuery::default() };
    let limit = LogQuery { limit_bytes: Some(6), ..LogQuery::default() };
    let stamps = LogQuery { timestamps: true, tail_lines: Some(3), ..LogQuery::default() };
    let cases = [
        (LogQuery::default(), "one\ntwo\nthree\nfour\n\n"),
        (tail(0), ""),
        (tail(1), "\n"),
        (tail(3), "three\nfour\n\n"),
        (tail(5), "one\ntwo\nthree\nfour\n\n"),
        (tail(u64::MAX), "one\ntwo\nthree\nfour\n\n"),
        (since.clone(), "two\nthree\nfour\n\n"),
        (LogQuery { since: Some(at(60)), ..LogQuery::default() }, ""),
        // The last lines are taken first, then those that are old are left out.
        (LogQuery { tail_lines: Some(4), since: Some(at(4)), ..LogQuery::default() }, "\n"),
        (limit, "one\ntw"),
        (LogQuery { limit_bytes: Some(1 << 40), ..since }, "two\nthree\nfour\n\n"),
        (
            stamps.clone(),
            "2027-01-15T08:00:03.000000000Z three\n\
             2027-01-15T08:00:03.000000000Z four\n\
             2027-01-15T08:00:04.000000000Z \n",
        ),
        (LogQuery { limit_bytes: Some(33), ..stamps }, "2027-01-15T08:00:03.000000000Z th"),
        (LogQuery { streams: Streams::Stderr, ..LogQuery::default() }, "two\n"),
        (LogQuery { streams: Streams::Stdout, ..tail(4) }, "one\nthree\nfour\n\n"),
        (LogQuery { streams: Streams::Stderr, ..tail(4) }, "two\n"),
    ];
    for (query, expected) in &cases {
        assert_eq!(log.read(query), *expected, "while it is written: {query:?}");
    }
    log.end();
    for (query, expected) in &cases {
        assert_eq!(log.read(query), *expected, "when it has ended: {query:?}");
        let follow = LogQuery { follow: true, ..query.clone() };
        assert_eq!(log.read(&follow), *expected, "followed when it has ended: {query:?}");
    }
}

#[test]
fn odd_bytes_and_long_lines_come_back_as_they_were_printed() {
    let wide = vec![b'x'; 100_000];
    let mut printed = b"\xff\xfe\0caf\xc3\r\n".to_vec();
    printed.extend_from_slice(&wide);
    printed.extend_from_slice(b"\nno end");
    let mut log = Written::new(Bounds::default(), &[(OUT, &printed)]);
    log.end();
    let mut reader = Reader::open(&log.path, None, &LogQuery::default()).unwrap();
    let mut text = Vec::new();
    loop {
        let mut piece = Vec::new();
        let progress = reader.fill(&mut piece).unwrap();
        text.append(&mut piece);
        if progress == Progress::Done {
            break;
        }
    }
    assert!(text == printed);

    let stamped = LogQuery { timestamps: true, ..tail(2) };
    let lines = log.read(&stamped);
    // One time for the long line although it takes several records, and the last has no end.
    assert_eq!(lines.matches("2027-01-15T").count(), 2);
    assert_eq!(lines.lines().next().unwrap().len(), 31 + 100_000);
    assert!(lines.ends_with("Z no end"), "{}", &lines[lines.len() - 50..]);
    assert_eq!(log.read(&tail(1)), "no end");
}

#[test]
fn queries_over_rotated_files() {
    let bounds = Bounds { file_bytes: 200, files: 4 };
    let lines: Vec<String> = (0..40).map(|number| format!("line {number}\n")).collect();
    let pieces: Vec<_> = lines.iter().map(|line| (OUT, line.as_bytes())).collect();
    let mut log = Written::new(bounds, &pieces);
    for ended in [false, true] {
        if ended {
            log.end();
        }
        let kept = log.read(&LogQuery::default());
        let kept: Vec<&str> = kept.split_inclusive('\n').collect();
        assert!((13..=16).contains(&kept.len()), "{kept:?}");
        assert_eq!(kept.concat(), lines[40 - kept.len()..].concat());
        for wanted in [1, 4, 5, 9, kept.len()] {
            let found = log.read(&tail(u64::try_from(wanted).unwrap()));
            assert_eq!(found, lines[40 - wanted..].concat());
        }
        assert_eq!(log.read(&tail(1000)), kept.concat());
        let since = LogQuery { since: Some(at(31)), ..LogQuery::default() };
        assert_eq!(log.read(&since), lines[31..].concat());
        let limit = LogQuery { limit_bytes: Some(30), ..LogQuery::default() };
        assert_eq!(log.read(&limit), kept.concat()[..30]);
    }
}

#[test]
fn a_line_goes_on_in_the_next_file() {
    let wide = "y".repeat(50_000);
    let bounds = Bounds { file_bytes: 17_000, files: 10 };
    let mut log =
        Written::new(bounds, &[(OUT, b"first\n"), (OUT, wide.as_bytes()), (OUT, b"\nlast\n")]);
    for ended in [false, true] {
        if ended {
            log.end();
        }
        assert!(log.read(&tail(2)) == format!("{wide}\nlast\n"));
        assert!(log.read(&tail(3)) == format!("first\n{wide}\nlast\n"));
    }
}

#[test]
fn who_does_not_follow_stops_where_the_log_was() {
    let mut log = Written::new(Bounds { file_bytes: 100, files: 9 }, &[(OUT, b"one\ntwo\n")]);
    let mut reader = Reader::open(&log.path, log.live(), &LogQuery::default()).unwrap();
    for second in 10..20 {
        log.log.as_mut().unwrap().append(OUT, b"later\n", at(second));
    }
    let mut text = Vec::new();
    assert_eq!(reader.fill(&mut text).unwrap(), Progress::Done);
    assert_eq!(text, b"one\ntwo\n");
}

#[test]
fn a_follower_reads_on_over_rotations_and_past_removed_files() {
    let bounds = Bounds { file_bytes: 100, files: 2 };
    let mut log = Written::new(bounds, &[(OUT, b"a\n")]);
    let follow = LogQuery { follow: true, ..LogQuery::default() };
    let mut reader = Reader::open(&log.path, log.live(), &follow).unwrap();
    let mut text = Vec::new();
    assert_eq!(reader.fill(&mut text).unwrap(), Progress::CaughtUp);
    for second in 1..4 {
        log.log.as_mut().unwrap().append(OUT, b"b\n", at(second));
        assert_eq!(reader.fill(&mut text).unwrap(), Progress::CaughtUp);
    }
    assert_eq!(text, b"a\nb\nb\nb\n");
    // Far behind: what was removed is missing, what is there comes in order.
    let pieces: Vec<String> = (0..20).map(|number| format!("c{number}\n")).collect();
    let pieces = pieces.concat();
    log.log.as_mut().unwrap().append(OUT, pieces.as_bytes(), at(9));
    text.clear();
    assert_eq!(reader.fill(&mut text).unwrap(), Progress::CaughtUp);
    let text = String::from_utf8(text).unwrap();
    assert!(text.ends_with("c18\nc19\n") && text.len() < pieces.len(), "{text}");
    let numbers = text.lines().map(|line| line[1..].parse::<u32>().unwrap());
    assert!(numbers.is_sorted_by(|before, after| before < after), "{text}");
    log.end();
    assert_eq!(reader.fill(&mut Vec::new()).unwrap(), Progress::Done);
}

#[test]
fn strange_files_are_read_as_far_as_they_make_sense() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("0.log");
    let stamp = "2026-11-15T09:30:00.000000000Z";
    let junk = "z".repeat(200_000);
    fs::write(&path, format!("junk\n{stamp} stdout F one\n{junk}\n\n{stamp} stderr F torn"))
        .unwrap();
    assert_eq!(all(&path, None, &LogQuery::default()), ("one\ntorn".to_owned(), Progress::Done));
    assert_eq!(all(&path, None, &tail(1)).0, "torn");
    assert_eq!(all(&path, None, &tail(2)).0, "one\ntorn");
    // Only rotated files are left of this one.
    let missing = folder.path().join("1.log");
    let error = Reader::open(&missing, None, &LogQuery::default()).unwrap_err();
    assert!(matches!(error, LogError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("1.log"), "{error}");
}
