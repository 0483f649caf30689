//! Suspending a job and taking it up again.
//!
//! A suspended job has no pods, no services and no PodGroup, and its clock stands still. Must not judge pods.

use jiff::Timestamp;
use trainyard_api::ConditionType;

use super::{
    conditions, counts,
    draft::Draft,
    gang,
    removal::{pod_removal, service_removal},
};
use crate::{
    plan::{Event, Plan, Stage},
    view::Role,
};

/// Plans the pass of a job that is to be suspended or is.
pub(super) fn plan(mut draft: Draft<'_>) -> Plan {
    let name = &draft.meta().name;
    let message = format!("TFJob {name} is suspended.");
    let second = draft.second();
    counts::stop(&mut draft.status);
    counts::forget_starts(&mut draft.status);
    conditions::remove(&mut draft.status, ConditionType::ReplicaFailure);
    if draft.status.is(ConditionType::Running) {
        let kind = ConditionType::Running;
        conditions::clear(&mut draft.status, kind, "TFJobSuspended", message.clone(), second);
    }
    if draft.status.is(ConditionType::Restarting) {
        let kind = ConditionType::Restarting;
        conditions::clear(&mut draft.status, kind, "TFJobSuspended", message.clone(), second);
    }
    if !draft.status.is(ConditionType::Suspended) {
        draft.set(ConditionType::Suspended, "TFJobSuspended", message.clone());
        draft.events.push(Event::normal("TFJobSuspended", message));
    }
    let mut plan = Plan::default();
    let writes = draft.write().into_iter().collect();
    plan.push(Stage { writes, events: std::mem::take(&mut draft.events) });
    let mut stage = Stage::default();
    for pod in draft.seen.pods.iter().filter(|pod| pod.role != Role::Other) {
        stage.writes.extend(pod_removal(pod, draft.now, draft.config, &mut plan));
    }
    for service in draft.seen.services.iter().filter(|service| service.role != Role::Other) {
        stage.writes.extend(service_removal(service));
    }
    plan.push(stage);
    gang::dissolve(&mut plan, draft.seen, draft.config);
    plan
}

/// Takes a suspended job up again: its clock starts anew, when it starts.
pub(super) fn resume(draft: &mut Draft<'_>) {
    if !draft.status.is(ConditionType::Suspended) {
        return;
    }
    let message = format!("TFJob {} is resumed.", draft.meta().name);
    let second: Timestamp = draft.second();
    let kind = ConditionType::Suspended;
    conditions::clear(&mut draft.status, kind, "TFJobResumed", message.clone(), second);
    draft.status.start_time = None;
    draft.status.running_time = None;
    draft.events.push(Event::normal("TFJobResumed", message));
}
