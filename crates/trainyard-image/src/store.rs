//! Environments on disk. One is used only when its marker is there, which is written last; a folder
//! without a marker is the rest of a build that was broken off. Knows nothing of how one is made.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::demand::{Demand, FORMAT, Recipe};
use crate::error::ImageError;
use crate::releases;
use crate::settle;
use crate::version::Python;

const MARKER: &str = ".complete";
const LOCKS: &str = ".locks";
/// What is fetched while environments are made, a folder for each.
const WORK: &str = ".work";

/// What the marker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// [`FORMAT`] when it was made.
    pub(crate) format: u32,
    pub(crate) recipe: Recipe,
    pub(crate) python: Python,
    /// Where its Python is installed.
    pub(crate) base_prefix: PathBuf,
    /// What made it.
    pub(crate) made_by: String,
    /// Where its Python leads, as it was before any package was installed: a package may have laid links
    /// to anywhere since. None: one that was made before this was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prefixes: Option<Vec<PathBuf>>,
}

/// An environment that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) dir: PathBuf,
    pub(crate) marker: Marker,
}

/// The folder of environments.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

/// Held while an environment is made, used or removed; released when dropped or when the process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough while another thread is starting a process: until that one
        // runs its own program it has the file open too.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Notes that what it stands for is used now.
    pub(crate) fn touch(&self) {
        // Where it cannot be noted, others may remove it when this process has ended.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

impl Store {
    pub(crate) fn open(root: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(root.join(LOCKS))?;
        // Paths inside environments are absolute; a link on the way would not exist in a container.
        Ok(Self { root: root.canonicalize()? })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What is needed while an environment is made, and gone afterwards.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.root.join(WORK).join(name)
    }

    /// The environment in this folder, if it is whole and its Python is still there.
    pub(crate) fn read(&self, name: &str) -> Option<Environment> {
        let dir = self.dir(name);
        let marker = std::fs::read(dir.join(MARKER)).ok()?;
        let marker: Marker = serde_json::from_slice(&marker).ok()?;
        let usable = marker.format == FORMAT && dir.join("bin/python").exists();
        usable.then_some(Environment { dir, marker })
    }

    /// The names of all folders, whole or not.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    /// The best environment that answers a demand: the newest release, on the best Python.
    pub(crate) fn best(&self, demand: &Demand) -> Option<Environment> {
        self.names()
            .iter()
            .filter_map(|name| self.read(name))
            .filter(|found| demand.accepts(&found.marker.recipe))
            .max_by_key(|found| {
                let Marker { recipe, python, .. } = &found.marker;
                let far = std::cmp::Reverse(releases::preference(&recipe.version, *python));
                (recipe.version.clone(), far, *python)
            })
    }

    fn lock_path(&self, name: &str) -> PathBuf {
        self.root.join(LOCKS).join(format!("{name}.lock"))
    }

    fn lock_file(&self, name: &str) -> std::io::Result<File> {
        File::options().create(true).truncate(false).write(true).open(self.lock_path(name))
    }

    /// Waits until no other process makes this environment.
    pub(crate) async fn lock(
        &self,
        name: &str,
        waiting: &mut (dyn FnMut() + Send),
    ) -> Result<Lock, ImageError> {
        let path = self.lock_path(name);
        let file = self.lock_file(name).map_err(ImageError::files("opening", &path))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { file }),
                Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(error)) => {
                    return Err(ImageError::files("locking", &path)(error));
                }
            }
            if !told {
                waiting();
                told = true;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Takes a folder that nobody has used for so long, that nobody uses and that is not being made: it
    /// is nobody else's until the locks are dropped.
    pub(crate) fn idle(&self, name: &str, since: Duration) -> Option<[Lock; 2]> {
        let last = self.last_use(name)?;
        if last.elapsed().ok()? < since {
            return None;
        }
        let used = File::options().write(true).open(self.use_file(name)).ok()?;
        used.try_lock().ok()?;
        let used = Lock { file: used };
        let made = self.lock_file(name).ok()?;
        made.try_lock().ok()?;
        let made = Lock { file: made };
        // Somebody may have come and gone meanwhile.
        (self.last_use(name)? == last).then_some([used, made])
    }

    /// When a folder was last used; of one that nobody has ever asked for, that is now.
    fn last_use(&self, name: &str) -> Option<SystemTime> {
        let path = self.use_file(name);
        match std::fs::metadata(&path) {
            Ok(meta) => meta.modified().ok(),
            Err(_) => File::create(path).ok()?.metadata().ok()?.modified().ok(),
        }
    }

    fn use_file(&self, name: &str) -> PathBuf {
        self.root.join(LOCKS).join(format!("{name}.use"))
    }

    /// Notes that an environment is used from now on, by this process until the lock is dropped. None:
    /// it is being removed.
    pub(crate) fn hold(&self, name: &str) -> std::io::Result<Option<Lock>> {
        let path = self.use_file(name);
        // Whoever may not write here may still say that it reads.
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.or_else(|_| File::open(&path))?;
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        let lock = Lock { file };
        lock.touch();
        Ok(self.read(name).map(|_| lock))
    }

    /// Removes what is in a folder, the marker first, so that a removal broken off leaves nothing usable.
    pub(crate) async fn clear(&self, name: &str) -> Result<(), ImageError> {
        let dir = self.dir(name);
        let gone = |result: std::io::Result<()>| match result {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        let marker = gone(tokio::fs::remove_file(dir.join(MARKER)).await);
        marker.and(gone(remove_all(&dir).await)).map_err(ImageError::files("removing", &dir))?;
        self.clear_work(name).await
    }

    /// Removes what was needed for making one.
    pub(crate) async fn clear_work(&self, name: &str) -> Result<(), ImageError> {
        let work = self.work(name);
        match remove_all(&work).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ImageError::files("removing", &work)(error))
            }
            _ => Ok(()),
        }
    }

    /// Declares an environment whole, once all of it is on the disk: a marker must not outlive its files
    /// when the power fails.
    pub(crate) async fn complete(
        &self,
        name: &str,
        marker: Marker,
    ) -> Result<Environment, ImageError> {
        let dir = self.dir(name);
        let synced = dir.clone();
        tokio::task::spawn_blocking(move || Ok(rustix::fs::syncfs(File::open(synced)?)?))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(ImageError::files("writing", &dir))?;
        let path = dir.join(MARKER);
        let fresh = dir.join(".complete.new");
        // A package may have laid a link there.
        let _ = tokio::fs::remove_file(&fresh).await;
        let text = serde_json::to_vec_pretty(&marker)
            .map_err(|error| ImageError::files("writing", &path)(error.into()))?;
        write_new(&fresh, &text).await.map_err(ImageError::files("writing", &fresh))?;
        tokio::fs::rename(&fresh, &path).await.map_err(ImageError::files("writing", &path))?;
        Ok(Environment { dir, marker })
    }
}

