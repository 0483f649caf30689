//! What has happened since the status was written: the difference between what it recorded of each
//! pod, by UID, and what is there.
//!
//! Every finding changes the record in the same draft, so that it is found once. Must not know what
//! is done about it.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use trainyard_api::volcano::{JobPhase, JobSpec, PodRecord, PolicyEvent, TaskSpec};

use super::{counts, draft::Draft, failure, objects::pod_name};
use crate::{
    end::{EndedBy, ended_by, unclear_until},
    phase::Phase,
    plan::Plan,
    view::{PodView, TaskView},
};

/// Recorded phase of a pod that is to go: its end is no event.
pub(super) const KILLED: &str = "Killed";
/// Recorded phase of a pod that has done its work: it stays done when the pod disappears.
pub(super) const SUCCEEDED: &str = "Succeeded";
/// Recorded phase of a pod that has failed.
const FAILED: &str = "Failed";

/// Something that a policy may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// What it is; if no policy names it, what it is as well.
    pub events: Vec<PolicyEvent>,
    /// The task, if it is about one.
    pub task: String,
    /// The pod, if it is about one.
    pub pod: String,
    /// The pod's identity.
    pub uid: String,
    /// Exit code of a pod that failed; 0 when it is not known.
    pub exit_code: i64,
    /// The same for people.
    pub words: String,
}

/// The job's own pods, as a pass sees them.
pub(super) struct Crew<'a> {
    /// By task and index, with what they say of themselves.
    members: Vec<(&'a PodView, &'a TaskView)>,
    /// UIDs by name.
    uids: BTreeMap<&'a str, &'a str>,
}

impl<'a> Crew<'a> {
    /// Those that are there.
    pub(super) fn new(pods: &'a [Arc<PodView>]) -> Self {
        let mut members: Vec<(&PodView, &TaskView)> =
            pods.iter().filter_map(|pod| pod.task.as_deref().map(|task| (&**pod, task))).collect();
        members.sort_by_key(|(pod, task)| (&task.name, task.index, &pod.name));
        let uids = pods.iter().map(|pod| (&*pod.name, &*pod.uid)).collect();
        Self { members, uids }
    }

    /// Whether a pod of that name is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.uids.contains_key(name)
    }

    /// Whether that very pod is there.
    pub(super) fn has_uid(&self, name: &str, uid: &str) -> bool {
        self.uids.get(name).is_some_and(|other| *other == uid)
    }
}

/// The job's pods, by task and index.
pub(super) fn members<'a>(
    draft: &Draft<'a>,
) -> impl Iterator<Item = (&'a PodView, &'a TaskView)> + use<'a> {
    draft.crew.members.iter().copied()
}

/// Whether the pod is one that the specification asks for.
pub(super) fn is_wanted(draft: &Draft<'_>, spec: &JobSpec, name: &str) -> bool {
    place(draft, spec, name).is_some()
}

/// Task and index of a pod of that name, if the specification asks for one.
pub(super) fn place<'s>(
    draft: &Draft<'_>,
    spec: &'s JobSpec,
    name: &str,
) -> Option<(&'s TaskSpec, u32)> {
    let rest = name.strip_prefix(&draft.meta().name)?.strip_prefix('-')?;
    let (task, index) = rest.rsplit_once('-')?;
    let (task, index) = (spec.task(task)?, index.parse().ok()?);
    let same = index < task.replicas && pod_name(&draft.meta().name, &task.name, index) == name;
    same.then_some((task, index))
}

/// Whether the pod is to go.
pub(super) fn is_condemned(draft: &Draft<'_>, pod: &PodView) -> bool {
    let record = draft.status.pods.get(&*pod.name);
    record.is_some_and(|record| record.phase == KILLED && *record.uid == *pod.uid)
}

/// Records that a pod is to go.
pub(super) fn condemn(draft: &mut Draft<'_>, pod: &PodView) {
    let record = PodRecord { uid: pod.uid.to_string(), phase: KILLED.to_owned() };
    draft.status.pods.insert(pod.name.to_string(), record);
}

/// Pods that nobody asks for (any more) are to go; scaling down is no eviction.
pub(super) fn condemn_surplus(draft: &mut Draft<'_>, spec: &JobSpec) {
    for (pod, _) in members(draft) {
        if !is_wanted(draft, spec, &pod.name) && !is_condemned(draft, pod) {
            condemn(draft, pod);
        }
    }
}

