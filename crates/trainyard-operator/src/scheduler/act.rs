//! Carries one decision out: the writes that it takes and the events about them.
//!
//! Must not decide, and must not wait for events.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{debug, warn};
use trainyard_core::Event;
use trainyard_sched::{
    Cause, Condition, Decision, Delta, Doing, GroupCondition, GroupKey, GroupReport, PodName,
    Reported,
};

use super::voice::Voice;
use super::world::World;
use crate::calls::{Call, CallError, Calls, Turn, Verb};
use crate::clock::Clock;

/// What became of a decision.
#[derive(Debug)]
pub(super) struct Done {
    /// Whom it was about.
    pub(super) uid: String,
    /// Whether it was only words.
    pub(super) is_word: bool,
    /// What the state is to be told when it is time to try again, and why.
    pub(super) failure: Option<(Delta, CallError)>,
}

pub(super) struct Actor {
    pub(super) calls: Calls,
    pub(super) world: Arc<World>,
    pub(super) clock: Clock,
    pub(super) voice: Arc<Voice>,
}

impl Actor {
    pub(super) async fn act(&self, decision: Decision) -> Done {
        match decision {
            Decision::Bind { pod, uid, node } => {
                let failure = self.bind(&pod, &uid, &node).await.err().map(|error| {
                    warn!(pod = %pod.name, node, %error, "binding a pod failed");
                    (Delta::Failed(pod, uid.clone(), Doing::Binding(node)), error)
                });
                Done { uid, is_word: false, failure }
            }
            Decision::Evict { pod, uid, cause } => {
                let failure = self.evict(&pod, &uid, &cause).await.err().map(|error| {
                    warn!(pod = %pod.name, %error, "evicting a pod failed");
                    (Delta::Failed(pod, uid.clone(), Doing::Evicting), error)
                });
                Done { uid, is_word: false, failure }
            }
            Decision::Promise { pod, uid, node } => {
                let body = json!({"status": {"nominatedNodeName": node}});
                if let Err(error) = self.patch_pod_status(&pod, &body).await {
                    debug!(pod = %pod.name, %error, "a pod's node was not noted");
                }
                Done { uid, is_word: false, failure: None }
            }
            Decision::BindClaim(bind) => self.bind_claim(&bind).await,
            Decision::ReleaseClaim(release) => self.release_claim(&release).await,
            Decision::Wait { pod, uid, message } => {
                let failure = self.tell_why(&pod, &uid, &message).await.err().map(|error| {
                    debug!(pod = %pod.name, %error, "a waiting pod was not told why");
                    (Delta::Failed(pod, uid.clone(), Doing::Telling), error)
                });
                Done { uid, is_word: true, failure }
            }
            Decision::Report(report) => {
                let failure = self.report(&report).await.err().map(|error| {
                    debug!(group = %report.name, %error, "the status of a group was not written");
                    (reported(&report, None), error)
                });
                Done { uid: report.uid, is_word: true, failure }
            }
        }
    }

    async fn bind(&self, pod: &PodName, uid: &str, node: &str) -> Result<(), CallError> {
        let body = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("{}/binding", path(pod));
        self.send(Verb::Create, "pods/binding", path, &body).await?;
        let words = format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
        let event = Event::normal("Scheduled", words);
        self.voice.of_pod(&pod.namespace, &pod.name, uid, &event);
        Ok(())
    }

