//! Actions that wait for their time: armed, called off, due.
//!
//! They are in the status, so that no restart of the operator loses one. Must not know what an
//! action does.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use trainyard_api::volcano::{Action, LifecyclePolicy, PolicyEvent, TimerRecord};

use super::{draft::Draft, duration, events::Cause};
use crate::{
    phase::Phase,
    plan::{Event, Plan},
    view::PodView,
};

/// Arms the timer of a policy. One that is armed for the same pod and action goes on as it is.
pub(super) fn arm(
    draft: &mut Draft<'_>,
    policy: &LifecyclePolicy,
    event: PolicyEvent,
    cause: &Cause,
    timeout_ms: i64,
) {
    let same = |timer: &TimerRecord| timer.action == policy.action && timer.pod == cause.pod;
    if draft.status.timers.iter().any(same) {
        return;
    }
    let delay = SignedDuration::from_millis(timeout_ms);
    draft.status.timers.push(TimerRecord {
        action: policy.action,
        event,
        pod: cause.pod.clone(),
        uid: cause.uid.clone(),
        task: cause.task.clone(),
        due: draft.now.checked_add(delay).unwrap_or(Timestamp::MAX),
    });
    let after = duration::text(timeout_ms);
    let message = format!("Execute action {} after {after}", policy.action.as_str());
    draft.events.push(Event::normal("ExecuteAction", message));
}

/// Calls off what has passed by itself: a pod that was waited for does something, one that was
/// missed runs again.
pub(super) fn call_off(draft: &mut Draft<'_>) {
    if draft.status.timers.is_empty() {
        return;
    }
    let pods: BTreeMap<&str, &PodView> =
        draft.seen.pods.iter().map(|pod| (&*pod.name, &**pod)).collect();
    draft.status.timers.retain(|timer| {
        let pod = pods.get(timer.pod.as_str());
        match timer.event {
            PolicyEvent::PodPending => {
                pod.is_some_and(|pod| *pod.uid == *timer.uid && pod.phase == Phase::Pending)
            }
            PolicyEvent::PodFailed | PolicyEvent::PodEvicted => {
                pod.is_none_or(|pod| pod.phase != Phase::Running)
            }
            _ => true,
        }
    });
}

/// Takes out what is due.
pub(super) fn due(draft: &mut Draft<'_>) -> Vec<TimerRecord> {
    let now = draft.now;
    let (due, wait) = draft.status.timers.drain(..).partition(|timer| timer.due <= now);
    draft.status.timers = wait;
    due
}

/// After an action, what waited to do the same to the same is called off.
pub(super) fn supersede(draft: &mut Draft<'_>, action: Action, task: &str, pod: &str) {
    draft.status.timers.retain(|timer| {
        let same = match action {
            Action::RestartPod => timer.pod == pod,
            Action::RestartTask => timer.task == task,
            _ => true,
        };
        !(same && timer.action == action)
    });
}

/// Looks again when the next one is due.
pub(super) fn look_ahead(draft: &Draft<'_>, plan: &mut Plan) {
    for timer in &draft.status.timers {
        plan.look_again(timer.due);
    }
}
