//! A real Kubernetes cluster for tests: a control plane, and nodes with containerd, kubelet and kube-proxy, each in
//! namespaces of its own like a machine. Nothing of it is seen on the machine's own network.
//! Knows nothing of TFJobs, of the operator or of any story.

mod addresses;
mod boot;
mod cgroup;
mod configuration;
mod flags;
mod folder;
pub mod image;
mod init;
mod keys;
mod machine;
mod needs;
mod node;
mod ready;
mod removal;
mod setup;
mod started;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{Mutex, MutexGuard};

use crate::control_plane::{Binaries, Program, free_ports};
use crate::kubectl::Kubectl;
use folder::{Folder, Lock};
use init::Init;
use keys::Keys;
use machine::Share;
use node::Node;
use ready::Readiness;
pub use started::Started;

/// What kind of cluster is wanted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name: small letters, digits and hyphens. It stands in the names of what is made on this machine, so
    /// that two clusters do not get into each other's way.
    pub name: String,
    /// How many nodes there are, 8 at the most. The first also has the control plane and the name server.
    pub nodes: usize,
    /// How many cpus a node offers; without it, nodes share those of the machine. Memory is always shared.
    pub cpus: Option<usize>,
    /// A node that is lost is `NotReady` after about ten seconds, not fifty.
    pub quick_node_loss: bool,
    /// Fields of `KubeletConfiguration`, laid over ours on every node.
    pub kubelet: Value,
    /// It outlives this program, until [`Started::stop`]; else it ends with it, whatever the way.
    pub lasting: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            nodes: 2,
            cpus: None,
            quick_node_loss: false,
            kubelet: json!({}),
            lasting: false,
        }
    }
}

/// A running cluster. Dropping it ends its nodes; [`Cluster::stop`] leaves nothing at all.
pub struct Cluster {
    options: Options,
    folder: Folder,
    binaries: Binaries,
    port: u16,
    readiness: Readiness,
    share: Share,
    pause: PathBuf,
    state: Mutex<State>,
    _lock: Lock,
}

/// What changes while a cluster runs.
#[derive(Default)]
struct State {
    /// By index; none while a node is down.
    nodes: Vec<Option<Node>>,
    /// Archives that every node is to have.
    archives: BTreeSet<PathBuf>,
    /// Archives that nodes do have, by index. They stay with a node while it is down.
    imported: Vec<BTreeSet<PathBuf>>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("Cluster");
        text.field("folder", &self.folder.path()).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Cluster {
    /// The reason why there cannot be a cluster on this machine, if so.
    pub async fn obstacle() -> Result<Option<String>> {
        needs::obstacle().await
    }

    /// Installs packages and builds programs that are missing.
    pub async fn provide() -> Result<()> {
        needs::provide().await.map(drop)
    }

    /// Provides what is missing, starts the cluster and returns when all nodes and the name server are ready. What
    /// a killed program left of a cluster of this name is removed first.
    pub async fn start(options: Options) -> Result<Self> {
        let (nodes, most) = (options.nodes, addresses::MOST_NODES);
        ensure!((1..=most).contains(&nodes), "a cluster has 1 to {most} nodes, not {nodes}");
        let binaries = needs::provide().await?;
        let folder = Folder::of(&options.name)?;
        let lock = folder.lock()?;
        if let Some(running) = Started::find(&options.name)?.filter(Started::runs) {
            bail!("the cluster `{}` runs already: {}", options.name, running.folder().display());
        }
        started::remove(&folder).await?;
        folder.create(nodes)?;
        let [port] = free_ports()?;
        let url = format!("https://127.0.0.1:{port}");
        let authority = Keys::create(&folder, nodes, &url).context("cannot make certificates")?;
        let kubectl =
            Kubectl::new(binaries.path(Program::Kubectl), folder.kubeconfig(), folder.home());
        let cluster = Self {
            pause: image::pause(&binaries.path(Program::Pause)).await?,
            share: Share::of_this_machine(nodes, options.cpus)?,
            readiness: Readiness::new(port, &authority, kubectl)?,
            options,
            folder,
            binaries,
            port,
            state: Mutex::default(),
            _lock: lock,
        };
        if let Err(error) = cluster.start_all().await {
            // Its logs stay, for whoever wants to know.
            started::end(&cluster.folder).await?;
            let logs = cluster.folder.path().display();
            return Err(error.context(format!("the cluster did not start; its logs are in {logs}")));
        }
        Ok(cluster)
    }

    async fn start_all(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        state.nodes.resize_with(self.options.nodes, || None);
        state.imported.resize_with(self.options.nodes, BTreeSet::new);
        for index in 0..self.options.nodes {
            self.start_machine(&mut state, index).await?;
        }
        self.readiness.of_api_server(&mut state.nodes).await?;
        for index in 0..self.options.nodes {
            self.start_services(&mut state, index).await?;
        }
        let indices: Vec<_> = (0..self.options.nodes).collect();
        self.readiness.of_nodes(&mut state.nodes, &indices, &Value::Null).await?;
        self.readiness.of_the_rest(&mut state.nodes).await?;
        state.nodes.iter_mut().flatten().for_each(Node::keep);
        Ok(())
    }

    /// The administrator's kubeconfig, for programs of this machine.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.readiness.kubectl().kubeconfig()
    }

