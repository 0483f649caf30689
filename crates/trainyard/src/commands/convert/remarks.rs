//! What is worth knowing about a converted job although nothing is wrong with it.

use serde_json::Value;

/// Remarks about one job, given before and after.
pub(super) fn about(old: &Value, new: &Value) -> impl Iterator<Item = String> {
    let remarks = [
        (old != new).then(|| status_left_out(old, new)).flatten(),
        (new["kind"] == "TFJob").then(|| stored(new)).flatten(),
        (old != new).then(|| standard_server(old)).flatten(),
        (old != new).then(|| master(new)).flatten(),
    ];
    remarks.into_iter().flatten()
}

fn status_left_out(old: &Value, new: &Value) -> Option<String> {
    (old.get("status").is_some() && new.get("status").is_none())
        .then(|| "status is left out: it has another shape in v1".to_owned())
}

/// A job that was read from a cluster carries the identity of the stored object.
fn stored(new: &Value) -> Option<String> {
    let metadata = &new["metadata"];
    let identity: Vec<&str> = ["resourceVersion", "uid"]
        .into_iter()
        .filter(|field| metadata.get(field).is_some())
        .collect();
    (!identity.is_empty()).then(|| {
        format!(
            "metadata.{} came from a cluster; take it out before creating the job anew",
            identity.join(" and metadata.")
        )
    })
}

/// The oldest operator ran a server of its own for a PS without template.
fn standard_server(old: &Value) -> Option<String> {
    let entries = old["spec"].as_object()?.values().filter_map(Value::as_array).flatten();
    let is_bare = |entry: &Value| {
        let field = |name: &str| {
            let fields = entry.as_object()?;
            fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let is_ps = field("tfReplicaType")
            .and_then(Value::as_str)
            .is_some_and(|name| name.eq_ignore_ascii_case("PS"));
        is_ps && field("template").is_none_or(Value::is_null)
    };
    entries.into_iter().any(is_bare).then(|| {
        "PS had no template: it gets one that runs a standard TensorFlow server".to_owned()
    })
}

/// `TF_CONFIG` names the type as the manifest does, and TensorFlow 2 looks for a chief.
fn master(new: &Value) -> Option<String> {
    let replicas = new["spec"]["tfReplicaSpecs"].as_object()?;
    (replicas.contains_key("Master") && replicas.len() > 1).then(|| {
        "TensorFlow 2 calls the deciding replica chief; a program for it needs Chief instead of Master"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remarks(old: &Value) -> Vec<String> {
        let new = trainyard_api::convert::convert(old.clone()).unwrap();
        about(old, &new).collect()
    }

    fn replica(name: &str) -> Value {
        json!({"tfReplicaType": name, "template": {"spec": {
            "containers": [{"name": "tensorflow", "image": "i"}],
        }}})
    }

    #[test]
    fn the_oldest_form_has_much_to_say() {
        let old = json!({
            "apiVersion": "kubeflow.org/v1alpha1", "kind": "TFJob",
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"},
            "spec": {"replicaSpecs": [replica("MASTER"), {"tfReplicaType": "PS"}]},
            "status": {"phase": "Done"},
        });
        let remarks = remarks(&old);
        assert_eq!(remarks.len(), 4, "{remarks:#?}");
        assert!(remarks[1].contains("metadata.resourceVersion and metadata.uid"), "{remarks:#?}");
    }

    #[test]
    fn a_new_job_and_other_kinds_have_nothing() {
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"},
            "spec": {"tfReplicaSpecs": {"Worker": {"template": replica("WORKER")["template"]}}},
        });
        assert_eq!(remarks(&job), [] as [String; 0]);
        assert_eq!(remarks(&json!({"kind": "Pod", "metadata": {"uid": "u"}})), [] as [String; 0]);
    }
}
