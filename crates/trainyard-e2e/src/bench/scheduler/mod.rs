//! The scheduler under load: its decisions in memory without an API server, and the whole of it on
//! a real control plane with nodes that are only objects.

mod bare;
mod bindings;
mod cluster;
mod gangs;
mod memory;
mod pair;
mod sight;
mod waits;

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

/// Pods of a gang.
const SIZE: usize = 20;

/// How much of everything.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerBench {
    /// How many nodes.
    pub nodes: usize,
    /// How many gangs of twenty pods.
    pub gangs: usize,
}

impl SchedulerBench {
    const fn pods(self) -> usize {
        self.gangs * SIZE
    }
}

/// What the load is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// PodGroups with their pods: the scheduler alone.
    Groups,
    /// Volcano Jobs, of which a controller makes PodGroups and pods: both of them.
    Jobs,
}

/// What to measure on a control plane.
#[derive(Debug, Clone)]
pub struct ClusterBench {
    /// How much of everything.
    pub size: SchedulerBench,
    /// What the load is made of.
    pub load: Load,
    /// Our own binary.
    pub binary: PathBuf,
    /// A scheduler instead of ours, as a line for `sh -c` with `KUBECONFIG` set.
    pub scheduler_cmd: Option<String>,
    /// A controller of Volcano Jobs instead of ours, likewise.
    pub controller_cmd: Option<String>,
    /// Definitions that those need, as a file of manifests.
    pub definitions: Option<PathBuf>,
    /// Whether to let kube-scheduler bind the same pods, without their groups.
    pub kube_scheduler: bool,
}

/// Measures decisions alone; the result is one JSON object.
pub fn in_memory(options: SchedulerBench) -> Result<Value> {
    memory::measure(options)
}

/// Measures on a control plane; the result is one JSON object.
pub async fn on_cluster(options: &ClusterBench) -> Result<Value> {
    cluster::measure(options).await
}
