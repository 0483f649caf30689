//! Who ended a pod, and until when nobody can tell.
//!
//! The one table of what kubelets and the control plane write about pods that did not end by themselves.
//! Must not know jobs, nor what follows.
//!
//! Of a pod as JSON: read it as a [`PodView`]; `phase` says whether and how it has ended, and for one that
//! failed `ended_by(&pod, culprit(&pod))` says through whom.

use jiff::{SignedDuration, Timestamp};
use trainyard_schema::refusal;

use crate::view::{ContainerState, ContainerView, PodView};

/// Who ended a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Its program, or what it asks for and no node can give.
    Program,
    /// Its kubelet, when the `activeDeadlineSeconds` of the pod itself were over.
    Deadline,
    /// Its kubelet, for it used more local storage than it may.
    Limit,
    /// The cluster, for reasons that have nothing to do with the program.
    Cluster,
}

/// By the reason in the pod's status; what a kubelet did not let in is the cluster's too, all others are
/// the program's.
const BY_REASON: [(&str, EndedBy); 6] = [
    ("DeadlineExceeded", EndedBy::Deadline),
    // Thrown out: the node is short of something, or has to make room for a critical pod.
    ("Evicted", EndedBy::Cluster),
    ("Preempting", EndedBy::Cluster),
    // The node is shut down or lost.
    ("NodeLost", EndedBy::Cluster),
    ("Shutdown", EndedBy::Cluster),
    ("Terminated", EndedBy::Cluster),
];

/// What a kubelet says of a pod that it evicts for its own use of storage. It sets no `DisruptionTarget`
/// then, and only these words tell it from a node that is short of something.
const OWN_STORAGE: [&str; 3] =
    ["exceeds the limit", "exceeds the total limit", "exceeded its local ephemeral storage"];

/// Who ended a pod that failed, where `culprit` is the container whose end tells.
#[must_use]
pub fn ended_by(pod: &PodView, culprit: Option<&ContainerView>) -> EndedBy {
    let by_reason = BY_REASON.iter().find(|(reason, _)| **reason == *pod.reason).map(|(_, by)| *by);
    match by_reason {
        Some(EndedBy::Deadline) => EndedBy::Deadline,
        _ if pod.disrupted => EndedBy::Cluster,
        Some(EndedBy::Cluster) if exceeds_its_storage(pod) => EndedBy::Limit,
        Some(by) => by,
        // Not let in, or not let in again after a restart of the kubelet.
        None if refusal::is_of_node(&pod.reason, &pod.message) => EndedBy::Cluster,
        None if culprit.is_some_and(is_lost) => EndedBy::Cluster,
        None => EndedBy::Program,
    }
}

/// The container whose end tells how a pod ended: the one that trains, else the first that ended badly,
/// else the first that ended. Sidecars are stopped after the others and tell nothing.
#[must_use]
pub fn culprit(pod: &PodView) -> Option<&ContainerView> {
    let ended = |container: &&ContainerView| exit_code(container).is_some();
    let bad = |container: &&ContainerView| exit_code(container).is_some_and(|code| code != 0);
    let all = || pod.init_steps().chain(&pod.containers);
    pod.main_container().filter(ended).or_else(|| all().find(bad)).or_else(|| all().find(ended))
}

/// Exit code of a container that has ended.
#[must_use]
pub(crate) fn exit_code(container: &ContainerView) -> Option<i64> {
    match container.state {
        ContainerState::Terminated { exit_code, .. } => Some(exit_code),
        _ => None,
    }
}

/// Returns true if all that a kubelet has last started again in place had been lost, as when the node
/// starts anew.
#[must_use]
pub(crate) fn was_lost_in_place(pod: &PodView) -> bool {
    let mut restarted = pod.containers.iter().filter(|container| container.restarts > 0).peekable();
    restarted.peek().is_some()
        && restarted.all(|container| {
            container.last_end.as_ref().is_some_and(|end| is_loss(&end.reason, end.exit_code))
        })
}

/// Until when somebody may still say that it was not the program that ended a pod whose containers have
/// ended: a kubelet that ends a pod gives its reason together with the final phase, and may have published
/// the ends of the containers before. None if nothing more is to come.
#[must_use]
pub(crate) fn open_until(pod: &PodView, final_phase_ms: i64) -> Option<Timestamp> {
    if pod.has_final_phase {
        return None;
    }
    let ends = pod.init_containers.iter().chain(&pod.containers);
    let last = ends.filter_map(|container| match container.state {
        ContainerState::Terminated { finished_at, .. } => finished_at,
        _ => None,
    });
    last.max()?.checked_add(SignedDuration::from_millis(final_phase_ms)).ok()
}

fn exceeds_its_storage(pod: &PodView) -> bool {
    &*pod.reason == "Evicted" && OWN_STORAGE.iter().any(|words| pod.message.contains(words))
}

/// Returns true if nobody has seen a container end: the kubelet cannot find it any more, or the runtime
/// was not there, as when the node starts anew.
fn is_lost(container: &ContainerView) -> bool {
    match &container.state {
        ContainerState::Terminated { exit_code, reason, .. } => is_loss(reason, *exit_code),
        _ => false,
    }
}

fn is_loss(reason: &str, exit_code: i64) -> bool {
    // The second is containerd's.
    reason == "ContainerStatusUnknown" || (reason == "Unknown" && exit_code == 255)
}

#[cfg(test)]
mod tests;
