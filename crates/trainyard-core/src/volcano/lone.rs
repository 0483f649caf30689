//! The PodGroup of a plain pod: one that names Volcano's scheduler and no group.
//!
//! Pods of one controller share a group of which one is enough. Must not know who makes it.

use serde_json::{Map, Value, json};
use trainyard_api::volcano::names::{ANNOTATION_GROUP, LABEL_QUEUE};

use crate::{
    child::Child,
    min_resources::{Keys, Share, min_resources},
};

/// Where a pod says which queue it waits in; the first counts.
const QUEUES: [&str; 2] = ["scheduling.volcano.sh/queue-name", LABEL_QUEUE];
/// What a pod says that holds for its group as well.
const PASSED: [&str; 3] =
    ["volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone"];
const BUDGETS: [&str; 2] = ["volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"];

/// Returns the PodGroup that a pod is to have, complete; nothing for one that names a group.
#[must_use]
pub fn pod_group_for(pod: &Value) -> Option<Value> {
    let meta = &pod["metadata"];
    let said = |map: &str, key: &str| meta[map][key].as_str().filter(|text| !text.is_empty());
    if said("annotations", ANNOTATION_GROUP).is_some() {
        return None;
    }
    let owners = meta["ownerReferences"].as_array();
    let controller = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let uid = controller.map_or(&meta["uid"], |owner| &owner["uid"]).as_str()?;
    let budget = BUDGETS.into_iter().find(|key| said("annotations", key).is_some());
    let passed = |map: &str| -> Map<String, Value> {
        let keys = PASSED.into_iter().chain(budget);
        keys.filter_map(|key| Some((key.to_owned(), said(map, key)?.into()))).collect()
    };
    let one = Share { priority: 0, least: 0, pods: 1, template: pod };
    let mut spec = json!({
        "minMember": 1, "minResources": min_resources(vec![one], 1, Keys::Quota),
    });
    if let Some(queue) = QUEUES.into_iter().find_map(|key| said("annotations", key)) {
        spec["queue"] = queue.into();
    }
    if let Some(class) = pod["spec"]["priorityClassName"].as_str().filter(|name| !name.is_empty()) {
        spec["priorityClassName"] = class.into();
    }
    Some(json!({
        "apiVersion": Child::PodGroup.api_version(), "kind": Child::PodGroup.kind(),
        "metadata": {
            "name": format!("podgroup-{uid}"), "namespace": meta["namespace"],
            "annotations": passed("annotations"), "labels": passed("labels"),
            "ownerReferences": owners_of_group(meta, controller.is_some()),
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }))
}

/// Returns the owners of the group: those of the pod where one of them controls it, else the pod itself.
///
/// None of them is kept from its deletion until the group is gone: where admission guards that, the scheduler
/// would need a right over the finalizers of every kind that makes pods.
fn owners_of_group(meta: &Value, is_controlled: bool) -> Value {
    if !is_controlled {
        return json!([{
            "apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"],
            "controller": true,
        }]);
    }
    let mut owners = meta["ownerReferences"].clone();
    for owner in owners.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        owner.remove("blockOwnerDeletion");
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "annotations": {
                "scheduling.volcano.sh/queue-name": "q", "volcano.sh/preemptable": "false",
                "volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "1",
                "other": "x"}},
            "spec": {"priorityClassName": "high",
                "containers": [{"resources": {"requests": {"cpu": "2"}}}]},
        })
    }

    #[test]
    fn a_pod_alone_owns_its_group() {
        let group = pod_group_for(&pod()).unwrap();
        let meta = &group["metadata"];
        assert_eq!((&meta["name"], &meta["namespace"]), (&json!("podgroup-u"), &json!("n")));
        assert_eq!(
            meta["ownerReferences"],
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u",
                "controller": true}])
        );
        assert_eq!(
            meta["annotations"],
            json!({"volcano.sh/preemptable": "false", "volcano.sh/jdb-min-available": "1"})
        );
        let spec = &group["spec"];
        assert_eq!((&spec["minMember"], &spec["queue"]), (&json!(1), &json!("q")));
        assert_eq!(spec["priorityClassName"], "high");
        assert_eq!(
            spec["minResources"],
            json!({"cpu": "2", "requests.cpu": "2", "pods": "1", "count/pods": "1"})
        );
        assert_eq!(group["status"], json!({"phase": "Pending"}));
    }

    #[test]
    fn pods_of_one_controller_share_a_group() {
        let mut pod = pod();
        pod["metadata"]["ownerReferences"] = json!([{"uid": "friend"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r-uid",
                "controller": true, "blockOwnerDeletion": true}]);
        let group = pod_group_for(&pod).unwrap();
        assert_eq!(group["metadata"]["name"], "podgroup-r-uid");
        let owners = &mut pod["metadata"]["ownerReferences"];
        owners[1].as_object_mut().unwrap().remove("blockOwnerDeletion");
        assert_eq!(&group["metadata"]["ownerReferences"], owners);
    }

    #[test]
    fn what_a_pod_does_not_say_is_left_out_and_one_with_a_group_needs_none() {
        let mut pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}});
        let spec = pod_group_for(&pod).unwrap()["spec"].clone();
        assert_eq!(spec, json!({"minMember": 1, "minResources": {"pods": "1", "count/pods": "1"}}));
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "g"});
        assert_eq!(pod_group_for(&pod), None);
    }
}