/// Brings the records up to date, and tells what has happened in the meantime.
pub(super) fn note(draft: &mut Draft<'_>, spec: &JobSpec) -> Vec<Cause> {
    let is_live =
        matches!(draft.phase(), JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
    let mut causes = vanished(draft, spec, is_live);
    let mut pending = Vec::new();
    for (pod, task) in members(draft) {
        if !record(draft, pod, task) || !is_live {
            continue;
        }
        match phase(draft, pod) {
            Phase::Failed => causes.push(failed(pod, task)),
            Phase::Pending => pending.push(pod_cause(PolicyEvent::PodPending, pod, task)),
            _ => {}
        }
    }
    if !is_live {
        return Vec::new();
    }
    let mut all = standing(draft, spec, true);
    all.extend(causes);
    all.extend(standing(draft, spec, false));
    all.extend(pending);
    all
}

/// Records a pod; tells whether its phase is news. A pod that somebody deletes is not judged.
fn record(draft: &mut Draft<'_>, pod: &PodView, task: &TaskView) -> bool {
    let known = draft.status.pods.get(&*pod.name).filter(|record| *record.uid == *pod.uid);
    let was = known.map(|record| record.phase.clone());
    let is_stale = task.version < draft.status.version;
    match was.as_deref() {
        Some(KILLED) => return false,
        Some(_) if pod.deletion.is_some() => return false,
        // A stale one was made for an earlier version by a pass that did not see the end of that.
        None if task.is_marked || (is_stale && !ended(pod)) => {
            condemn(draft, pod);
            return false;
        }
        None if is_stale => return false,
        _ => {}
    }
    let phase = format!("{:?}", phase(draft, pod));
    let is_news = was.as_ref() != Some(&phase) && !is_stale && pod.deletion.is_none();
    draft.status.pods.insert(pod.name.to_string(), PodRecord { uid: pod.uid.to_string(), phase });
    is_news
}

/// Pods that were there and are not any more.
fn vanished(draft: &mut Draft<'_>, spec: &JobSpec, is_live: bool) -> Vec<Cause> {
    let gone: Vec<(String, PodRecord)> = draft
        .status
        .pods
        .iter()
        .filter(|(name, record)| !draft.crew.has_uid(name, &record.uid))
        .map(|(name, record)| (name.clone(), record.clone()))
        .collect();
    let mut causes = Vec::new();
    for (name, record) in gone {
        let task = place(draft, spec, &name).map(|(task, _)| task.name.clone());
        if record.phase == SUCCEEDED && task.is_some() && !draft.crew.has(&name) {
            continue;
        }
        draft.status.pods.remove(&name);
        if let Some(task) = task
            && is_live
            && !matches!(record.phase.as_str(), KILLED | SUCCEEDED)
        {
            causes.push(Cause {
                events: vec![PolicyEvent::PodEvicted],
                words: format!("Pod {name} disappeared."),
                task,
                pod: name,
                uid: record.uid,
                exit_code: 0,
            });
        }
    }
    causes
}

fn pod_cause(event: PolicyEvent, pod: &PodView, task: &TaskView) -> Cause {
    Cause {
        events: vec![event],
        task: task.name.to_string(),
        pod: pod.name.to_string(),
        uid: pod.uid.to_string(),
        exit_code: 0,
        words: format!("Pod {} is {:?}.", pod.name, pod.phase),
    }
}

/// A pod that its node threw out, lost or did not let in has failed, but was evicted as well.
fn failed(pod: &PodView, task: &TaskView) -> Cause {
    let failure = failure::of(pod);
    let mut cause = pod_cause(PolicyEvent::PodFailed, pod, task);
    cause.exit_code = failure.exit_code.unwrap_or(0);
    cause.words = failure::words(pod);
    if matches!(ended_by(pod, failure::WHOSE), EndedBy::Cluster | EndedBy::Limit) {
        cause.events.push(PolicyEvent::PodEvicted);
    }
    cause
}

/// What holds of tasks and of the PodGroup and has not been dealt with. Success goes first: what
/// fails when the work is done does not matter.
fn standing(draft: &mut Draft<'_>, spec: &JobSpec, completed: bool) -> Vec<Cause> {
    let mut found: Vec<(String, bool, Cause)> = Vec::new();
    let succeeded = counts::succeeded(draft, spec);
    for task in &spec.tasks {
        if completed {
            let succeeded = succeeded.get(task.name.as_str()).copied().unwrap_or(0);
            let holds = task.replicas > 0 && succeeded >= i64::from(task.replicas);
            let words = format!("All {} pods of task {} succeeded.", task.replicas, task.name);
            found.push(task_cause(draft, PolicyEvent::TaskCompleted, task, holds, words));
        } else {
            let restarts = restarts(draft, &task.name);
            let holds = task.max_retry >= 0 && restarts >= task.max_retry;
            let words = format!(
                "Containers of task {} were restarted {restarts} times; its maxRetry is {}.",
                task.name, task.max_retry
            );
            found.push(task_cause(draft, PolicyEvent::TaskFailed, task, holds, words));
        }
    }
    if !completed {
        found.push(lost_group(draft));
    }
    let mut causes = Vec::new();
    for (key, holds, cause) in found {
        if !holds {
            draft.status.acted_on.remove(&key);
        } else if draft.status.acted_on.insert(key) {
            causes.push(cause);
        }
    }
    causes
}

fn task_cause(
    draft: &Draft<'_>,
    event: PolicyEvent,
    task: &TaskSpec,
    holds: bool,
    words: String,
) -> (String, bool, Cause) {
    // The pod that has it worst stands for the task.
    let worst = members(draft)
        .filter(|(_, view)| *view.name == *task.name)
        .max_by_key(|(pod, view)| (pod.restarts(), std::cmp::Reverse(view.index)));
    let cause = Cause {
        events: vec![event],
        task: task.name.clone(),
        pod: worst.map(|(pod, _)| pod.name.to_string()).unwrap_or_default(),
        uid: worst.map(|(pod, _)| pod.uid.to_string()).unwrap_or_default(),
        exit_code: 0,
        words,
    };
    (format!("{event:?}/{}", task.name), holds, cause)
}

fn lost_group(draft: &Draft<'_>) -> (String, bool, Cause) {
    let group = super::group::current(draft);
    let holds = group.is_some_and(|group| group.facts.status.phase == "Unknown");
    let said = group.and_then(|group| group.facts.status.obstacle());
    let said = said.map_or(String::new(), |condition| format!(": {}", condition.message));
    let cause = Cause {
        events: vec![PolicyEvent::Unknown],
        task: String::new(),
        pod: String::new(),
        uid: String::new(),
        exit_code: 0,
        words: format!("Some pods of the PodGroup run and the others cannot be placed{said}."),
    };
    ("Unknown".to_owned(), holds, cause)
}

/// Restarts in place of a task's pods that are not at their end.
fn restarts(draft: &Draft<'_>, task: &str) -> i64 {
    members(draft)
        .filter(|(pod, view)| {
            *view.name == *task
                && matches!(pod.phase, Phase::Running | Phase::Pending)
                && pod.deletion.is_none()
                && !is_condemned(draft, pod)
        })
        .map(|(pod, _)| pod.restarts())
        .sum()
}

/// The phase of a pod for everything but its deletion. As long as nobody can tell whether its programs
/// failed or were evicted, it runs.
pub(super) fn phase(draft: &Draft<'_>, pod: &PodView) -> Phase {
    if open_until(draft, pod).is_some() { Phase::Running } else { pod.phase }
}

/// Looks again when the end of a pod can be judged.
pub(super) fn look_ahead(draft: &Draft<'_>, plan: &mut Plan) {
    for until in members(draft).filter_map(|(pod, _)| open_until(draft, pod)) {
        plan.look_again(until);
    }
}

fn open_until(draft: &Draft<'_>, pod: &PodView) -> Option<Timestamp> {
    unclear_until(pod, failure::WHOSE, draft.now, draft.config.final_phase_ms)
}

/// Whether the pod's programs have ended.
pub(super) fn ended(pod: &PodView) -> bool {
    pod.phase.is_finished()
}

/// Forgets failed pods: those that stay after a kill are no concern of the next run.
pub(super) fn forget_failed(draft: &mut Draft<'_>) {
    draft.status.pods.retain(|_, record| record.phase != FAILED);
}
