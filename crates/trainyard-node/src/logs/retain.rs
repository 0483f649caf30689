//! Keeps all logs together within a bound: the oldest runs go first, those still written never.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::LogError;
use super::segments;

/// Folders between the root and a log file: namespace, job, replica, pod, container.
const DEPTH: usize = 5;

/// What was removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Trimmed {
    /// How many runs' logs.
    pub(crate) logs: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
}

#[derive(Debug)]
struct Run {
    newest: SystemTime,
    bytes: u64,
    files: Vec<PathBuf>,
}

/// Removes the oldest logs below `root` until all take no more than `most` bytes. `keep` says of a
/// current file's path that its log must stay. Reads many folders: not for async code.
pub(crate) fn trim(
    root: &Path,
    most: u64,
    keep: impl Fn(&Path) -> bool,
) -> Result<Trimmed, LogError> {
    let mut runs = BTreeMap::new();
    match collect(root, 0, &mut runs) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Trimmed::default()),
        Err(error) => return Err(LogError::io("looking for old logs in", root, error)),
    }
    let mut total: u64 = runs.values().map(|run| run.bytes).sum();
    let mut oldest: Vec<(PathBuf, Run)> = runs.into_iter().filter(|(log, _)| !keep(log)).collect();
    oldest.sort_by_key(|(_, run)| run.newest);
    let mut trimmed = Trimmed::default();
    for (log, run) in oldest {
        if total <= most {
            break;
        }
        for file in &run.files {
            fs::remove_file(file)
                .map_err(|error| LogError::io("removing the old log", file, error))?;
        }
        total -= run.bytes;
        trimmed.logs += 1;
        trimmed.bytes += run.bytes;
        // Folders that became empty; the others refuse.
        let mut folder = segments::folder(&log);
        while folder != root && fs::remove_dir(folder).is_ok() {
            folder = segments::folder(folder);
        }
    }
    Ok(trimmed)
}

fn collect(folder: &Path, depth: usize, runs: &mut BTreeMap<PathBuf, Run>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if depth < DEPTH && kind.is_dir() {
            match collect(&entry.path(), depth + 1, runs) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => continue,
            }
        }
        let Some(log) = log_of(&entry.path()).filter(|_| depth == DEPTH && kind.is_file()) else {
            continue;
        };
        let Ok(meta) = entry.metadata() else { continue };
        let run = runs.entry(log).or_insert_with(|| Run {
            newest: SystemTime::UNIX_EPOCH,
            bytes: 0,
            files: Vec::new(),
        });
        run.newest = run.newest.max(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH));
        run.bytes = run.bytes.saturating_add(meta.len());
        run.files.push(entry.path());
    }
    Ok(())
}

/// The current file's path for any file of a log: `3.log` for `3.log.7`.
fn log_of(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let (run, rest) = name.split_once(".log")?;
    let _is_a_run: u32 = run.parse().ok()?;
    if !rest.is_empty() {
        let _is_rotated: u64 = rest.strip_prefix('.')?.parse().ok()?;
    }
    Some(file.with_file_name(format!("{run}.log")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_runs_go_first_and_live_ones_stay() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("ns/job/worker-0/pod_uid/main");
        let other = root.path().join("ns/job/worker-1/pod_uid/main");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(&other).unwrap();
        let mut age = SystemTime::now() - Duration::from_hours(1);
        for path in [
            other.join("0.log"),
            folder.join("0.log.1"),
            folder.join("0.log"),
            folder.join("1.log"),
            folder.join("2.log"),
        ] {
            fs::write(&path, [b'x'; 100]).unwrap();
            fs::File::options().append(true).open(&path).unwrap().set_modified(age).unwrap();
            age += Duration::from_mins(1);
        }
        fs::write(folder.join("notes.txt"), [b'x'; 1000]).unwrap();
        fs::write(root.path().join("0.log"), [b'x'; 1000]).unwrap();

        assert_eq!(trim(root.path(), 500, |_| false).unwrap(), Trimmed::default());
        let live = folder.join("0.log");
        let trimmed = trim(root.path(), 350, |log| log == live).unwrap();
        assert_eq!(trimmed, Trimmed { logs: 2, bytes: 200 });
        // The other replica's folders were empty then.
        assert!(!root.path().join("ns/job/worker-1").exists());
        assert!(folder.join("0.log.1").exists() && !folder.join("1.log").exists());
        let trimmed = trim(root.path(), 0, |_| false).unwrap();
        assert_eq!(trimmed, Trimmed { logs: 2, bytes: 300 });
        // What is no log is left alone.
        assert!(folder.join("notes.txt").exists() && root.path().join("0.log").exists());
    }

    #[test]
    fn no_logs_at_all_are_within_every_bound() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(trim(&root.path().join("none"), 0, |_| false).unwrap(), Trimmed::default());
    }
}