/// Removes a folder, whatever a package has made of it.
async fn remove_all(dir: &Path) -> std::io::Result<()> {
    let folder = dir.to_owned();
    let removed = tokio::task::spawn_blocking(move || {
        if folder.symlink_metadata()?.is_dir() {
            settle::settle(&folder)?;
        }
        std::fs::remove_dir_all(folder)
    });
    removed.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

/// Writes a file that must not be there yet, not even as a link.
async fn write_new(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use tokio::io::AsyncWriteExt as _;
    let mut file = tokio::fs::File::options().write(true).create_new(true).open(path).await?;
    file.write_all(text).await?;
    file.flush().await
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::demand::tests::tensorflow;
    use crate::interpreters::tests::interpreter;
    use crate::version::Version;

    pub(crate) struct Kept {
        _dir: tempfile::TempDir,
        pub(crate) store: Store,
    }

    pub(crate) fn empty() -> Kept {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("envs")).unwrap();
        Kept { _dir: dir, store }
    }

    pub(crate) async fn add(
        store: &Store,
        version: &str,
        minor: u32,
        requirements: &[&str],
    ) -> String {
        let demand = tensorflow(version, requirements);
        let python = interpreter(minor, 0);
        let recipe = demand.recipe(&Version::parse(version).unwrap(), std::env::consts::ARCH);
        let name = recipe.name(&python);
        std::fs::create_dir_all(store.dir(&name).join("bin")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", store.dir(&name).join("bin/python")).unwrap();
        let marker = Marker {
            format: FORMAT,
            recipe,
            python: python.version,
            base_prefix: python.base_prefix,
            made_by: "test".to_owned(),
            prefixes: None,
        };
        store.complete(&name, marker).await.unwrap();
        name
    }

    #[tokio::test]
    async fn the_newest_that_fits_is_best() {
        let kept = empty();
        let store = &kept.store;
        assert_eq!(store.best(&tensorflow("latest", &[])), None);
        let old = add(store, "2.9.1", 10, &[]).await;
        let new = add(store, "2.16.1", 9, &[]).await;
        let same_on_better_python = add(store, "2.16.1", 11, &[]).await;
        add(store, "2.17.0", 11, &["six"]).await;
        let best = |tag| store.best(&tensorflow(tag, &[])).map(|found| found.dir);
        assert_eq!(best("latest"), Some(store.dir(&same_on_better_python)));
        assert_ne!(new, same_on_better_python);
        assert_eq!(best("2.9"), Some(store.dir(&old)));
        assert_eq!(best("2.17.0"), None);
    }

    #[tokio::test]
    async fn links_that_a_package_laid_are_not_written_through() {
        let kept = empty();
        let (store, outside) = (&kept.store, kept.store.root().join("outside"));
        std::fs::write(&outside, "own").unwrap();
        for name in [".complete.new", MARKER] {
            let demand = tensorflow("2.16.1", &[]);
            let recipe = demand.recipe(&Version::parse("2.16.1").unwrap(), std::env::consts::ARCH);
            let dir = store.dir(&recipe.name(&interpreter(11, 0)));
            std::fs::create_dir_all(&dir).unwrap();
            std::os::unix::fs::symlink(&outside, dir.join(name)).unwrap();
            add(store, "2.16.1", 11, &[]).await;
            assert_eq!(std::fs::read_to_string(&outside).unwrap(), "own", "{name}");
            std::fs::remove_dir_all(dir).unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_not_whole_is_not_used() {
        let kept = empty();
        let store = &kept.store;
        let name = add(store, "2.16.1", 11, &[]).await;
        std::fs::remove_file(store.dir(&name).join("bin/python")).unwrap();
        assert_eq!(store.read(&name), None, "its Python is gone");
        let name = add(store, "2.17.0", 11, &[]).await;
        std::fs::write(store.dir(&name).join(MARKER), "{").unwrap();
        assert_eq!(store.best(&tensorflow("latest", &[])), None);
        store.clear(&name).await.unwrap();
        assert!(!store.dir(&name).exists());
        store.clear(&name).await.unwrap();
    }

    pub(crate) fn age(store: &Store, name: &str, age: Duration) {
        let file = File::options().write(true).open(store.use_file(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn unused(store: &Store, since: Duration) -> Vec<String> {
        let mut names = store.names();
        names.sort();
        names.retain(|name| store.idle(name, since).is_some());
        names
    }

    #[tokio::test]
    async fn only_what_nobody_uses_is_unused() {
        let kept = empty();
        let store = &kept.store;
        let (day, none) = (Duration::from_hours(24), Vec::<String>::new());
        let name = add(store, "2.16.1", 11, &[]).await;
        let broken = "broken-off".to_owned();
        std::fs::create_dir(store.dir(&broken)).unwrap();
        // It counts from when it is first seen, however old it is.
        assert_eq!(unused(store, day), none);
        for name in [&name, &broken] {
            age(store, name, 2 * day);
        }
        assert_eq!(unused(store, 3 * day), none);
        assert_eq!(unused(store, day), [broken.as_str(), &name]);
        let held = store.hold(&name).unwrap().unwrap();
        age(store, &name, 2 * day);
        let made = store.lock(&broken, &mut || ()).await.unwrap();
        assert_eq!(unused(store, day), none, "one is used, one is being made");
        drop((held, made));
        age(store, &name, 2 * day);
        let removing = store.idle(&name, day).unwrap();
        assert!(store.hold(&name).unwrap().is_none(), "it is being removed");
        drop(removing);
        // To use it makes it new.
        drop(store.hold(&name).unwrap().unwrap());
        assert_eq!(unused(store, day), [broken.as_str()]);
        assert!(store.hold(&broken).unwrap().is_none(), "it is not whole");
    }

    #[tokio::test]
    async fn one_at_a_time() {
        let kept = empty();
        let lock = kept.store.lock("a", &mut || ()).await.unwrap();
        let mut waited = false;
        let mut tell = || waited = true;
        let second = kept.store.lock("a", &mut tell);
        assert!(tokio::time::timeout(Duration::from_millis(300), second).await.is_err());
        assert!(waited);
        drop(lock);
        kept.store.lock("a", &mut || ()).await.unwrap();
    }
}
