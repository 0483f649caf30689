//! What a node and its pods use, in the words of the kubelet's summary API.

use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// The answer to `/stats/summary`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// The node as a whole.
    pub(crate) node: NodeStats,
    /// Each running pod.
    pub(crate) pods: Vec<PodStats>,
}

/// A node's use.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeStats {
    /// Its name.
    pub(crate) node_name: String,
    /// Since when it is measured.
    #[serde(serialize_with = "seconds")]
    pub(crate) start_time: Timestamp,
    /// Processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<CpuStats>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<MemoryStats>,
    /// The disk that pods' files are on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fs: Option<FsStats>,
    /// Where images are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runtime: Option<RuntimeStats>,
}

/// Disks of the images.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuntimeStats {
    /// Where images are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image_fs: Option<FsStats>,
}

/// A pod's use.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodStats {
    /// Which pod.
    pub(crate) pod_ref: PodReference,
    /// Since when it is measured.
    #[serde(serialize_with = "seconds")]
    pub(crate) start_time: Timestamp,
    /// Its containers.
    pub(crate) containers: Vec<ContainerStats>,
    /// All containers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<CpuStats>,
    /// All containers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<MemoryStats>,
    /// How many processes.
    #[serde(rename = "process_stats", skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<ProcessStats>,
}

/// Names a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PodReference {
    /// Its name.
    pub(crate) name: String,
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its uid.
    pub(crate) uid: String,
}

/// Counts processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct ProcessStats {
    /// How many.
    pub(crate) process_count: u64,
}

/// A container's use.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerStats {
    /// Its name.
    pub(crate) name: String,
    /// When it began.
    #[serde(serialize_with = "seconds")]
    pub(crate) start_time: Timestamp,
    /// Processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu: Option<CpuStats>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<MemoryStats>,
    /// Its logs on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) logs: Option<FsStats>,
}

/// Processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CpuStats {
    /// When it was measured.
    #[serde(serialize_with = "seconds")]
    pub(crate) time: Timestamp,
    /// Billionths of a core, on average since the measurement before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_nano_cores: Option<u64>,
    /// Nanoseconds of all cores since it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_core_nano_seconds: Option<u64>,
}

/// Memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryStats {
    /// When it was measured.
    #[serde(serialize_with = "seconds")]
    pub(crate) time: Timestamp,
    /// Bytes that are left of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_bytes: Option<u64>,
    /// Bytes in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_bytes: Option<u64>,
    /// Bytes in use that cannot be given back at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) working_set_bytes: Option<u64>,
}

/// A disk, or what something takes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FsStats {
    /// When it was measured.
    #[serde(serialize_with = "seconds")]
    pub(crate) time: Timestamp,
    /// Bytes that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_bytes: Option<u64>,
    /// Bytes in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) capacity_bytes: Option<u64>,
    /// Bytes in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) used_bytes: Option<u64>,
}

/// Kubernetes' times end at seconds.
fn seconds<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ"))
}
