//! The machine as a Node: what it has, how it is shown to the API server, kept alive there, and which
//! pods it takes.
//!
//! Owns the Node object, its Lease, capacity, devices and admission. Must not know how pods run.

mod admission;
#[cfg(test)]
mod api_tests;
mod cgroup;
mod devices;
mod error;
mod facts;
mod heartbeat;
mod identity;
mod lease;
mod machine;
mod object;
mod pressure;
mod registration;
mod resources;
mod together;

pub(crate) use admission::{Rejection, admit};
pub(crate) use devices::{
    Allotment, Devices, GPU_RESOURCE, Gpu, GpuSource, Nvml, gpus_asked, share_gpus,
};
pub(crate) use error::NodeError;
pub(crate) use facts::{Limits, NodeFacts, Readiness, check_name, declared_features};
pub(crate) use heartbeat::{Heartbeat, Timing};
pub(crate) use identity::AgentIdentity;
pub(crate) use machine::Machine;
pub(crate) use pressure::Pressure;
pub(crate) use registration::{register_within, server_version};
pub(crate) use resources::{ResourceArg, Sharing, node_cpu, node_memory, share};
pub(crate) use together::of_all_pods;
