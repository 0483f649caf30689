//! What the node and its pods use, gathered for the kubelet's summary.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use trainyard_holder::protocol::{ContainerUsage, PodUsage};

use super::Shared;
use crate::pod::Live;
use crate::serve::{
    ContainerStats, CpuStats, FsStats, MemoryStats, NodeStats, PodReference, PodStats,
    ProcessStats, Refused, RuntimeStats, Summary,
};
use crate::status::State;

/// Everything that runs on one node.
pub(super) async fn summary(
    shared: &Shared,
    node: &str,
    pods: &[Arc<Live>],
) -> Result<Summary, Refused> {
    let usage = shared.yard.usage().await;
    let usage = usage.map_err(|refusal| Refused::Internal(refusal.to_string()))?;
    let by_pod: BTreeMap<&str, &PodUsage> =
        usage.iter().map(|usage| (usage.pod.as_str(), usage)).collect();
    let now = Timestamp::now();
    let pods: Vec<PodStats> = pods
        .iter()
        .filter_map(|live| Some(pod(live, by_pod.get(live.uid.as_str())?, now)))
        .collect();
    let sum = |read: fn(&PodStats) -> Option<u64>| pods.iter().filter_map(read).sum::<u64>();
    let place = shared.places.pods.clone();
    // A disk that does not answer must not keep the others waiting.
    let disk = tokio::task::spawn_blocking(move || disk(&place, now)).await.ok().flatten();
    let node = NodeStats {
        node_name: node.to_owned(),
        start_time: shared.began,
        cpu: Some(cpu(sum(|pod| pod.cpu?.usage_core_nano_seconds), now)),
        memory: Some(memory(sum(|pod| pod.memory?.usage_bytes), now)),
        fs: disk,
        runtime: Some(RuntimeStats { image_fs: disk }),
    };
    Ok(Summary { node, pods })
}

fn pod(live: &Live, usage: &PodUsage, now: Timestamp) -> PodStats {
    let record = live.record();
    let all = record.init.iter().chain(&record.containers);
    let containers: Vec<(ContainerStats, &ContainerUsage)> = all
        .filter_map(|container| {
            let State::Running(since) = container.state else { return None };
            let used = usage.containers.iter().find(|used| used.container == container.id)?;
            let stats = ContainerStats {
                name: container.name.clone(),
                start_time: since,
                cpu: Some(cpu(used.cpu_usec.saturating_mul(1000), now)),
                memory: Some(memory(used.memory, now)),
                logs: None,
            };
            Some((stats, used))
        })
        .collect();
    let sum =
        |read: fn(&ContainerUsage) -> u64| containers.iter().map(|(_, used)| read(used)).sum();
    PodStats {
        pod_ref: PodReference {
            name: live.name.clone(),
            namespace: live.namespace.clone(),
            uid: live.uid.clone(),
        },
        start_time: record.started.unwrap_or(now),
        cpu: Some(cpu(sum(|used| used.cpu_usec.saturating_mul(1000)), now)),
        memory: Some(memory(sum(|used| used.memory), now)),
        processes: Some(ProcessStats { process_count: sum(|used| used.pids) }),
        containers: containers.into_iter().map(|(stats, _)| stats).collect(),
    }
}

/// The disk that pods, logs and images lie on.
fn disk(place: &Path, time: Timestamp) -> Option<FsStats> {
    let found = rustix::fs::statvfs(place).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(FsStats {
        time,
        available_bytes: Some(bytes(found.f_bavail)),
        capacity_bytes: Some(bytes(found.f_blocks)),
        used_bytes: Some(bytes(found.f_blocks.saturating_sub(found.f_bfree))),
    })
}

fn cpu(nanos: u64, time: Timestamp) -> CpuStats {
    CpuStats { time, usage_nano_cores: None, usage_core_nano_seconds: Some(nanos) }
}

fn memory(bytes: u64, time: Timestamp) -> MemoryStats {
    MemoryStats {
        time,
        available_bytes: None,
        usage_bytes: Some(bytes),
        working_set_bytes: Some(bytes),
    }
}
