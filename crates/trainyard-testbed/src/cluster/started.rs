//! A cluster that another program started: where it is, and its end. Also what is left of one whose program was
//! killed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use super::folder::Folder;
use super::init::Init;
use super::{addresses, node};

/// A cluster of which there is something on this machine.
#[derive(Clone, Debug)]
pub struct Started {
    folder: Folder,
    nodes: Vec<(usize, Option<Init>)>,
}

impl Started {
    /// The cluster of this name, if there is something of it.
    pub fn find(name: &str) -> Result<Option<Self>> {
        let folder = Folder::of(name)?;
        if !folder.path().is_dir() {
            return Ok(None);
        }
        let nodes = folder.nodes().into_iter();
        let nodes = nodes.map(|index| (index, node::found(&folder, index))).collect();
        Ok(Some(Self { folder, nodes }))
    }

    /// Does any of its nodes run?
    #[must_use]
    pub fn runs(&self) -> bool {
        self.nodes.iter().any(|(_, init)| init.is_some())
    }

    /// Its nodes by name, with their first process while they run.
    #[must_use]
    pub fn nodes(&self) -> Vec<(String, Option<u32>)> {
        let named = |(index, init): &(usize, Option<Init>)| {
            (addresses::name(*index), init.map(|init| init.pid))
        };
        self.nodes.iter().map(named).collect()
    }

    /// The folder with logs, keys and kubeconfigs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The administrator's kubeconfig, for programs of this machine.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.kubeconfig()
    }

    /// A program in the namespaces of a node.
    pub fn command_inside(
        &self,
        index: usize,
        program: impl AsRef<std::ffi::OsStr>,
    ) -> Result<Command> {
        let found = self.nodes.iter().find(|(other, _)| *other == index);
        let init = found.and_then(|(_, init)| *init);
        let init = init.with_context(|| format!("{} does not run", addresses::name(index)))?;
        Ok(node::command_within(init, program))
    }

    /// Gives all running nodes the images of an archive.
    pub async fn import(&self, archive: &Path) -> Result<()> {
        for init in self.nodes.iter().filter_map(|(_, init)| *init) {
            node::import_within(init, archive).await?;
        }
        Ok(())
    }

    /// Ends it, and leaves nothing of it on the machine; an error when the program that started it still has it.
    pub async fn stop(self) -> Result<()> {
        // It also goes with the file that a killed program left.
        let _lock = self.folder.lock()?;
        remove(&self.folder).await
    }
}

/// Ends all nodes of a cluster, whoever started them.
pub(super) async fn end(folder: &Folder) -> Result<()> {
    for index in folder.nodes().into_iter().rev() {
        node::stop_found(folder, index).await?;
    }
    Ok(())
}

/// The same, and removes its folder.
pub(super) async fn remove(folder: &Folder) -> Result<()> {
    end(folder).await?;
    folder.remove()
}
