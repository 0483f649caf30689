//! Restarts in place: each is counted once, whatever has become of the pod.
//!
//! Counted is the difference between what a pod shows and what the record of its replica has of that pod; of
//! one that has gone its last state is looked at, which only an operator that watched has. Must not judge ends.

use std::collections::BTreeMap;

use trainyard_api::{Failure, FailureKind, JobStatus, ReplicaId};

use super::{
    Observed,
    end::Cause,
    failure::detail,
    restart::{find, record},
    roster::{Roster, Standing, is_named},
};
use crate::{
    end::was_lost_in_place,
    phase::InPlaceRestart,
    view::{ContainerView, PodView, Role},
};

/// Counts what kubelets have restarted in place since the last pass, whatever has become of the pods
/// meanwhile; returns the pods it happened in.
#[must_use]
pub(super) fn count<'a>(
    seen: &Observed<'a>,
    roster: &Roster<'a>,
    status: &mut JobStatus,
) -> Vec<&'a PodView> {
    let mut departed: BTreeMap<ReplicaId, Vec<&PodView>> = BTreeMap::new();
    for pod in seen.departed.iter().filter(|pod| pod.attempt >= status.attempt) {
        if let Role::Replica(id) = pod.role
            && is_named(&seen.job.metadata.name, id, &pod.name)
        {
            departed.entry(id).or_default().push(pod);
        }
    }
    let mut restarted = Vec::new();
    for slot in &roster.slots {
        let gone = departed.remove(&slot.id);
        let gone = gone.map(|gone| unrecorded(gone, slot.pod, recorded(status, slot.id)));
        let present = slot.pod.filter(|_| match slot.standing {
            Standing::Live
            | Standing::Ending(_)
            | Standing::Leaving
            | Standing::Completed
            | Standing::Failed(_) => true,
            Standing::Missing | Standing::Replaced | Standing::Stale => false,
        });
        for pod in gone.into_iter().flatten().chain(present) {
            if count_of(status, slot.id, pod) > 0 {
                restarted.push(pod);
            }
        }
    }
    restarted
}

/// The pod that a replica was last counted for.
fn recorded(status: &JobStatus, id: ReplicaId) -> &str {
    find(status, &id.to_string()).map_or("", |record| &record.uid)
}

/// Pods of one replica that have gone and have not been counted to their end. A record is of the last pod that
/// was looked at: those before it have been counted, even if nobody has heard that this was written.
fn unrecorded<'a>(
    mut gone: Vec<&'a PodView>,
    present: Option<&PodView>,
    recorded: &str,
) -> Vec<&'a PodView> {
    if present.is_some_and(|pod| *pod.uid == *recorded) {
        return Vec::new();
    }
    let first = gone.iter().position(|pod| *pod.uid == *recorded).unwrap_or(0);
    gone.split_off(first)
}

/// Counts restarts in place of one pod that were not counted before; returns how many there were. Those of a
/// node that starts anew are the cluster's.
fn count_of(status: &mut JobStatus, id: ReplicaId, pod: &PodView) -> i64 {
    let restarts: i64 = restartable(pod).map(|container| container.restarts).sum();
    if restarts == 0 {
        return 0;
    }
    let record = record(status, &id.to_string());
    if *record.uid != *pod.uid {
        record.uid = pod.uid.to_string();
        record.in_place = 0;
        record.replaced = false;
    }
    let new = (restarts - record.in_place).max(0);
    let lost = if was_lost_in_place(pod) { restartable(pod).count() } else { 0 };
    let lost = i64::try_from(lost).unwrap_or(i64::MAX).min(new);
    record.in_place = record.in_place.max(restarts);
    record.disruptions += lost.min(1);
    record.restarts += new - lost;
    status.restarts += new - lost;
    new - lost
}

/// The containers whose restarts in place are failures of the replica: a sidecar may come and go.
fn restartable(pod: &PodView) -> impl Iterator<Item = &ContainerView> {
    let all = pod.containers.iter().chain(pod.init_steps());
    all.filter(|container| container.restart != InPlaceRestart::Never)
}

/// How the container ended that was restarted once too often.
#[must_use]
pub(super) fn failure(pod: &PodView) -> Failure {
    let restarted = restartable(pod).find(|container| container.restarts > 0);
    let cause = restarted.map_or_else(Cause::default, |container| {
        let last = container.last_end.as_deref().cloned().unwrap_or_default();
        Cause {
            container: container.name.to_string(),
            container_code: container.last_end.as_ref().map(|last| last.exit_code),
            reason: last.reason.into(),
            message: last.message.into(),
            ..Cause::default()
        }
    });
    detail(FailureKind::BackoffLimitExceeded, &pod.name, &cause)
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn of_the_pods_that_have_gone_those_before_the_record_are_counted_already() {
        let pod = |uid: &str| -> PodView {
            from_value(json!({"metadata": {"name": "p", "uid": uid}})).unwrap()
        };
        let [a, b, c] = ["a", "b", "c"].map(pod);
        let left = |present: Option<&PodView>, recorded: &str| -> Vec<String> {
            let gone = unrecorded(vec![&a, &b], present, recorded);
            gone.iter().map(|pod| pod.uid.to_string()).collect()
        };
        assert_eq!(left(None, ""), ["a", "b"]);
        assert_eq!(left(Some(&c), "before"), ["a", "b"]);
        assert_eq!(left(Some(&c), "a"), ["a", "b"], "it may have been restarted once more");
        assert_eq!(left(None, "b"), ["b"]);
        assert_eq!(left(Some(&c), "c"), [""; 0]);
    }
}
