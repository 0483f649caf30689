//! The cases, put to our own evaluation.

use serde_json::json;

use super::*;
use crate::volcano::{
    JobSpec,
    cases::{Case, tensorflow_job, validation_cases},
    kinds::JOB,
};

fn refusal(case: &Case) -> Option<String> {
    let violations = validate(&case.object, case.old.as_ref()).err()?;
    assert!(!violations.is_empty());
    Some(violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn every_case_ends_as_it_should() {
    let (mut wrong, cases) = (Vec::new(), validation_cases());
    assert!(cases.len() >= 60, "{}", cases.len());
    for case in cases {
        let answer = refusal(&case);
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
        let answer = refusal(&case).unwrap_or_default();
        assert!(!answer.contains("evaluating rule"), "{}: {answer}", case.name);
        if case.refused.is_some() {
            let again = |line: &&str| !line.contains("Checked value must be of type");
            assert!(answer.lines().filter(again).count() <= 1, "{}: {answer}", case.name);
        }
    }
}

#[test]
fn what_is_accepted_can_be_read_and_run() {
    let jobs = validation_cases()
        .into_iter()
        .filter(|case| case.refused.is_none() && Kind::of(&case.object) == Some(&JOB));
    for case in jobs {
        let mut object = case.object.clone();
        schema(&JOB).unwrap().default(&mut object);
        let read = JobSpec::parse(object["spec"].clone()).and_then(|spec| spec.check());
        assert!(read.is_ok(), "{}: {read:?}", case.name);
    }
}

/// Except for what only one of them can see, the rules and the reading agree.
#[test]
fn what_concerns_a_specification_is_refused_where_it_is_read_too() {
    let told_there = [
        "No task specified",
        "minAvailable",
        "duplicate",
        "DAG",
        "plugin",
        "mountPath is",
        "either",
        "simultaneously; valid",
        "partitionPolicy",
        "not a valid error code",
        "if there's *",
    ];
    for case in validation_cases().into_iter().filter(|case| case.old.is_none()) {
        let Some(message) = &case.refused else { continue };
        if !told_there.iter().any(|part| message.contains(part)) || message.contains("Service") {
            continue;
        }
        let read = JobSpec::parse(case.object["spec"].clone()).and_then(|spec| spec.check());
        assert!(read.is_err(), "{}: {message}", case.name);
    }
}

#[test]
fn the_manifest_that_people_know_keeps_every_field() {
    let schema = schema(&JOB).unwrap();
    assert_eq!(schema.unknown_fields(&tensorflow_job()), Vec::<String>::new());
    assert_eq!(validate(&tensorflow_job(), None), Ok(()));
    for case in validation_cases().into_iter().filter(|case| case.refused.is_none()) {
        let schema = Kind::of(&case.object).and_then(super::schema).unwrap();
        assert_eq!(schema.unknown_fields(&case.object), Vec::<String>::new(), "{}", case.name);
    }
}

/// What the API server says when the definition is installed, as far as it can be told without one.
#[test]
fn every_rule_can_be_read_where_it_stands() {
    let mut count = 0;
    for kind in KINDS {
        for report in schema(kind).unwrap().rule_reports() {
            assert_eq!((&report.rule_fault, &report.message_fault), (&None, &None), "{report:?}");
            count += 1;
        }
    }
    assert!(count >= 40, "{count}");
}

/// A status is written often, and must not be held up by what the specification says.
#[test]
fn a_status_can_always_be_written() {
    let mut old = tensorflow_job();
    old["metadata"]["name"] = json!("7".repeat(80));
    old["spec"]["volumes"] =
        json!([{"mountPath": "/a", "volumeClaimName": "a", "volumeClaim": {}}]);
    let mut object = old.clone();
    object["status"] = json!({"state": {"phase": "Running"}});
    assert_eq!(validate(&object, Some(&old)), Ok(()));
}

#[test]
fn other_kinds_are_named() {
    let object = json!({"apiVersion": "batch/v1", "kind": "Job"});
    let told = validate(&object, None).unwrap_err()[0].to_string();
    assert!(told.starts_with("kind: \"Job\" of \"batch/v1\" is not served"), "{told}");
    for object in [json!(null), json!(7), json!([]), json!({"kind": "Queue"})] {
        assert!(validate(&object, None).is_err(), "{object}");
    }
}
