//! `kill -9` under write load, again and again on the same folder.
//!
//! The test starts itself as another process, which writes and says on its standard output what was
//! acknowledged, until it is killed.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::tests::{content, draft};
use super::*;

/// How often it is killed, usually and where `TRAINYARD_LONG` says that there is much time.
const ROUNDS: [u64; 2] = [20, 200];
const WRITERS: usize = 8;
const FOLDER: &str = "TRAINYARD_STORE_TO_BE_KILLED_IN";

/// Writes until killed. Each writer has objects of its own: it creates, changes and deletes them in
/// turn, and says before each write what it is about to do and after it that it is done.
#[tokio::test]
#[ignore = "the process that is killed, started by the test below"]
async fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let store = Store::open(Path::new(&folder), Limits::default()).unwrap();
    say(&format!("opened {}", store.revision()));
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write_on(store.clone(), writer)));
    futures::future::join_all(writers).await;
}

fn say(line: &str) {
    // One write, so that no line is cut.
    let _ = std::io::stdout().lock().write_all(format!("\nstore {line}\n").as_bytes());
}

async fn write_on(store: Store, writer: usize) {
    for number in 0_u64.. {
        let name = format!("{writer}-{}", number % 3);
        let current = store.get("pods", "ns", &name);
        let revision = current.as_ref().map(|object| object.revision);
        let expect = revision.map_or(Expect::Absent, Expect::Revision);
        let delete = revision.is_some() && number % 4 == 0;
        let text = if delete { "-".to_owned() } else { format!("{}-{number}", std::process::id()) };
        let draft = draft(&name, &text);
        let change = if delete { Change::Delete(draft) } else { Change::Put(draft) };
        say(&format!("trying {name} {text}"));
        let key = Key::new("pods", "ns", &name);
        let object = store.commit(key, expect, change).await.unwrap();
        say(&format!("done {name} {text} {}", object.revision));
    }
}

/// What may be found of an object: the last acknowledged text, or the one under way; `None` is that
/// there is no object.
type Known = Vec<Option<String>>;

#[derive(Debug, Default)]
struct Witness {
    objects: BTreeMap<String, Known>,
    revision: u64,
}

impl Witness {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let text = |text: &str| (text != "-").then(|| text.to_owned());
        match words.as_slice() {
            ["store", "opened", revision] => {
                let revision: u64 = revision.parse().unwrap();
                assert!(revision >= self.revision, "opened at {revision} after {}", self.revision);
                self.revision = revision;
            }
            ["store", "trying", name, content] => {
                let known = self.objects.entry((*name).to_owned()).or_insert_with(|| vec![None]);
                known.push(text(content));
            }
            ["store", "done", name, content, revision] => {
                self.objects.insert((*name).to_owned(), vec![text(content)]);
                self.revision = self.revision.max(revision.parse().unwrap());
            }
            _ => {}
        }
    }

    /// Holds the store to what was heard, and takes over what it holds.
    fn check(&mut self, store: &Store) {
        assert!(store.revision() >= self.revision, "{} after {}", store.revision(), self.revision);
        self.revision = store.revision();
        for (name, known) in &mut self.objects {
            let found = store.get("pods", "ns", name).map(|object| content(&object));
            assert!(known.contains(&found), "{name}: {known:?}, found {found:?}");
            *known = vec![found];
        }
        let held = store.list("pods", &Query::default()).unwrap().items.len();
        let wanted = self.objects.values().filter(|known| known[0].is_some()).count();
        assert_eq!(held, wanted);
    }
}

#[tokio::test]
async fn no_acknowledged_write_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut witness = Witness::default();
    let mut writes = 0;
    let rounds = ROUNDS[usize::from(std::env::var_os("TRAINYARD_LONG").is_some())];
    for round in 0..rounds {
        let mut victim = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::kill_tests::victim", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(victim.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("store opened") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "it ended by itself");
        }
        witness.hear(line.trim_end());
        let pid = victim.id();
        let listener = std::thread::spawn(move || {
            output.lines().map_while(Result::ok).collect::<Vec<String>>()
        });
        std::thread::sleep(Duration::from_millis(round * 7 % 40));
        victim.kill().unwrap();
        victim.wait().unwrap();
        for line in listener.join().unwrap() {
            writes += u64::from(line.starts_with("store done"));
            witness.hear(&line);
        }
        let store = Store::open(folder.path(), Limits::default())
            .unwrap_or_else(|error| panic!("round {round}, process {pid}: {error}"));
        witness.check(&store);
        store.close().await;
    }
    println!("{rounds} rounds, {writes} acknowledged writes, revision {}", witness.revision);
    assert!(writes > rounds, "only {writes} writes were acknowledged: that is no load");
}
