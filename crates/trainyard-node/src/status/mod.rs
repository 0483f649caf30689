//! What is known of a pod's containers, and the status that says so. Pure: the worker in `pod` keeps
//! the record, this folder turns it into what a kubelet would write.

mod conditions;
mod phase;
mod record;
mod wire;

pub(crate) use phase::{Phase, phase};
pub(crate) use record::{ContainerRecord, PodRecord, State, Terminated, Verdict};
pub(crate) use wire::status;

/// Whether a pod's policy runs a container again that ended with this code.
pub(crate) fn restarts(policy: &str, exit_code: i32) -> bool {
    match policy {
        "Never" => false,
        "OnFailure" => exit_code != 0,
        _ => true,
    }
}
