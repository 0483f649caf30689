//! Which pods that are decided together a job, a group or a pod means. Pure.

use std::collections::BTreeSet;

use serde_json::Value;
use trainyard_api::volcano::names::ANNOTATION_GROUP;
use trainyard_sched::GroupKey;

use crate::cluster::Kind;
use crate::present::{items, one_line, text};

/// Conditions whose message says more than their type.
const TELLING: [&str; 4] = ["Created", "ReplicaFailure", "Restarting", "Failed"];

/// The definition of PodGroup.
pub(super) const CRD_NAME: &str = "podgroups.scheduling.volcano.sh";

pub(super) fn is_group(kind: &Kind) -> bool {
    kind.kind == "PodGroup" && CRD_NAME.ends_with(&kind.group)
}

fn is_pod(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.kind == "Pod"
}

/// Whether a pod belongs to a group.
pub(super) fn is_member(pod: &Value, group: &Value) -> bool {
    of_pod(pod) == key(group)
}

/// Whether its objects can wait for nodes.
pub(super) fn can_wait(kind: &Kind) -> bool {
    kind.is_training() || is_group(kind) || is_pod(kind) || is_batch(kind)
}

fn is_batch(kind: &Kind) -> bool {
    kind.group == "batch" && kind.kind == "Job"
}

/// The groups that an object means: its own, or those of its pods that wait.
pub(super) fn of(kind: &Kind, object: &Value, groups: &[Value], pods: &[Value]) -> Vec<GroupKey> {
    let uid = text(object, &["metadata", "uid"]);
    let is_owner = |one: &&Value| {
        items(one, &["metadata", "ownerReferences"]).any(|owner| owner["uid"] == uid)
    };
    if is_group(kind) {
        return vec![key(object)];
    }
    if is_pod(kind) {
        return vec![of_pod(object)];
    }
    let own: Vec<GroupKey> = groups.iter().filter(is_owner).map(key).collect();
    if !own.is_empty() {
        return own;
    }
    let waits = |pod: &&Value| {
        text(pod, &["spec", "nodeName"]).is_empty() && text(pod, &["status", "phase"]) == "Pending"
    };
    let own = pods.iter().filter(is_owner).filter(waits).map(of_pod);
    own.collect::<BTreeSet<GroupKey>>().into_iter().collect()
}

fn place(object: &Value) -> (String, String) {
    let metadata = |field: &str| text(object, &["metadata", field]).to_owned();
    (metadata("namespace"), metadata("name"))
}

fn key(group: &Value) -> GroupKey {
    let (namespace, name) = place(group);
    GroupKey::PodGroup { namespace, name }
}

fn of_pod(pod: &Value) -> GroupKey {
    let (namespace, name) = place(pod);
    match text(pod, &["metadata", "annotations", ANNOTATION_GROUP]) {
        "" => GroupKey::Pod { namespace, name },
        group => GroupKey::PodGroup { namespace, name: group.to_owned() },
    }
}

/// Why there is nothing to explain.
pub(super) fn why_none(kind: &Kind, object: &Value) -> String {
    let unseen = "no operator has looked at it yet";
    if kind.is_volcano_job() {
        let state = &object["status"]["state"];
        return match text(state, &["phase"]) {
            "" => unseen.to_owned(),
            phase => not_waiting(phase, text(state, &["message"])),
        };
    }
    let last =
        items(object, &["status", "conditions"]).rfind(|condition| condition["status"] == "True");
    match last {
        Some(condition) => {
            let (state, message) = (text(condition, &["type"]), text(condition, &["message"]));
            not_waiting(state, if TELLING.contains(&state) { message } else { "" })
        }
        None if kind.is_tfjob() => unseen.to_owned(),
        None => "none of its pods waits".to_owned(),
    }
}

fn not_waiting(state: &str, message: &str) -> String {
    let message = one_line(message);
    let colon = if message.is_empty() { "" } else { ": " };
    format!("none of its pods waits for a node; it is {state}{colon}{message}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(group: &str, version: &str, kind: &str) -> Kind {
        Kind::example(group, version, kind, "x", true)
    }

    fn owned(name: &str, uid: &str, more: &Value) -> Value {
        let mut object = json!({"metadata": {"name": name, "namespace": "team",
            "ownerReferences": [{"uid": uid}]}});
        if let (Some(object), Some(more)) = (object.as_object_mut(), more.as_object()) {
            object.extend(more.clone());
        }
        object
    }

    fn group(name: &str) -> GroupKey {
        GroupKey::PodGroup { namespace: "team".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn a_job_means_its_group() {
        let job = json!({"metadata": {"name": "vj", "namespace": "team", "uid": "u"}});
        let groups = [owned("other", "v", &json!({})), owned("vj-u", "u", &json!({}))];
        let volcanos = kind("batch.volcano.sh", "v1alpha1", "Job");
        assert_eq!(of(&volcanos, &job, &groups, &[]), [group("vj-u")]);
        let own = kind("scheduling.volcano.sh", "v1beta1", "PodGroup");
        assert_eq!(of(&own, &groups[0], &[], &[]), [group("other")]);
        assert!(can_wait(&own) && can_wait(&volcanos) && !can_wait(&kind("", "v1", "Service")));
    }

    #[test]
    fn without_a_group_its_waiting_pods_are_meant() {
        let job = json!({"metadata": {"name": "mnist", "namespace": "team", "uid": "u"}});
        let waits = json!({"status": {"phase": "Pending"}});
        let runs = json!({"status": {"phase": "Running"}, "spec": {"nodeName": "a"}});
        let pods = [owned("a", "u", &waits), owned("b", "u", &runs), owned("c", "v", &waits)];
        let alone = GroupKey::Pod { namespace: "team".to_owned(), name: "a".to_owned() };
        let tfjob = kind("kubeflow.org", "v1", "TFJob");
        assert_eq!(of(&tfjob, &job, &[], &pods), [alone]);
        let mut pod = owned("d", "u", &waits);
        pod["metadata"]["annotations"] = json!({ANNOTATION_GROUP: "g"});
        assert_eq!(of(&kind("", "v1", "Pod"), &pod, &[], &[]), [group("g")]);
    }

    #[test]
    fn who_does_not_wait_says_how_it_is() {
        let tfjob = kind("kubeflow.org", "v1", "TFJob");
        let job = json!({"status": {"conditions": [{"type": "Running", "status": "True"}]}});
        assert_eq!(why_none(&tfjob, &job), "none of its pods waits for a node; it is Running");
        let refused = json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True",
            "message": "exceeded\nquota"}]}});
        let said = "none of its pods waits for a node; it is ReplicaFailure: exceeded quota";
        assert_eq!(why_none(&tfjob, &refused), said);
        assert_eq!(why_none(&tfjob, &json!({})), "no operator has looked at it yet");
    }
}
