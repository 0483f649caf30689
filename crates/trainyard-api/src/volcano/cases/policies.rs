//! Cases about lifecycle policies, of jobs and of tasks.

use serde_json::{Value, json};

use super::{Case, accepted, refused, spec};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, message, policies) in lists() {
        let change = |job: &mut Value| spec(job)["policies"] = policies.clone();
        cases.push(case(&format!("{name}, of the job"), message, change));
        let change = |job: &mut Value| spec(job)["tasks"][1]["policies"] = policies.clone();
        cases.push(case(&format!("{name}, of a task"), message, change));
    }
    cases.push(accepted("the same event for job and task", |job| {
        let policies = json!([{"event": "PodFailed", "action": "RestartJob"}]);
        spec(job)["policies"] = policies.clone();
        spec(job)["tasks"][0]["policies"] = policies;
    }));
    cases.push(accepted("every action", |job| {
        let codes = crate::volcano::crd::ACTIONS.into_iter().zip(1..);
        let policy = |(action, code): (&str, i32)| json!({"exitCode": code, "action": action});
        spec(job)["policies"] = codes.map(policy).collect();
    }));
    cases
}

fn case(name: &str, message: Option<&str>, change: impl FnOnce(&mut Value)) -> Case {
    match message {
        None => accepted(name, change),
        Some(message) => refused(name, message, change),
    }
}

/// Lists of policies and why they are refused, if they are.
fn lists() -> Vec<(&'static str, Option<&'static str>, Value)> {
    let restart = |event: &str| json!({"event": event, "action": "RestartJob"});
    vec![
        ("one event", None, json!([restart("PodEvicted")])),
        ("any event", None, json!([{"event": "*", "action": "AbortJob"}])),
        (
            "events and codes",
            None,
            json!([
                {"events": ["PodFailed", "PodEvicted", "PodFailed"], "action": "RestartTask"},
                {"exitCode": 137, "action": "RestartPod"},
                {"event": "PodPending", "action": "TerminateJob", "timeout": "10m"},
            ]),
        ),
        (
            "an event and a code",
            Some("must not specify event and exitCode simultaneously; valid events are [* "),
            json!([{"event": "PodFailed", "exitCode": 1, "action": "RestartJob"}]),
        ),
        (
            "neither event nor code",
            Some("either event and exitCode should be specified; valid events are"),
            json!([{"events": [], "action": "RestartJob"}]),
        ),
        ("no action", Some("invalid policy action"), json!([{"event": "PodFailed"}])),
        (
            "an unknown action",
            Some("Unsupported value: \"Explode\""),
            json!([{"event": "PodFailed", "action": "Explode"}]),
        ),
        ("an unknown event", Some("Unsupported value: \"Rain\""), json!([restart("Rain")])),
        ("an inner event", Some("invalid policy event"), json!([restart("OutOfSync")])),
        (
            "an inner event among others",
            Some("invalid policy event"),
            json!([{"events": ["PodFailed", "PodRunning"], "action": "RestartJob"}]),
        ),
        (
            "one event twice",
            Some("duplicate event PodFailed  across different policy"),
            json!([restart("PodFailed"), {"events": ["PodFailed"], "action": "AbortJob"}]),
        ),
        (
            "one code twice",
            Some("duplicate exitCode 3"),
            json!([
                {"exitCode": 3, "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"},
            ]),
        ),
        (
            "success as a failure",
            Some("0 is not a valid error code"),
            json!([{"exitCode": 0, "action": "RestartJob"}]),
        ),
        (
            "any event and another",
            Some("if there's * here, no other policy should be here"),
            json!([restart("*"), {"event": "PodFailed", "action": "AbortJob"}]),
        ),
        (
            "any event and another in one",
            Some("if there's * here, no other policy should be here"),
            json!([{"events": ["*", "PodFailed"], "action": "AbortJob"}]),
        ),
        (
            "a time that is none",
            Some("should match"),
            json!([{"event": "PodPending", "action": "AbortJob", "timeout": "soon"}]),
        ),
    ]
}
