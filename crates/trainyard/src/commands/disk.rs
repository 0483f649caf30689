//! `trainyard ls` and `trainyard clean`: what runs and environments take on disk, and freeing it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::{Value, json};
use trainyard_holder::sweep::sweep;
use trainyard_image::{Images, Settings, default_cache};

use crate::cluster;
use crate::failure::Failure;
use crate::output;
use crate::present::columns::Columns;
use crate::run::places::{self, Places};
use crate::run::words::{bytes, length};

/// Show what runs and environments take on disk
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Where runs keep their logs and claims
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Free what runs and environments take on disk
///
/// Removes the logs and claims of runs by name, of all of them with --all, and with --environments the
/// Python environments that nobody uses now. What is in use stays.
#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Runs, by the names that `trainyard ls` shows
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// All runs
    #[arg(long, conflicts_with = "runs")]
    all: bool,
    /// All environments that are not in use
    #[arg(long)]
    environments: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Where runs keep their logs and claims
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Something that takes room.
#[derive(Debug)]
struct Entry {
    kind: &'static str,
    name: String,
    path: PathBuf,
    bytes: u64,
    /// Of it, what claims hold.
    claims: u64,
    used: Option<SystemTime>,
}

impl Ls {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut entries = runs(&places::root(self.data_dir.as_deref())?)?;
        entries.extend(default_cache().map(|cache| environments(&cache)).unwrap_or_default());
        if self.json {
            return entries
                .iter()
                .try_for_each(|entry| output::print_json(&format!("{}\n", entry.json())));
        }
        if entries.is_empty() {
            output::say("neither runs nor environments are kept\n");
            return Ok(());
        }
        let mut rows =
            vec![["KIND", "NAME", "SIZE", "CLAIMS", "LAST USED"].map(str::to_owned).to_vec()];
        rows.extend(entries.iter().map(Entry::row));
        output::print(&Columns::default().lines(&rows))
    }
}

impl Entry {
    fn row(&self) -> Vec<String> {
        let age = self.used.and_then(|used| used.elapsed().ok());
        let claims = if self.claims > 0 { bytes(self.claims) } else { "-".to_owned() };
        let ago = age.map_or_else(|| "-".to_owned(), |age| format!("{} ago", length(age)));
        vec![self.kind.to_owned(), self.name.clone(), bytes(self.bytes), claims, ago]
    }

    fn json(&self) -> Value {
        let seconds = self.used.and_then(|used| used.elapsed().ok()).map(|age| age.as_secs());
        json!({"kind": self.kind, "name": self.name, "path": self.path, "bytes": self.bytes,
            "claimBytes": self.claims, "usedSecondsAgo": seconds})
    }
}

impl Clean {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if self.runs.is_empty() && !self.all && !self.environments {
            return Err(Failure::usage("nothing to remove is named").hint(
                "name runs, or say --all or --environments; `trainyard ls` shows what there is",
            ));
        }
        let root = places::root(self.data_dir.as_deref())?;
        let there = runs(&root)?;
        for name in &self.runs {
            if !there.iter().any(|entry| entry.name == *name) {
                return Err(Failure::usage(format!(
                    "there is no run {name:?} in {}",
                    root.display()
                ))
                .hint("`trainyard ls` shows what there is"));
            }
        }
        let wanted = |entry: &&Entry| self.all || self.runs.contains(&entry.name);
        let mut failures = Vec::new();
        for entry in there.iter().filter(wanted) {
            match self.remove(&root, entry) {
                Ok(()) => self.tell(entry)?,
                Err(failure) => failures.push(failure),
            }
        }
        if self.environments {
            self.sweep()?;
        }
        Failure::all(failures)
    }

    fn tell(&self, entry: &Entry) -> Result<(), Failure> {
        let done = if self.dry_run { "would be removed" } else { "removed" };
        output::print(&format!("{} {} {done} ({})\n", entry.kind, entry.name, bytes(entry.bytes)))
    }

    fn remove(&self, root: &Path, entry: &Entry) -> Result<(), Failure> {
        // A run that is under way holds its folder.
        let held = Places::open(root, &entry.name)?;
        if !self.dry_run {
            sweep(&entry.path).map_err(|error| {
                Failure::other(format!("removing {}", entry.path.display()), &error)
            })?;
        }
        drop(held);
        Ok(())
    }

    fn sweep(&self) -> Result<(), Failure> {
        let Some(cache) = default_cache() else { return Ok(()) };
        let there = environments(&cache);
        if self.dry_run {
            return there.iter().try_for_each(|entry| self.tell(entry));
        }
        cluster::run(async {
            let settings = Settings { cache, ..Settings::default() };
            let images = Images::new(settings).map_err(|error| Failure::usage(&error))?;
            let removed = images.sweep(Duration::ZERO).await;
            let gone = there.iter().filter(|entry| removed.contains(&entry.name));
            gone.into_iter().try_for_each(|entry| self.tell(entry))
        })
    }
}

