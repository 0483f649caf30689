//! The cases, put to our own evaluation.

use super::*;
use crate::{TfJobSpec, cases::validation_cases};

fn refusal(object: &Value, old: Option<&Value>) -> Option<String> {
    let violations = validate(object, old).err()?;
    assert!(!violations.is_empty());
    Some(violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_case_ends_as_it_should() {
    let mut wrong = Vec::new();
    for case in validation_cases() {
        let answer = refusal(&case.object, case.old.as_ref());
        let right = match (&case.refused, &answer) {
            (None, None) => true,
            (Some(part), Some(answer)) => answer.contains(part.as_str()),
            _ => false,
        };
        if !right {
            wrong.push(format!("{}: wanted {:?}, got {answer:?}", case.name, case.refused));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is refused is refused for that reason alone: no rule breaks down on another's fault. Only
/// the wrong type of a number is told twice, as the API server does.
#[test]
fn no_rule_breaks_down() {
    for case in validation_cases() {
        let answer = refusal(&case.object, case.old.as_ref()).unwrap_or_default();
        assert!(!answer.contains("cannot be evaluated"), "{}: {answer}", case.name);
        if case.refused.is_some() {
            let again = |line: &&str| !line.contains("Checked value must be of type");
            assert!(answer.lines().filter(again).count() <= 1, "{}: {answer}", case.name);
        }
    }
}

#[test]
fn what_is_accepted_can_be_read() {
    for case in validation_cases().into_iter().filter(|case| case.refused.is_none()) {
        let read = TfJobSpec::parse(case.object["spec"].clone());
        assert!(read.is_ok(), "{}: {read:?}", case.name);
    }
}

#[test]
fn rules_stand_at_the_same_places_in_every_version() {
    fn places(path: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
        if let Some(rules) = schema.get("x-kubernetes-validations") {
            found.push((path.to_owned(), rules.clone()));
        }
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, child) in properties {
            places(&format!("{path}.{name}"), child, found);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(child) = schema.get(key) {
                places(&format!("{path}[{key}]"), child, found);
            }
        }
    }
    let of = |version: &str| {
        let mut found = Vec::new();
        places("", &crd::tfjob_schema(version).unwrap(), &mut found);
        found
    };
    assert!(of("v1").len() >= 8);
    for version in names::LEGACY_VERSIONS {
        assert_eq!(of("v1"), of(version), "{version}");
    }
}

#[test]
fn other_kinds_and_versions_are_named() {
    let object = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind});
    let answer = refusal(&object("kubeflow.org/v1", "PyTorchJob"), None).unwrap();
    assert_eq!(answer, "kind: \"PyTorchJob\" is not supported; use TFJob");
    for version in ["kubeflow.org/v1alpha1", "kubeflow.orgv1", "v1", ""] {
        let answer = refusal(&object(version, "TFJob"), None).unwrap();
        assert!(answer.starts_with(&format!("apiVersion: {version:?} is not served")), "{answer}");
    }
}

#[test]
fn malformed_documents_are_refused_without_panic() {
    for metadata in [json!(null), json!([]), json!({}), json!({"name": 7}), json!({"name": ""})] {
        let object = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": metadata,
            "spec": {"tfReplicaSpecs": {}},
        });
        assert!(refusal(&object, None).unwrap().contains("metadata"), "{object}");
    }
    for object in [json!(null), json!(7), json!([]), json!("TFJob")] {
        assert!(refusal(&object, None).is_some());
    }
    for spec in [json!(null), json!(7), json!([]), json!({"tfReplicaSpecs": 7})] {
        let object = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"},
            "spec": spec,
        });
        assert!(refusal(&object, None).is_some(), "{object}");
        assert!(refusal(&object, Some(&object)).is_some(), "{object}");
    }
}

/// What the API server says when the definition is installed, as far as it can be told without one.
#[test]
fn every_rule_can_be_read_where_it_stands() {
    for version in [names::VERSION, names::LEGACY_VERSIONS[0]] {
        let schema = Schema::parse(&crd::tfjob_schema(version).unwrap()).unwrap();
        let reports = schema.rule_reports();
        assert!(reports.len() >= 15, "{}", reports.len());
        for report in reports {
            assert_eq!((&report.rule_fault, &report.message_fault), (&None, &None), "{report:?}");
        }
    }
}

#[test]
fn what_the_schema_does_not_name_is_found_and_removed() {
    let schema = Schema::parse(&crd::tfjob_schema(names::VERSION).unwrap()).unwrap();
    let mut object = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {"nonsense": 1, "tfReplicaSpecs": {"Worker": {"template": {"spec": {
            "containers": [{"name": "tensorflow", "image": "i", "imagePullpolicy": "Always"}],
        }}}}},
    });
    assert_eq!(
        schema.prune(&mut object),
        ["spec.nonsense", "spec.tfReplicaSpecs.Worker.template.spec.containers[0].imagePullpolicy",]
    );
    schema.default(&mut object);
    assert_eq!(object["spec"]["runPolicy"], json!({"suspend": false}));
}
