//! Who ended a pod, and until when nobody can tell.
//!
//! The one table of what kubelets and the control plane write about pods that did not end by themselves.
//! Must not know jobs, nor what follows.
//!
//! `phase` says whether and how a pod has ended, this file for one that failed through whom. Kinds of job differ in
//! whose end is a pod's, and in nothing else: that is [`Decisive`].

use jiff::{SignedDuration, Timestamp};
use trainyard_schema::refusal;

use crate::{
    phase::Phase,
    view::{ContainerState, ContainerView, PodView},
};

/// The containers whose end is the end of a pod, by kind of job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decisive {
    /// The one that trains, as in a TFJob: one beside it that never stops keeps no job alive.
    Training,
    /// All alike, as in a Volcano Job, which knows no container by name.
    All,
}

/// Who ended a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedBy {
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

/// Who ended a pod that failed.
#[must_use]
pub(crate) fn ended_by(pod: &PodView, whose: Decisive) -> EndedBy {
    let by_reason = BY_REASON.iter().find(|(reason, _)| **reason == *pod.reason).map(|(_, by)| *by);
    match by_reason {
        Some(EndedBy::Deadline) => EndedBy::Deadline,
        _ if pod.disrupted => EndedBy::Cluster,
        Some(EndedBy::Cluster) if exceeds_its_storage(pod) => EndedBy::Limit,
        Some(by) => by,
        // Not let in, or not let in again after a restart of the kubelet.
        None if refusal::is_of_node(&pod.reason, &pod.message) => EndedBy::Cluster,
        None if culprit(pod, whose).is_some_and(is_lost) => EndedBy::Cluster,
        None => EndedBy::Program,
    }
}

/// The container whose end tells how a pod failed: the first ordinary one that ended badly, else the first of those
/// that run before. One that trains goes before them, however it ended, and where it has not ended and nobody ended
/// badly, the first that ended tells. Sidecars are stopped after the others and tell nothing.
#[must_use]
pub(crate) fn culprit(pod: &PodView, whose: Decisive) -> Option<&ContainerView> {
    let ended = |container: &&ContainerView| exit_code(container).is_some();
    let bad = |container: &&ContainerView| exit_code(container).is_some_and(|code| code != 0);
    let all = || pod.containers.iter().chain(pod.init_steps());
    match whose {
        Decisive::All => all().find(bad),
        Decisive::Training => {
            let main = pod.main_container().filter(ended);
            main.or_else(|| all().find(bad)).or_else(|| all().find(ended))
        }
    }
}

/// Returns true if the containers whose end is the pod's have ended for good.
#[must_use]
pub(crate) fn has_ended(pod: &PodView, whose: Decisive) -> bool {
    let is_final =
        |main: &ContainerView| exit_code(main).is_some_and(|code| main.restart.is_final(code));
    let beside_others = || {
        let is_judged = pod.phase == Phase::Running && !pod.disrupted;
        whose == Decisive::Training && is_judged && pod.main_container().is_some_and(is_final)
    };
    pod.phase.is_finished() || beside_others()
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

/// Until when a pod that has ended is not judged yet: somebody may still say that it was not its program's doing. A
/// kubelet that ends a pod gives its reason together with the final phase, and may have published the ends of the
/// containers before. None if it can be judged now; that all containers ended well is a success at once.
#[must_use]
pub(crate) fn unclear_until(
    pod: &PodView,
    whose: Decisive,
    now: Timestamp,
    final_phase_ms: i64,
) -> Option<Timestamp> {
    let may_change = pod.phase != Phase::Succeeded && has_ended(pod, whose);
    let until = may_change.then(|| open_until(pod, final_phase_ms))?;
    until.filter(|until| now < *until)
}

/// Until when the final phase of a pod is waited for; none if it is there, or nobody knows since when.
fn open_until(pod: &PodView, final_phase_ms: i64) -> Option<Timestamp> {
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
