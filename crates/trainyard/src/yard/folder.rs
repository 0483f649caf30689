//! The folder of a yard: what is kept there, and under which names.
//!
//! Must not know what the files hold.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A yard's folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The folder of the user's own yard: in the data folder, as other programs do.
    pub(crate) fn usual() -> Result<PathBuf, Failure> {
        let given =
            std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
        let data = given.or_else(|| std::env::home_dir().map(|home| home.join(".local/share")));
        data.map(|data| data.join("trainyard").join("yard")).ok_or_else(|| {
            Failure::usage("there is no home folder to keep the yard in")
                .hint("name a folder with --data-dir, or keep nothing with --ephemeral")
        })
    }

    /// Opens a folder, made if it is not there. Only its owner may look into it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        use std::os::unix::fs::DirBuilderExt as _;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| {
            Failure::other(format!("making the yard's folder {}", path.display()), &error)
                .hint("name another one with --data-dir, or keep nothing with --ephemeral")
        })?;
        let path = std::fs::canonicalize(path).map_err(|error| {
            Failure::other(format!("opening the yard's folder {}", path.display()), &error)
        })?;
        Ok(Self(path))
    }

    /// A folder that is there already; it is only looked into.
    pub(crate) fn existing(path: &Path) -> Option<Self> {
        std::fs::canonicalize(path).ok().filter(|path| path.is_dir()).map(Self)
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Objects and keys.
    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// What the node keeps: logs, pods' folders, claims.
    pub(crate) fn node(&self) -> PathBuf {
        self.0.join("node")
    }

    /// Directories that stand for claims.
    pub(crate) fn claims(&self) -> PathBuf {
        self.0.join("claims")
    }

    /// A kubeconfig for this yard alone.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// Who runs the yard, and where.
    pub(crate) fn notice(&self) -> PathBuf {
        self.0.join("yard.json")
    }

    /// What a yard says that was told to detach.
    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("yard.log")
    }
}
