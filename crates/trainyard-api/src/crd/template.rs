//! The schema of pod templates: complete for v1, open for the versions before it.
//!
//! Owns the reading of `pod_template.json`, which is data from the `OpenAPI` document of
//! Kubernetes, and the few additions our rules need. Must not know jobs.

use serde_json::{Value, json};

use super::rules;

/// Written by `schema/extract.py`.
const POD_TEMPLATE: &str = include_str!("pod_template.json");

/// Restart policies of a replica; empty means the default.
pub(super) const RESTART_POLICIES: [&str; 5] = ["Always", "OnFailure", "Never", "ExitCode", ""];

/// The complete schema of a pod template.
pub(crate) fn complete() -> Value {
    let mut template: Value =
        serde_json::from_str(POD_TEMPLATE).expect("the embedded schema is JSON");
    if let Some(spec) = template.pointer_mut("/properties/spec") {
        // Our own rule asks for containers, with an answer that says what to do.
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("required");
        }
        bind(&mut spec["properties"]);
    }
    template
}

/// A schema that declares what the rules look at and lets everything else pass.
pub(super) fn open() -> Value {
    let mut pod = json!({
        "containers": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "required": ["name"],
                "properties": {"image": {"type": "string"}, "name": {"type": "string"}},
            },
        },
        "restartPolicy": {"type": "string"},
    });
    bind(&mut pod);
    json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": pod,
            },
        },
    })
}

/// The schema of `volumes` in a pod, complete.
pub(super) fn volumes() -> Value {
    part("/properties/spec/properties/volumes")
}

/// The schema of `volumeMounts` in a container, complete.
pub(super) fn volume_mounts() -> Value {
    part("/properties/spec/properties/containers/items/properties/volumeMounts")
}

/// The schema of an amount of a resource.
pub(crate) fn quantity() -> Value {
    part("/properties/spec/properties/overhead/additionalProperties")
}

/// The schema of the specification of a volume claim.
pub(crate) fn volume_claim() -> Value {
    part(
        "/properties/spec/properties/volumes/items/properties/ephemeral/properties\
         /volumeClaimTemplate/properties/spec",
    )
}

/// The schema of a label selector.
pub(crate) fn label_selector() -> Value {
    part("/properties/spec/properties/topologySpreadConstraints/items/properties/labelSelector")
}

fn part(pointer: &str) -> Value {
    complete().pointer(pointer).cloned().unwrap_or_else(|| json!({"type": "array"}))
}

/// Adds rules, bounds and the restart policies to the properties of a pod specification.
fn bind(pod: &mut Value) {
    pod["restartPolicy"]["enum"] = json!(RESTART_POLICIES);
    let containers = &mut pod["containers"];
    containers["maxItems"] = json!(rules::MAX_CONTAINERS);
    containers["items"]["x-kubernetes-validations"] = rules::container();
    containers["items"]["properties"]["name"]["maxLength"] = json!(rules::MAX_CONTAINER_NAME);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complete_template_knows_what_the_open_one_binds() {
        let (complete, open) = (complete(), open());
        for pointer in [
            "/properties/spec/properties/restartPolicy/enum",
            "/properties/spec/properties/containers/maxItems",
            "/properties/spec/properties/containers/items/required",
            "/properties/spec/properties/containers/items/x-kubernetes-validations",
            "/properties/spec/properties/containers/items/properties/name/maxLength",
        ] {
            assert!(complete.pointer(pointer).is_some(), "{pointer}");
            assert_eq!(complete.pointer(pointer), open.pointer(pointer), "{pointer}");
        }
        assert!(complete.pointer("/properties/spec/required").is_none());
    }

    #[test]
    fn tensorboard_takes_the_volumes_of_pods() {
        assert!(volumes().pointer("/items/properties/persistentVolumeClaim").is_some());
        assert!(volume_mounts().pointer("/items/properties/mountPath").is_some());
    }

    #[test]
    fn parts_of_pods_serve_other_kinds() {
        assert!(volume_claim().pointer("/properties/storageClassName").is_some());
        assert!(label_selector().pointer("/properties/matchLabels").is_some());
        assert!(quantity().pointer("/pattern").is_some());
    }

    /// Every node of a structural schema has a type, or says that it is an integer or a string.
    #[test]
    fn the_template_is_structural() {
        fn check(path: &str, node: &Value) {
            let typed = node.get("type").is_some_and(Value::is_string)
                || node.get("x-kubernetes-int-or-string") == Some(&json!(true));
            assert!(typed, "{path} has no type: {node}");
            assert!(node.get("$ref").is_none() && node.get("description").is_none(), "{path}");
            for (name, child) in
                node.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                check(&format!("{path}.{name}"), child);
            }
            for child in ["items", "additionalProperties"] {
                if let Some(child) = node.get(child) {
                    check(&format!("{path}[]"), child);
                }
            }
        }
        check("template", &complete());
    }
}
