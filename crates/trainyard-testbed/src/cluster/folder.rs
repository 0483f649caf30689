//! The folder of a cluster: what is where, and who has it. Knows no process.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::addresses;
use super::removal::remove_tree;
use crate::control_plane::cache_root;

/// The files of one cluster, in the user's cache.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    name: String,
    path: PathBuf,
}

impl Folder {
    /// The folder of the cluster of this name, which need not be there.
    pub(super) fn of(name: &str) -> Result<Self> {
        check(name)?;
        Ok(Self { name: name.to_owned(), path: all()?.join(name) })
    }

    /// The cluster's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keys, certificates and kubeconfigs.
    pub(super) fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    /// The administrator's kubeconfig, for programs of the machine.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    /// etcd's data.
    pub(super) fn database(&self) -> PathBuf {
        self.path.join("etcd")
    }

    /// The socket by which the machine reaches the API server.
    pub(super) fn api_socket(&self) -> PathBuf {
        self.path.join("api.sock")
    }

    /// A home for kubectl's caches.
    pub(super) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// What a node writes.
    pub(super) fn node(&self, index: usize) -> PathBuf {
        self.path.join(addresses::name(index))
    }

    /// The log of one of a node's programs.
    pub(super) fn log(&self, index: usize, program: &str) -> PathBuf {
        self.node(index).join("log").join(format!("{program}.log"))
    }

    /// The nodes that have written something.
    pub(super) fn nodes(&self) -> Vec<usize> {
        (0..addresses::MOST_NODES).filter(|index| self.node(*index).is_dir()).collect()
    }

    /// Makes it, with the folders of these nodes.
    pub(super) fn create(&self, nodes: usize) -> Result<()> {
        let mut folders = vec![self.keys(), self.database(), self.home()];
        for index in 0..nodes {
            let parts = ["log", "etc/cni", "sysctl", "containerd", "kubelet", "cni", "pods"];
            folders.extend(parts.map(|part| self.node(index).join(part)));
        }
        for folder in folders {
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        Ok(())
    }

    /// Removes it with all that is in it.
    pub(super) fn remove(&self) -> Result<()> {
        remove_tree(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }

    /// Makes the cluster this program's, as long as it holds the file; an error when another has it.
    pub(super) fn lock(&self) -> Result<Lock> {
        let path = self.path.with_extension("lock");
        let parent = path.parent().unwrap_or(&self.path);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot make the folder {}", parent.display()))?;
        loop {
            let file =
                File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    bail!("another program has the cluster `{}`; take another name", self.name)
                }
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
            // The holder before may have removed it in between.
            let there = fs::metadata(&path)
                .is_ok_and(|there| file.metadata().is_ok_and(|ours| there.ino() == ours.ino()));
            if there {
                return Ok(Lock { path, _file: file });
            }
        }
    }
}

/// Keeps others from a cluster; its file goes with it.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Where all clusters are.
pub(super) fn all() -> Result<PathBuf> {
    Ok(cache_root()?.join("clusters"))
}

/// A name stands in paths, in cgroups' names and in host names.
fn check(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 40 || !name.bytes().all(allowed) {
        bail!("a cluster's name has 1 to 40 small letters, digits and hyphens, not {name:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parts_of_paths() {
        assert!(check("kubelet-2").is_ok());
        for name in ["", "..", "a/b", "A", &"x".repeat(41)] {
            assert!(check(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_cluster_is_one_program_s_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder { name: "x".to_owned(), path: dir.path().join("x") };
        let held = folder.lock().unwrap();
        let error = folder.lock().unwrap_err().to_string();
        assert!(error.contains("another program has the cluster `x`"), "{error}");
        drop(held);
        assert!(!dir.path().join("x.lock").exists());
        folder.lock().unwrap();
    }
}
