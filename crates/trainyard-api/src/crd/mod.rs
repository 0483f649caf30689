//! The custom resource definition of TFJob, as data.
//!
//! Owns which versions are served, their schemas, columns and subresources. The rules in it are the
//! only statement of what a valid job is: the API server evaluates them, and so does
//! [`crate::validate`]. Must not evaluate anything itself.

mod rules;
mod spec_schema;
mod status_schema;
pub(crate) mod template;

use serde_json::{Value, json};

use self::spec_schema::Depth;
use crate::names;

/// The definition `tfjobs.kubeflow.org`, complete.
#[must_use]
pub fn tfjob_crd() -> Value {
    let mut versions = vec![version(names::VERSION, Depth::Complete)];
    versions.extend(names::LEGACY_VERSIONS.iter().map(|name| version(name, Depth::Open)));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": names::CRD_NAME},
        "spec": {
            "group": names::GROUP,
            "names": {
                "kind": names::KIND,
                "listKind": "TFJobList",
                "plural": names::PLURAL,
                "singular": "tfjob",
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": versions,
        },
    })
}

/// The schema of a served version; nothing when the version is not served.
#[must_use]
pub fn tfjob_schema(version: &str) -> Option<Value> {
    if version == names::VERSION {
        Some(schema(Depth::Complete))
    } else {
        names::LEGACY_VERSIONS.contains(&version).then(|| schema(Depth::Open))
    }
}

fn version(name: &str, depth: Depth) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": name == names::VERSION,
        "additionalPrinterColumns": columns(),
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.tfReplicaSpecs.Worker.replicas",
                "statusReplicasPath": ".status.replicaStatuses.Worker.active",
                "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
            },
        },
        "schema": {"openAPIV3Schema": schema(depth)},
    })
}

fn schema(depth: Depth) -> Value {
    let mut status = status_schema::status();
    if depth == Depth::Open {
        status["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    let mut schema = json!({
        "type": "object",
        "description": "A distributed TensorFlow training job.",
        "properties": {
            "apiVersion": {"type": "string", "description": "Group and version of this object."},
            "kind": {"type": "string", "description": "TFJob."},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "spec": spec_schema::spec(depth),
            "status": status,
        },
        "x-kubernetes-validations": rules::job(),
    });
    if depth == Depth::Open {
        strip_descriptions(&mut schema);
    }
    schema
}

/// The old versions are explained by the new one; this keeps the definition small.
fn strip_descriptions(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else {
        return;
    };
    node.remove("description");
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(strip_descriptions);
    }
    for child in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(child) {
            strip_descriptions(child);
        }
    }
}

/// State and Age as the reference operator shows them; ours only with `-o wide`.
fn columns() -> Value {
    let wide = |name: &str, kind: &str, path: &str, description: &str| {
        json!({
            "name": name, "type": kind, "jsonPath": path,
            "description": description, "priority": 1,
        })
    };
    json!([
        {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        wide("Restarts", "integer", ".status.restarts", "Restarts that count towards backoffLimit."),
        wide(
            "Unavailable", "string", ".status.unavailableReplicas[0].replica",
            "The first replica that has started and does not run now.",
        ),
        wide(
            "Since", "date", ".status.unavailableReplicas[0].since",
            "Since when that replica does not run.",
        ),
        wide("Failure", "string", ".status.failure.kind", "What ended a job that failed."),
        wide("Message", "string", ".status.conditions[-1:].message", "The last condition's message."),
    ])
}

#[cfg(test)]
mod tests {
    use trainyard_schema::jsonpath::Path;

    use super::*;

    /// `kubectl apply` keeps the whole definition in an annotation of at most 262,144 bytes.
    #[test]
    fn plain_kubectl_apply_can_take_the_definition() {
        let size = tfjob_crd().to_string().len();
        assert!(size < 150_000, "{size} bytes");
    }

    #[test]
    fn exactly_the_stored_version_is_stored_and_all_are_served() {
        let crd = tfjob_crd();
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let served: Vec<_> = versions
            .iter()
            .map(|version| (version["name"].as_str().unwrap(), version["storage"] == true))
            .collect();
        assert_eq!(
            served,
            [("v1", true), ("v1beta2", false), ("v1beta1", false), ("v1alpha2", false)]
        );
        assert!(versions.iter().all(|version| version["served"] == true));
    }

    #[test]
    fn the_default_table_is_the_one_people_know() {
        let columns = columns();
        let plain: Vec<_> = columns
            .as_array()
            .unwrap()
            .iter()
            .filter(|column| column.get("priority").is_none())
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        assert_eq!(plain, ["State", "Age"]);
    }

    #[test]
    fn the_wide_table_names_the_first_replica_that_is_away_and_since_when() {
        let shown = |status: Value| {
            let job = json!({"status": status});
            ["State", "Unavailable", "Since"].map(|name| {
                let columns = columns();
                let column = columns.as_array().unwrap().iter().find(|one| one["name"] == name);
                let path = Path::parse(column.unwrap()["jsonPath"].as_str().unwrap()).unwrap();
                path.find(&job).first().map(|found| found.as_str().unwrap().to_owned())
            })
        };
        let conditions = json!([{"type": "Created"}, {"type": "Restarting"}]);
        let away = |replica: &str| json!({"replica": replica, "since": "2026-01-01T00:00:00Z"});
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            shown(json!({
                "conditions": conditions,
                "unavailableReplicas": [away("ps-0"), away("worker-1")],
            })),
            [some("Restarting"), some("ps-0"), some("2026-01-01T00:00:00Z")]
        );
        assert_eq!(shown(json!({"conditions": conditions})), [some("Restarting"), None, None]);
    }

    #[test]
    fn a_version_that_is_not_served_has_no_schema() {
        assert!(tfjob_schema("v1alpha1").is_none());
        assert!(tfjob_schema("v1beta2").is_some());
    }
}