fn runs(root: &Path) -> Result<Vec<Entry>, Failure> {
    let read = match fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read
            .map_err(|error| Failure::other(format!("looking into {}", root.display()), &error))?,
    };
    let mut entries = Vec::new();
    for entry in read.flatten().filter(|entry| entry.path().join("run.lock").exists()) {
        let path = entry.path();
        entries.push(Entry {
            kind: "run",
            name: entry.file_name().to_string_lossy().into_owned(),
            bytes: size(&path, &mut BTreeSet::new()),
            claims: size(&path.join("claims"), &mut BTreeSet::new()),
            used: modified(&path.join("run.lock")),
            path,
        });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn environments(cache: &Path) -> Vec<Entry> {
    let mut entries = Vec::new();
    // What environments share is counted with the first that has it.
    let mut seen = BTreeSet::new();
    let mut folders: Vec<fs::DirEntry> =
        fs::read_dir(cache).into_iter().flatten().flatten().collect();
    folders.sort_by_key(fs::DirEntry::file_name);
    for entry in folders {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if name.starts_with('.') || !path.is_dir() {
            continue;
        }
        let bytes = size(&path, &mut seen);
        let used = modified(&path);
        entries.push(Entry { kind: "environment", name, path, bytes, claims: 0, used });
    }
    entries
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// Bytes on disk below a path; a file with several names counts once.
fn size(path: &Path, seen: &mut BTreeSet<(u64, u64)>) -> u64 {
    let mut total = 0;
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_dir() {
            left.extend(
                fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()),
            );
        } else if meta.nlink() < 2 || seen.insert((meta.dev(), meta.ino())) {
            total += meta.blocks() * 512;
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn runs_are_found_measured_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::open(root.path(), "mnist").unwrap();
        let claim = places.claim("default", "model").unwrap();
        fs::write(claim.join("weights"), vec![1; 40_000]).unwrap();
        fs::hard_link(claim.join("weights"), claim.join("again")).unwrap();
        fs::create_dir(root.path().join("not-a-run")).unwrap();
        let entries = runs(root.path()).unwrap();
        assert_eq!(entries.len(), 1);
        assert!((40_000..80_000).contains(&entries[0].claims), "{entries:?}");
        let clean = Clean {
            runs: vec!["mnist".into()],
            all: false,
            environments: false,
            dry_run: false,
            data_dir: Some(root.path().to_owned()),
        };
        let held = clean.run().unwrap_err();
        assert!(held.to_string().contains("under way"), "{held}");
        drop(places);
        // A program leaves what it likes, as any user but root sees who cleans.
        fs::create_dir_all(claim.join("closed/in")).unwrap();
        fs::set_permissions(claim.join("closed"), fs::Permissions::from_mode(0o0)).unwrap();
        clean.run().unwrap();
        assert!(runs(root.path()).unwrap().is_empty());
        assert_eq!(clean.run().unwrap_err().exit_code(), 2);
    }
}