    /// The real kubectl, speaking as the administrator.
    #[must_use]
    pub fn kubectl(&self) -> Kubectl {
        self.readiness.kubectl().clone()
    }

    /// The folder with logs, keys and kubeconfigs. A node's logs are in `<node>/log`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The name of a node, by its index.
    #[must_use]
    pub fn node_name(&self, index: usize) -> String {
        addresses::name(index)
    }

    /// Gives all nodes the images of an archive, those that are down when they start.
    pub async fn import(&self, archive: &Path) -> Result<()> {
        let mut missing = Vec::new();
        {
            let mut state = self.state.lock().await;
            state.archives.insert(archive.to_owned());
            for (index, node) in state.nodes.iter().enumerate() {
                if let Some(node) = node
                    && !state.imported[index].contains(archive)
                {
                    missing.push((index, node.init()));
                }
            }
        }
        // It may take long, and nodes may be stopped and started meanwhile.
        let import = |(index, init): (usize, Init)| async move {
            match node::import_within(init, archive).await {
                Ok(()) => {
                    self.state.lock().await.imported[index].insert(archive.to_owned());
                    Ok(())
                }
                Err(_) if !init.runs() => Ok(()),
                Err(error) => Err(error.context(addresses::name(index))),
            }
        };
        join_all(missing.into_iter().map(import).collect()).await
    }

    /// A program in the namespaces of a running node.
    pub async fn command_inside(
        &self,
        index: usize,
        program: impl AsRef<std::ffi::OsStr>,
    ) -> Result<Command> {
        let state = self.state.lock().await;
        Ok(running(&state, index)?.command(program))
    }

    /// Ends a node as a loss of power would: nobody is told. With the first, the control plane is gone.
    pub async fn stop_node(&self, index: usize) -> Result<()> {
        let mut state = self.known(index).await?;
        match state.nodes[index].take() {
            Some(node) => node.stop().await,
            None => Ok(()),
        }
    }

    /// Starts a node that is down, with what it had on disk, and returns when it is ready. Does nothing when it
    /// runs.
    pub async fn start_node(&self, index: usize) -> Result<()> {
        let mut state = self.known(index).await?;
        if state.nodes[index].is_some() {
            return Ok(());
        }
        let before = if index == 0 { Value::Null } else { self.readiness.nodes().await? };
        self.start_machine(&mut state, index).await?;
        self.readiness.of_api_server(&mut state.nodes).await?;
        let before = if index == 0 { self.readiness.nodes().await? } else { before };
        self.start_services(&mut state, index).await?;
        self.readiness.of_nodes(&mut state.nodes, &[index], &before).await?;
        state.nodes.iter_mut().flatten().for_each(Node::keep);
        Ok(())
    }

    /// An error, with its last log lines, when a program of a node that is not down has ended.
    pub async fn check(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        state.nodes.iter_mut().flatten().try_for_each(Node::check)
    }

    /// Ends it, and leaves nothing of it on the machine.
    pub async fn stop(self) -> Result<()> {
        let nodes = std::mem::take(&mut self.state.lock().await.nodes);
        // Clients before servers: the control plane is the first node's.
        for node in nodes.into_iter().rev().flatten() {
            node.stop().await?;
        }
        started::remove(&self.folder).await
    }

    async fn known(&self, index: usize) -> Result<MutexGuard<'_, State>> {
        let nodes = self.options.nodes;
        ensure!(index < nodes, "there is no node {index}: the cluster has {nodes}");
        Ok(self.state.lock().await)
    }
}

fn running(state: &State, index: usize) -> Result<&Node> {
    let node = state.nodes.get(index).and_then(Option::as_ref);
    node.with_context(|| format!("{} does not run", addresses::name(index)))
}

/// All at the same time; the first error, when all have ended.
async fn join_all(futures: Vec<impl Future<Output = Result<()>>>) -> Result<()> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, result) in &mut futures {
            if result.is_none()
                && let std::task::Poll::Ready(ended) = future.as_mut().poll(context)
            {
                *result = Some(ended);
            }
        }
        if futures.iter().all(|(_, result)| result.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    futures.into_iter().filter_map(|(_, result)| result).collect()
}
