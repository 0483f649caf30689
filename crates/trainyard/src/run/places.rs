//! Where a run keeps what outlives it: claims, logs, its own log, by the name of its jobs.
//!
//! A second run of the same name finds its claims again. Must not know yards or jobs.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use trainyard_holder::sweep::sweep;

use crate::failure::Failure;
use crate::yard::folder::Folder;

/// The folder of all runs.
pub(crate) fn root(given: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(folder) => Ok(folder.to_owned()),
        None => Ok(Folder::usual()?.with_file_name("runs")),
    }
}

/// The folder of one run.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) folder: Folder,
    /// Held as long as the run lasts.
    _lock: Arc<Lock>,
}

#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough while another thread is starting a process: until that one
        // runs its own program it has the file open too.
        let _ = self.0.unlock();
    }
}

impl Places {
    pub(crate) fn open(root: &Path, name: &str) -> Result<Self, Failure> {
        let folder = Folder::open(&root.join(name))?;
        let file = folder.path().join("run.lock");
        let failed =
            |error: std::io::Error| Failure::other(format!("opening {}", file.display()), &error);
        let lock = File::create(&file).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Failure::plain(format!("another run of {name:?} is under way")).hint(
                "wait for its end, give the job another name, or another folder with --data-dir",
            )
        })?;
        Ok(Self { folder, _lock: Arc::new(Lock(lock)) })
    }

    /// Forgets what earlier runs have left: their claims and their logs.
    pub(crate) fn forget(&self) -> Result<(), Failure> {
        for folder in [self.claims(), self.folder.node().join("logs")] {
            sweep(&folder).map_err(|error| {
                Failure::other(format!("removing {}", folder.display()), &error)
            })?;
        }
        Ok(())
    }

    /// All claims.
    pub(crate) fn claims(&self) -> PathBuf {
        self.folder.claims()
    }

    /// The folder of a claim, made if it is not there. Pods of any user may write to it.
    pub(crate) fn claim(&self, namespace: &str, name: &str) -> Result<PathBuf, Failure> {
        let path = self.claims().join(namespace).join(name);
        let failed = |error: std::io::Error| {
            Failure::other(format!("making the claim's folder {}", path.display()), &error)
        };
        if !path.is_dir() {
            fs::create_dir_all(&path).map_err(failed)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(failed)?;
        }
        Ok(path)
    }

    /// What a job's replicas have printed.
    pub(crate) fn logs(&self, namespace: &str, job: &str) -> PathBuf {
        self.folder.node().join("logs").join(namespace).join(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_stay_until_they_are_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::open(root.path(), "mnist").unwrap();
        let claim = places.claim("default", "model").unwrap();
        fs::write(claim.join("weights"), "x").unwrap();
        let taken = Places::open(root.path(), "mnist").unwrap_err();
        assert!(taken.to_string().contains("under way"), "{taken}");
        drop(places);
        let again = Places::open(root.path(), "mnist").unwrap();
        assert_eq!(again.claim("default", "model").unwrap(), claim);
        assert!(claim.join("weights").exists());
        again.forget().unwrap();
        assert!(!claim.exists());
        again.forget().unwrap();
    }
}