    /// Says what happens, notes it on the pod, then deletes it.
    async fn evict(&self, pod: &PodName, uid: &str, cause: &Cause) -> Result<(), CallError> {
        let words = match cause {
            Cause::Preempted(by) => format!("preempt: room for {}", named(by)),
            Cause::Reclaimed(by) => format!("reclaim: room for {}", named(by)),
            Cause::Incomplete => "gang: the rest of it found no room".to_owned(),
        };
        let event = Event::warning("Evict", format!("Pod is evicted, because of {words}"));
        self.voice.of_pod(&pod.namespace, &pod.name, uid, &event);
        if let Some((name, group)) = self.group_of(pod) {
            let event = Event::normal("Evict", format!("{} is evicted, {words}", pod.name));
            self.voice.of_group(&pod.namespace, &name, &group, &event);
        }
        let now = seconds(self.clock.now());
        let body = json!({"metadata": {"uid": uid}, "status": {"conditions": [{
            "type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
            "message": words, "lastTransitionTime": now,
        }]}});
        match self.patch_pod_status(pod, &body).await {
            // Somebody else's pod by now, or nobody's.
            Err(error) if matches!(error.code(), 404 | 409) => return Ok(()),
            Err(error) => debug!(pod = %pod.name, %error, "an eviction was not noted on its pod"),
            Ok(()) => {}
        }
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid},
        });
        match self.send(Verb::Delete, "pods", path(pod), &body).await {
            Err(error) if !matches!(error.code(), 404 | 409) => Err(error),
            _ => Ok(()),
        }
    }

    async fn tell_why(&self, pod: &PodName, uid: &str, why: &str) -> Result<(), CallError> {
        let now = seconds(self.clock.now());
        let body = json!({"metadata": {"uid": uid}, "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": why, "lastTransitionTime": now,
        }]}});
        self.patch_pod_status(pod, &body).await?;
        let event = Event::warning("FailedScheduling", why);
        self.voice.of_pod(&pod.namespace, &pod.name, uid, &event);
        Ok(())
    }

    /// Writes the status of a PodGroup, if it does not say so already.
    async fn report(&self, report: &GroupReport) -> Result<(), CallError> {
        let GroupReport { namespace, name, uid, .. } = report;
        let known = self.world.read(|state| state.pod_group(namespace, name).cloned());
        let Some(known) = known.filter(|known| known.uid == *uid) else { return Ok(()) };
        if report.is_said_by(&known) {
            self.world.tell_quietly(reported(report, Some(known.version)));
            return Ok(());
        }
        let mut status = json!({
            "phase": report.phase.as_str(), "running": report.running,
            "succeeded": report.succeeded, "failed": report.failed,
        });
        let condition = report.condition.as_ref();
        let said = |one: &Condition| {
            let last = known.conditions.last();
            last.is_some_and(|last| last.r#type == one.kind && last.message == one.message)
        };
        let is_new = condition.is_some_and(|one| !said(one));
        if let (Some(one), Value::Object(fields)) = (condition, &mut status) {
            let conditions = self.conditions(&known.conditions, one);
            fields.insert("conditions".to_owned(), json!(conditions));
        }
        let body = json!({"metadata": {"uid": uid}, "status": status});
        let path =
            format!("/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}");
        let call = call(Verb::Patch, "podgroups", path, &body);
        match self.calls.send(call).await {
            Ok(answer) => {
                self.world.tell_quietly(reported(report, Some(version(&answer))));
            }
            // It is gone; the watch tells so.
            Err(error) if error.code() == 404 => return Ok(()),
            Err(error) => return Err(error),
        }
        if let Some(condition) = condition.filter(|_| is_new) {
            let event = match condition.kind {
                "Unschedulable" => Event::warning("Unschedulable", condition.message.clone()),
                _ => Event::normal("Scheduled", "pod group is ready"),
            };
            self.voice.of_group(namespace, name, uid, &event);
        }
        Ok(())
    }

    /// One condition of each type, the newest last.
    fn conditions(&self, before: &[GroupCondition], new: &Condition) -> Vec<GroupCondition> {
        let others = before.iter().filter(|one| one.r#type != new.kind).cloned();
        let now = self.clock.now();
        let new = GroupCondition {
            r#type: new.kind.to_owned(),
            status: "True".to_owned(),
            transition_id: format!("{:x}", now.as_nanosecond()),
            last_transition_time: Some(seconds(now)),
            reason: new.reason.to_owned(),
            message: new.message.clone(),
        };
        others.chain([new]).collect()
    }

    /// Name and identity of the PodGroup of a pod.
    fn group_of(&self, pod: &PodName) -> Option<(String, String)> {
        self.world.read(|state| {
            let GroupKey::PodGroup { namespace, name } = state.group_of(pod)? else { return None };
            let group = state.pod_group(namespace, name)?;
            Some((name.clone(), group.uid.clone()))
        })
    }

    async fn patch_pod_status(&self, pod: &PodName, body: &Value) -> Result<(), CallError> {
        let path = format!("{}/status", path(pod));
        self.send(Verb::PatchItems, "pods/status", path, body).await
    }

    async fn send(
        &self,
        verb: Verb,
        resource: &'static str,
        path: String,
        body: &Value,
    ) -> Result<(), CallError> {
        self.calls.send(call(verb, resource, path, body)).await.map(drop)
    }
}

fn reported(report: &GroupReport, version: Option<u64>) -> Delta {
    Delta::Reported(Box::new(Reported {
        namespace: report.namespace.clone(),
        name: report.name.clone(),
        uid: report.uid.clone(),
        version,
    }))
}

fn named(group: &GroupKey) -> String {
    format!("{}/{}", group.namespace(), group.name())
}

pub(super) fn path(pod: &PodName) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name)
}

pub(super) fn call(verb: Verb, resource: &'static str, path: String, body: &Value) -> Call {
    Call { verb, resource, path, body: body.to_string().into_bytes(), turn: Turn::Usual }
}

/// The version of an object that was answered; 0 when it cannot be compared.
pub(super) fn version(answer: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Answer {
        metadata: trainyard_api::Meta,
    }
    serde_json::from_slice::<Answer>(answer).map_or(0, |answer| answer.metadata.version())
}

pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
