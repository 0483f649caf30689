//! The order in which a cluster's programs start, and on which node each belongs. Knows flags and files by the
//! modules that make them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::flags::{self, PORTS};
use super::keys::Keys;
use super::node::{self, Node};
use super::{Cluster, Options, State, addresses, configuration, setup};
use crate::control_plane::Program;
use crate::control_plane::flags::etcd;

impl Cluster {
    /// A node with its network and containerd, and the API server where it belongs.
    pub(super) async fn start_machine(&self, state: &mut State, index: usize) -> Result<()> {
        let lasting = self.options.lasting;
        let mut node = Node::start(&self.folder, index, lasting).await?;
        if index == 0 {
            node.script(&setup::network(0, self.options.nodes)).await.context("its network")?;
            self.run_api_server(&mut node)?;
        }
        node.run_containerd()?;
        state.nodes[index] = Some(node);
        // When node 0 comes back, the others are plugged in again.
        for other in if index == 0 { 1..self.options.nodes } else { index..index + 1 } {
            if let (Some(Some(first)), Some(Some(node))) =
                (state.nodes.first(), state.nodes.get(other))
            {
                let cable = setup::cable(other, node.init().pid);
                first.network_script(&cable).await.context("its cable")?;
                let network = setup::network(other, self.options.nodes);
                node.script(&network).await.context("its network")?;
            }
        }
        Ok(())
    }

    fn run_api_server(&self, node: &mut Node) -> Result<()> {
        let keys = Keys::of(&self.folder);
        let flags = etcd(PORTS, &self.folder.database(), false);
        node.run("etcd", &self.binaries.path(Program::Etcd), &flags)?;
        let flags = flags::api_server(&keys, &self.folder.keys());
        node.run("kube-apiserver", &self.binaries.path(Program::ApiServer), &flags)?;
        // A socket in a folder is seen from both networks.
        let socket = self.folder.api_socket();
        let socket = socket.display();
        let inside = [
            format!("UNIX-LISTEN:{socket},fork,unlink-early,mode=600"),
            format!("TCP:{}:{}", addresses::node(0), PORTS.api_server),
        ];
        node.run("forward-inside", Path::new("socat"), &inside)?;
        let outside = [
            format!("TCP-LISTEN:{},bind=127.0.0.1,fork,reuseaddr,backlog=128,nodelay", self.port),
            format!("UNIX-CONNECT:{socket},retry=20,interval=0.1"),
        ];
        node.run_beside("forward-outside", Path::new("socat"), &outside)
    }

    /// What needs the API server.
    pub(super) async fn start_services(&self, state: &mut State, index: usize) -> Result<()> {
        let State { nodes, archives, imported } = state;
        let node = nodes[index].as_mut().context("it has just been started")?;
        if index == 0 {
            self.run_controllers(node).await?;
        }
        node.containerd_answers().await?;
        for archive in std::iter::once(&self.pause).chain(archives.iter()) {
            if !imported[index].contains(archive) {
                node::import_within(node.init(), archive).await?;
                imported[index].insert(archive.clone());
            }
        }
        let Options { quick_node_loss, kubelet: over, .. } = &self.options;
        let kubelet =
            configuration::kubelet(&self.folder, index, self.share, *quick_node_loss, over);
        let file = write(node, "kubelet.json", &kubelet)?;
        let flags = flags::kubelet(&Keys::of(&self.folder), &file, index);
        node.run("kubelet", &self.binaries.path(Program::Kubelet), &flags)?;
        let proxy = configuration::kube_proxy(&self.folder, index);
        let file = write(node, "kube-proxy.json", &proxy)?;
        let flags = [format!("--config={}", file.display())];
        node.run("kube-proxy", &self.binaries.path(Program::KubeProxy), &flags)
    }

    async fn run_controllers(&self, node: &mut Node) -> Result<()> {
        let keys = Keys::of(&self.folder);
        let scratch = self.folder.keys();
        let quick = self.options.quick_node_loss;
        let flags = flags::controller_manager(&keys, &scratch, quick);
        let program = self.binaries.path(Program::ControllerManager);
        node.run("kube-controller-manager", &program, &flags)?;
        let flags = flags::scheduler(&keys, &scratch);
        node.run("kube-scheduler", &self.binaries.path(Program::Scheduler), &flags)?;
        let kubectl = self.kubectl();
        let applied = kubectl.run_with_input(&["apply", "-f", "-"], configuration::ROLES).await?;
        applied.stdout_of_success()?;
        let file = node.etc().join("Corefile");
        std::fs::write(&file, configuration::coredns(&keys.kubeconfig("coredns")))?;
        let flags = ["-conf".to_owned(), file.display().to_string()];
        node.run("coredns", &self.binaries.path(Program::CoreDns), &flags)
    }
}

/// Writes one of a node's configuration files.
fn write(node: &Node, name: &str, content: &Value) -> Result<PathBuf> {
    let file = node.etc().join(name);
    std::fs::write(&file, serde_json::to_vec_pretty(content)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}
