//! Logs that were kept after their pods went: which runs of a job's replicas there are, and what they
//! printed.
//!
//! For those who can look into the agent's folder; everybody else asks the kubelet's API. Must not
//! know which pods still exist.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::place::component;
use super::record::{self, Tag};
use super::segments::{self, Segments};

/// Longest line that is read whole; the rest of a longer one is a line of its own.
const LINE_BYTES_MAX: usize = 1 << 20;

/// One run of a container of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRun {
    /// The replica, as `worker-0`; `pod` for a pod of no job.
    pub replica: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's UID.
    pub uid: String,
    /// The container.
    pub container: String,
    /// Which run of the container in that pod, counted from 0.
    pub restart: u32,
    /// When the first line that is still there was printed; none when there is no line.
    pub begins: Option<Timestamp>,
    log: PathBuf,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptLine {
    /// When it was printed.
    pub time: Timestamp,
    /// What was printed, without the line's end.
    pub text: Vec<u8>,
}

/// The runs of a job (or of a pod that belongs to none), the earliest first. `state` is the agent's
/// folder. A job that never ran here has none.
pub fn kept_runs(state: &Path, namespace: &str, job: &str) -> io::Result<Vec<KeptRun>> {
    let root = state.join("logs").join(component(namespace)).join(component(job));
    let mut runs = BTreeMap::new();
    for replica in folders(&root)? {
        for pod in folders(&replica)? {
            for container in folders(&pod)? {
                for entry in fs::read_dir(&container)? {
                    let path = entry?.path();
                    if let Some(run) = run(&replica, &pod, &container, &path) {
                        runs.insert(run.log.clone(), run);
                    }
                }
            }
        }
    }
    let mut runs: Vec<KeptRun> = runs.into_values().collect();
    runs.sort_by(|one, other| {
        (one.begins, &one.replica, one.restart).cmp(&(other.begins, &other.replica, other.restart))
    });
    Ok(runs)
}

fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn run(replica: &Path, pod: &Path, container: &Path, file: &Path) -> Option<KeptRun> {
    let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let restart = name(file)?.strip_suffix(".log")?.parse().ok()?;
    let folder = name(pod)?;
    let (pod, uid) = folder.rsplit_once('_')?;
    let mut run = KeptRun {
        replica: name(replica)?,
        pod: pod.to_owned(),
        uid: uid.to_owned(),
        container: name(container)?,
        restart,
        begins: None,
        log: file.to_owned(),
    };
    run.begins = run.lines().ok()?.next().and_then(Result::ok).map(|line| line.time);
    Some(run)
}

impl KeptRun {
    /// What it printed, from the first line on.
    pub fn lines(&self) -> io::Result<KeptLines> {
        let mut files: Vec<PathBuf> = Segments::of(&self.log)?
            .rotated
            .iter()
            .map(|number| segments::rotated(&self.log, *number))
            .collect();
        files.push(self.log.clone());
        files.reverse();
        Ok(KeptLines { files, open: None, partial: None })
    }
}

/// Lines of a run, one after the other.
#[derive(Debug)]
pub struct KeptLines {
    /// Files to come, the next one last.
    files: Vec<PathBuf>,
    open: Option<BufReader<File>>,
    /// A line that goes on in the next record.
    partial: Option<KeptLine>,
}

impl KeptLines {
    /// The next record's bytes without the line's end; none at the end of all files.
    fn record(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let Some(reader) = &mut self.open else {
                let Some(file) = self.files.pop() else { return Ok(None) };
                match File::open(&file) {
                    Ok(file) => self.open = Some(BufReader::new(file)),
                    // Removed to make room since the folder was looked at.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
                continue;
            };
            let mut bytes = Vec::new();
            reader.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut bytes)?;
            if bytes.is_empty() {
                self.open = None;
                continue;
            }
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            return Ok(Some(bytes));
        }
    }
}

impl Iterator for KeptLines {
    type Item = io::Result<KeptLine>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let bytes = match self.record() {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return self.partial.take().map(Ok),
                Err(error) => return Some(Err(error)),
            };
            let Some(record) = record::parse(&bytes) else { continue };
            let mut line = self.partial.take().unwrap_or_else(|| {
                let time = std::str::from_utf8(record.stamp.as_bytes()).unwrap_or_default();
                KeptLine { time: time.parse().unwrap_or_default(), text: Vec::new() }
            });
            line.text.extend_from_slice(record.text);
            if record.tag == Tag::Full || line.text.len() > LINE_BYTES_MAX {
                return Some(Ok(line));
            }
            self.partial = Some(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join("logs/team/mnist").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn runs_are_found_in_the_order_of_their_beginning() {
        let state = tempfile::tempdir().unwrap();
        let root = state.path();
        write(
            root,
            "worker-0/mnist-worker-0_b/tensorflow/0.log",
            "2026-01-01T00:00:09.000000000Z stdout F two\n",
        );
        write(
            root,
            "worker-0/mnist-worker-0_a/tensorflow/0.log",
            "2026-01-01T00:00:01.000000000Z stdout F one\n",
        );
        write(root, "worker-0/mnist-worker-0_a/tensorflow/notes.txt", "x");
        write(root, "ps-0/mnist-ps-0_c/tensorflow/0.log", "");
        let runs = kept_runs(root, "team", "mnist").unwrap();
        let found: Vec<(&str, &str)> =
            runs.iter().map(|run| (run.replica.as_str(), run.uid.as_str())).collect();
        assert_eq!(found, [("ps-0", "c"), ("worker-0", "a"), ("worker-0", "b")]);
        assert_eq!(kept_runs(root, "team", "other").unwrap(), []);
        assert_eq!(kept_runs(root, "..", "mnist").unwrap(), []);
    }

    #[test]
    fn lines_go_over_rotated_files_and_parts_are_joined() {
        let state = tempfile::tempdir().unwrap();
        let stamp = "2026-01-01T00:00:0";
        let folder = "worker-0/mnist-worker-0_a/tensorflow";
        write(
            state.path(),
            &format!("{folder}/0.log.1"),
            &format!("{stamp}1.000000000Z stdout F one\n{stamp}2.000000000Z stderr P tw"),
        );
        write(
            state.path(),
            &format!("{folder}/0.log"),
            &format!(
                "{stamp}3.000000000Z stderr F o\nno record\n{stamp}4.000000000Z stdout P end\n"
            ),
        );
        let runs = kept_runs(state.path(), "team", "mnist").unwrap();
        let lines: Vec<String> = runs[0]
            .lines()
            .unwrap()
            .map(|line| line.map(|line| String::from_utf8(line.text).unwrap()).unwrap())
            .collect();
        assert_eq!(lines, ["one", "two", "end"]);
    }
}
