//! Binding a pod to a node.

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use crate::{
    failure::{About, Failure},
    kinds::json::{clear, items, members, object_mut, text},
};

/// Says on which node a pod runs. `now` is the time in the form of the API.
pub(crate) fn bind(pod: &mut Value, binding: &Value, now: &str) -> Result<(), Failure> {
    let name = text(&pod["metadata"], "name").to_owned();
    check(&name, binding)?;
    precondition(&pod["metadata"], &binding["metadata"])?;
    let why = if !pod["metadata"]["deletionTimestamp"].is_null() {
        Some(format!("pod {name} is being deleted, cannot be assigned to a host"))
    } else if !text(&pod["spec"], "nodeName").is_empty() {
        let node = text(&pod["spec"], "nodeName");
        Some(format!("pod {name} is already assigned to node {node:?}"))
    } else if !items(&pod["spec"], "schedulingGates").is_empty() {
        Some(format!("pod {name} has non-empty .spec.schedulingGates"))
    } else {
        None
    };
    if let Some(why) = why {
        return Err(Failure::conflict(About::new("", "pods/binding", &name), &why));
    }
    pod["spec"]["nodeName"] = binding["target"]["name"].clone();
    clear(&mut pod["status"], "nominatedNodeName");
    for key in ["annotations", "labels"] {
        let added: Vec<(String, Value)> = members(&binding["metadata"], key)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !added.is_empty()
            && let Some(known) = object_mut(&mut pod["metadata"], key)
        {
            known.extend(added);
        }
    }
    scheduled(&mut pod["status"], now);
    Ok(())
}

fn check(name: &str, binding: &Value) -> Result<(), Failure> {
    if text(&binding["metadata"], "name") != name {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    let target = &binding["target"];
    let mut errors = Vec::new();
    let kind = text(target, "kind");
    if !kind.is_empty() && kind != "Node" {
        errors.push(FieldError::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if text(target, "name").is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match told.as_slice() {
        [] => Ok(()),
        [one] => Err(Failure::new(500, "", one.clone())),
        several => Err(Failure::new(500, "", format!("[{}]", several.join(", ")))),
    }
}

/// A binding may name the pod that it is for more closely.
fn precondition(pod: &Value, binding: &Value) -> Result<(), Failure> {
    for (key, word) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (said, is) = (text(binding, key), text(pod, key));
        if !said.is_empty() && said != is {
            let why = format!(
                "Precondition failed: {word} in precondition: {said}, {word} in object meta: {is}"
            );
            return Err(Failure::conflict(About::new("", "pods", text(pod, "name")), &why));
        }
    }
    Ok(())
}

fn scheduled(status: &mut Value, now: &str) {
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    tell(status, condition);
}

/// Says that a pod goes because it was evicted. `now` is the time in the form of the API.
pub(crate) fn disrupted(pod: &mut Value, now: &str) {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now, "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    });
    tell(&mut pod["status"], condition);
}

/// Puts a condition in the place of the one of its type.
fn tell(status: &mut Value, condition: Value) {
    let Some(members) = status.as_object_mut() else { return };
    let conditions = members.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == condition["type"]) {
        Some(known) if known["status"] == "True" => {
            let since = known["lastTransitionTime"].clone();
            *known = condition;
            known["lastTransitionTime"] = since;
        }
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        json!({"metadata": {"name": "p", "uid": "u"}, "spec": {}, "status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
        ]}})
    }

    #[test]
    fn a_bound_pod_has_a_node_and_says_so() {
        let mut pod = pod();
        let binding =
            json!({"metadata": {"name": "p", "labels": {"a": "b"}}, "target": {"name": "n"}});
        bind(&mut pod, &binding, "now").unwrap();
        assert_eq!(pod["spec"]["nodeName"], "n");
        assert_eq!(pod["metadata"]["labels"]["a"], "b");
        let expected = json!([{
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": "now",
        }]);
        assert_eq!(pod["status"]["conditions"], expected);
        let again = bind(&mut pod, &binding, "now").unwrap_err();
        assert_eq!(
            again.to_string(),
            "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n\""
        );
    }

    #[test]
    fn a_binding_may_be_meant_for_another_pod() {
        let mut pod = pod();
        let binding = json!({"metadata": {"name": "p", "uid": "other"}, "target": {"name": "n"}});
        assert_eq!(bind(&mut pod, &binding, "now").unwrap_err().kind(), "Conflict");
        let nameless = json!({"metadata": {"name": "q"}, "target": {"name": "n"}});
        assert_eq!(bind(&mut pod, &nameless, "now").unwrap_err().kind(), "BadRequest");
    }
}
