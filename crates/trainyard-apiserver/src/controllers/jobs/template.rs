//! The pods that are made from a job's template. Pure.

use serde_json::{Map, Value, json};

use super::view::{INDEX, TRACKING};

/// No name's beginning is longer, so that what is generated fits behind it.
const PREFIX_MAX: usize = 58;
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// The pod that a job gets next; of an indexed job, that of an index.
pub(super) fn pod(job: &Value, index: Option<u32>) -> Value {
    let (meta, template) = (&job["metadata"], &job["spec"]["template"]);
    let name = meta["name"].as_str().unwrap_or_default();
    let mut finalizers: Vec<Value> =
        template["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|one| one == TRACKING) {
        finalizers.push(json!(TRACKING));
    }
    let mut labels = members(&template["metadata"]["labels"]);
    let mut annotations = members(&template["metadata"]["annotations"]);
    let mut spec = template["spec"].clone();
    if let Some(index) = index {
        annotations.insert(INDEX.to_owned(), json!(index.to_string()));
        labels.insert(INDEX.to_owned(), json!(index.to_string()));
        spec["hostname"] = json!(format!("{name}-{index}"));
        tell_index(&mut spec);
    }
    let mut made = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": prefix(name, index), "labels": labels, "finalizers": finalizers,
            "ownerReferences": [owner(meta)],
        },
        "spec": spec,
    });
    if !annotations.is_empty() {
        made["metadata"]["annotations"] = Value::Object(annotations);
    }
    made
}

/// How a pod names its job.
pub(super) fn owner(job: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job["name"], "uid": job["uid"],
        "controller": true, "blockOwnerDeletion": true,
    })
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// The beginning of a pod's name.
fn prefix(name: &str, index: Option<u32>) -> String {
    let Some(index) = index else { return format!("{name}-") };
    let end = format!("-{index}-");
    let longest = PREFIX_MAX - end.len();
    let kept = if name.len() > longest { name.get(..longest).unwrap_or(name) } else { name };
    format!("{kept}{end}")
}

/// Every container learns its index, unless it says itself what the variable is.
fn tell_index(spec: &mut Value) {
    for key in ["initContainers", "containers"] {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(container) = container.as_object_mut() else { continue };
            let env = container.entry("env").or_insert_with(|| json!([]));
            if env.is_null() {
                *env = json!([]);
            }
            let Some(env) = env.as_array_mut() else { continue };
            if env.iter().any(|variable| variable["name"] == INDEX_VARIABLE) {
                continue;
            }
            let field = format!("metadata.labels['{INDEX}']");
            env.push(json!({
                "name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": field}},
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str) -> Value {
        json!({
            "metadata": {"name": name, "uid": "u"},
            "spec": {"template": {
                "metadata": {"labels": {"job-name": name}},
                "spec": {"containers": [{"name": "a"}, {"name": "b", "env": [
                    {"name": "JOB_COMPLETION_INDEX", "value": "mine"}]}],
                    "initContainers": [{"name": "c", "env": null}]},
            }},
        })
    }

    #[test]
    fn a_pod_is_its_jobs() {
        let made = pod(&job("train"), None);
        assert_eq!(made["metadata"]["generateName"], "train-");
        assert_eq!(made["metadata"]["finalizers"], json!([TRACKING]));
        assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(made["metadata"]["ownerReferences"][0]["controller"], true);
        assert!(made["metadata"].get("annotations").is_none());
        assert!(made["spec"].get("hostname").is_none());
        assert!(made["spec"]["containers"][0].get("env").is_none());
    }

    #[test]
    fn a_pod_knows_its_index() {
        let made = pod(&job("train"), Some(3));
        assert_eq!(made["metadata"]["generateName"], "train-3-");
        assert_eq!(made["metadata"]["labels"][INDEX], "3");
        assert_eq!(made["metadata"]["annotations"][INDEX], "3");
        assert_eq!(made["spec"]["hostname"], "train-3");
        let env = &made["spec"]["containers"][0]["env"][0];
        let field = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        assert_eq!(env["valueFrom"]["fieldRef"]["fieldPath"], field);
        assert_eq!(made["spec"]["containers"][1]["env"][0]["value"], "mine");
        assert_eq!(made["spec"]["containers"][1]["env"].as_array().unwrap().len(), 1);
        assert_eq!(made["spec"]["initContainers"][0]["env"][0]["name"], INDEX_VARIABLE);
    }

    #[test]
    fn long_names_leave_room() {
        assert_eq!(prefix(&"a".repeat(63), Some(12)).len(), PREFIX_MAX);
        assert!(prefix(&"a".repeat(63), Some(12)).ends_with("a-12-"));
    }
}
