//! Invariants of the conditions `Running` and `Restarting` of a job at rest.

use trainyard_api::{ConditionType, ReplicaStatus, ReplicaType};

use super::{World, view};
use crate::{
    end::unclear_until,
    phase::Phase,
    tfjob::{end::WHOSE, indexes},
    view::PodView,
};

/// S10: a job at rest that says that it runs has no replica that started and does not run now; one
/// whose replicas all run does not say anything else. S11: it names every replica whose node cannot be reached,
/// whether it had started or not.
pub(super) fn check_running(w: &World) {
    let status = w.typed();
    let ended = w.deleted || status.is_finished() || w.spec["runPolicy"]["suspend"] == true;
    if ended || w.spec["enableDynamicWorker"] == true {
        return;
    }
    let (mut all_run, mut some_run) = (true, false);
    for (key, spec) in w.spec["tfReplicaSpecs"].as_object().unwrap() {
        let kind = ReplicaType::parse(key).unwrap();
        let set = |text: fn(&ReplicaStatus) -> &str| {
            status.replica_statuses.get(&kind).map(|counts| indexes::parse(text(counts)))
        };
        let started = set(|counts| &counts.started_indexes).unwrap_or_default();
        let completed = set(|counts| &counts.completed_indexes).unwrap_or_default();
        for index in 0..u32::try_from(spec["replicas"].as_u64().unwrap()).unwrap() {
            let name = format!("j-{}-{index}", kind.lower());
            let pod = w.pods.get(&name).map(|_| view(w, &name));
            let has_succeeded = pod.as_ref().is_some_and(|pod| pod.phase == Phase::Succeeded);
            let done = completed.contains(&index) || has_succeeded;
            if pod.as_ref().is_some_and(|pod| pod.unreachable.is_some()) && !done {
                let replica = name.trim_start_matches("j-");
                let mut named = status.unavailable_replicas.iter().map(|one| one.replica.as_str());
                assert!(named.any(|one| one == replica), "S11: {name} is not named");
                assert!(!status.is(ConditionType::Running), "S11: {name} is unreachable");
            }
            // One that was deleted at its end may have been stopped.
            let is_leaving = pod.as_ref().is_some_and(|pod| pod.deletion.is_some());
            let runs = pod.is_some_and(|pod| is_up(w, &pod, status.attempt));
            all_run &= runs || (done && !is_leaving);
            some_run |= runs;
            let says = status.is(ConditionType::Running);
            assert!(!says || runs || done || !started.contains(&index), "S10: {name} is away");
        }
    }
    if all_run && some_run {
        assert!(status.is(ConditionType::Running), "S10: all run: {:?}", w.conditions());
        assert!(status.unavailable_replicas.is_empty(), "S10: {:?}", status.unavailable_replicas);
    }
}

/// Whether the pod runs, or has ended in a way that nobody can judge yet.
fn is_up(w: &World, pod: &PodView, attempt: i64) -> bool {
    let is_open = unclear_until(pod, WHOSE, w.now, w.config.final_phase_ms).is_some();
    (pod.phase == Phase::Running || is_open)
        && pod.deletion.is_none()
        && pod.unreachable.is_none()
        && pod.attempt == attempt
}
