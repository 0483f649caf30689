//! The flags of `bench scheduler`. Only says what is measured; measuring is the library's.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::Value;
use trainyard_e2e::bench::scheduler::{ClusterBench, Load, SchedulerBench, in_memory, on_cluster};

use crate::binary;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Decisions alone, without an API server.
    Memory,
    /// The whole scheduler on a real control plane with nodes that are only objects.
    Cluster,
    /// One after the other.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// PodGroups with their pods, for the scheduler alone; compared with the floor.
    Groups,
    /// Volcano Jobs, of which a controller makes PodGroups and pods; no floor.
    Jobs,
}

#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// What is measured, one JSON line each.
    #[arg(long, value_enum, default_value_t = Part::All)]
    part: Part,
    /// How many nodes.
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// How many gangs of twenty pods; twice as many in memory.
    #[arg(long, default_value_t = 500)]
    gangs: usize,
    /// What the load on the control plane is made of: groups, or jobs where another command is given.
    /// To compare pairs, measure ours with `--load jobs` too.
    #[arg(long, value_enum)]
    load: Option<Kind>,
    /// Put this scheduler under the load instead of ours; run by `sh -c` with KUBECONFIG set, and may do
    /// everything. It serves the name `volcano` and finds or makes the queue `default`.
    #[arg(long, value_name = "CMD")]
    scheduler_cmd: Option<String>,
    /// Let this controller make the pods of Volcano Jobs instead of ours, likewise.
    #[arg(long, value_name = "CMD")]
    controller_cmd: Option<String>,
    /// Definitions that these need, as a file of manifests; ours of the same name are replaced.
    #[arg(long, value_name = "FILE")]
    definitions: Option<PathBuf>,
    /// Let kube-scheduler bind the same pods without their groups, as a reference for bindings in a second;
    /// it is built the first time.
    #[arg(long)]
    kube_scheduler: bool,
}

/// Measures each part that is wanted and tells of it at once.
pub(crate) async fn run(flags: Flags, mut tell: impl FnMut(&Value)) -> Result<()> {
    let load = flags.load();
    anyhow::ensure!(
        flags.controller_cmd.is_none() || load == Load::Jobs,
        "--controller-cmd has nothing to do with `--load groups`: leave one of them out"
    );
    let size = SchedulerBench { nodes: flags.nodes, gangs: flags.gangs };
    if flags.part != Part::Cluster {
        tell(&in_memory(size)?);
    }
    if flags.part != Part::Memory {
        let options = ClusterBench {
            size,
            load,
            binary: binary()?,
            scheduler_cmd: flags.scheduler_cmd,
            controller_cmd: flags.controller_cmd,
            definitions: flags.definitions,
            kube_scheduler: flags.kube_scheduler,
        };
        tell(&on_cluster(&options).await?);
    }
    Ok(())
}

impl Flags {
    fn load(&self) -> Load {
        let has_others = self.scheduler_cmd.is_some() || self.controller_cmd.is_some();
        let usual = if has_others { Kind::Jobs } else { Kind::Groups };
        match self.load.unwrap_or(usual) {
            Kind::Groups => Load::Groups,
            Kind::Jobs => Load::Jobs,
        }
    }
}
