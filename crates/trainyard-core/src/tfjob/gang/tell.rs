//! What is told of a gang as long as it lasts: who is not in it, and what it waits for.
//!
//! Events, and the message of the condition `Created` as long as the job has not run. Must not decide
//! whether pods are made.

use jiff::{SignedDuration, Timestamp};
use trainyard_api::{ConditionType, TfJobSpec};

use super::{Gang, stranger};
use crate::{
    plan::{Event, Plan},
    tfjob::{draft::Draft, limits},
};

impl Gang<'_> {
    /// Adds what is worth telling to the plan.
    pub(in crate::tfjob) fn tell(&self, draft: &Draft<'_>, spec: &TfJobSpec, plan: &mut Plan) {
        plan.notices.extend(strangers(draft, spec));
        plan.notices.extend(too_many(draft, spec));
        if !draft.status.is(ConditionType::Running) {
            plan.notices.extend(self.obstacle());
            self.tell_unseen(draft, plan);
        }
    }

    /// Whether the group itself says why its pods have no nodes.
    #[must_use]
    pub(in crate::tfjob) fn has_obstacle(&self) -> bool {
        self.found.is_some_and(|group| group.facts.status.obstacle().is_some())
    }

    /// What keeps a job from its nodes that has not run yet.
    fn reason_to_wait(&self) -> Option<&str> {
        let status = &self.found?.facts.status;
        let told = status.obstacle().filter(|_| !status.is_placed())?;
        Some(told.message.as_str())
    }

    fn obstacle(&self) -> Option<Event> {
        let told = self.found?.facts.status.obstacle()?;
        let (namespace, name) = (&self.meta.namespace, &self.meta.name);
        let message = format!(
            "PodGroup {namespace}:{name} {}, reason: {}",
            told.r#type.to_lowercase(),
            told.message
        );
        Some(Event::warning("PodGroupPending", message))
    }

    /// A group that nobody has taken up for some time: most likely there is nobody.
    fn tell_unseen(&self, draft: &Draft<'_>, plan: &mut Plan) {
        let unseen = self.found.is_some_and(|group| group.facts.status.phase.is_empty());
        let (Some(since), Some(scheduler), true) = (
            limits::asked_at(&draft.status),
            draft.config.gang.scheduler(),
            unseen && self.waits().is_some(),
        ) else {
            return;
        };
        let patience = SignedDuration::from_millis(draft.config.unseen_group_ms);
        let due = since.checked_add(patience).unwrap_or(Timestamp::MAX);
        if draft.now < due {
            plan.look_again(due);
            return;
        }
        let (namespace, name) = (&self.meta.namespace, &self.meta.name);
        let message = format!(
            "PodGroup {namespace}:{name} has not been taken up by any scheduler; check that \
             {scheduler:?} runs and serves PodGroups"
        );
        plan.notices.push(Event::warning("PodGroupPending", message));
    }
}

/// Says in the condition `Created` why the pods of a job that has not run have no nodes, and takes
/// that back when they have.
pub(in crate::tfjob) fn note_waiting(draft: &mut Draft<'_>, gang: Option<&Gang<'_>>) {
    let name = &draft.meta().name;
    let begin = format!("TFJob {name} is created");
    let waits = format!("{begin} and waits for nodes: ");
    let has_run = draft.status.running_time.is_some();
    let message = match gang.filter(|_| !has_run).and_then(Gang::reason_to_wait) {
        Some(reason) => format!("{waits}{reason}"),
        None => format!("{begin}."),
    };
    let second = draft.second();
    let all = draft.status.conditions.iter_mut();
    let created = all.filter(|one| one.kind == ConditionType::Created);
    // Another controller's words stay until there is something to say.
    for condition in created.filter(|one| {
        one.message != message && (message.starts_with(&waits) || one.message.starts_with(&waits))
    }) {
        condition.message.clone_from(&message);
        condition.last_update_time = Some(second);
    }
}

/// Replicas whose templates name another scheduler.
fn strangers(draft: &Draft<'_>, spec: &TfJobSpec) -> Option<Event> {
    let named = spec.replicas.iter().filter_map(|(kind, replicas)| {
        let other = stranger(&draft.config.gang, &replicas.template)?;
        Some(format!("{kind} ({other})"))
    });
    let named: Vec<String> = named.collect();
    let message = format!(
        "Another scheduler is specified when gang-scheduling is enabled and it will not be \
         overwritten: {} is no part of the gang",
        named.join(", ")
    );
    (!named.is_empty()).then(|| Event::warning("SetPodTemplateSchedulerName", message))
}

/// A minimum that the job could never reach.
fn too_many(draft: &Draft<'_>, spec: &TfJobSpec) -> Option<Event> {
    let least = spec.run_policy.scheduling_policy.as_ref()?.min_available?;
    let ours = spec.replicas.values();
    let ours = ours.filter(|one| stranger(&draft.config.gang, &one.template).is_none());
    let all: u64 = ours.map(|one| u64::from(one.replicas)).sum();
    let message = format!(
        "spec.runPolicy.schedulingPolicy.minAvailable: {least} is more than the {all} replicas of \
         the gang; {all} is used"
    );
    (u64::from(least) > all && all > 0).then(|| Event::warning("MinAvailableTooLarge", message))
}
