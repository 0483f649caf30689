//! Editing the containers of a pod that is still JSON.
//!
//! What is not named here stays as it came. Must not know job kinds.

use serde_json::{Map, Value, json};

/// The list under a key, made if it is not there.
pub(crate) fn list<'a>(
    container: &'a mut Map<String, Value>,
    key: &str,
) -> Option<&'a mut Vec<Value>> {
    let entry = container.entry(key).or_insert_with(|| json!([]));
    if entry.is_null() {
        *entry = json!([]);
    }
    entry.as_array_mut()
}

/// The pod's containers, those that run before the others included if asked for.
pub(crate) fn containers(
    pod_spec: &mut Value,
    init_too: bool,
) -> impl Iterator<Item = &mut Map<String, Value>> {
    let keys = ["initContainers", "containers"];
    let entries = pod_spec.as_object_mut().into_iter().flat_map(|spec| spec.iter_mut());
    entries
        .filter(move |(key, _)| {
            keys.contains(&key.as_str()) && (init_too || key.as_str() == "containers")
        })
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .filter_map(Value::as_object_mut)
}

/// Sets a variable; what it was before is forgotten.
pub(crate) fn set_env(container: &mut Map<String, Value>, variable: &Value) {
    if let Some(env) = list(container, "env") {
        env.retain(|other| other["name"] != variable["name"]);
        env.push(variable.clone());
    }
}

/// Mounts a volume, unless the container says itself what is to be at that place.
pub(crate) fn mount(container: &mut Map<String, Value>, volume: &str, path: &str) {
    if let Some(mounts) = list(container, "volumeMounts")
        && !mounts.iter().any(|other| other["mountPath"] == path)
    {
        mounts.push(json!({"name": volume, "mountPath": path}));
    }
}

/// Lets the kubelet keep the last log lines of a container that fails without a message, so that
/// the job's condition can quote them without the right to read logs.
pub(crate) fn keep_last_words(pod_spec: &mut Value) {
    for container in containers(pod_spec, true) {
        container
            .entry("terminationMessagePolicy")
            .or_insert_with(|| "FallbackToLogsOnError".into());
    }
}
