//! The cells of jobs and disruption budgets.
//!
//! Must not know other kinds.

use serde_json::{Value, json};

use super::Shown;
use super::duration::{human, time};
use super::read::{condition_holds, is_going, joined, list, number, selector};

pub(super) fn job(shown: &Shown<'_>) -> Vec<Value> {
    let job = shown.object;
    let containers = list(job, "/spec/template/spec/containers");
    vec![
        json!(shown.name()),
        json!(status(job)),
        json!(completions(job)),
        json!(length(shown)),
        json!(shown.age()),
        json!(joined(containers, "/name")),
        json!(joined(containers, "/image")),
        json!(selector(job, "/spec/selector")),
    ]
}

fn status(job: &Value) -> &'static str {
    let holds = |kind: &str| condition_holds(job, kind);
    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if is_going(job) {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded");
    match (
        job.pointer("/spec/completions").and_then(Value::as_i64),
        number(job, "/spec/parallelism"),
    ) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// How long a job has run, or ran.
fn length(shown: &Shown<'_>) -> String {
    let at = |pointer: &str| time(shown.object.pointer(pointer));
    let Some(started) = at("/status/startTime") else { return String::new() };
    human(at("/status/completionTime").unwrap_or(shown.now).duration_since(started))
}

pub(super) fn disruption_budget(shown: &Shown<'_>) -> Vec<Value> {
    let budget = shown.object;
    // A number or a share.
    let bound = |field: &str| match budget.pointer(&format!("/spec/{field}")) {
        Some(Value::String(share)) => share.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    };
    vec![
        json!(shown.name()),
        json!(bound("minAvailable")),
        json!(bound("maxUnavailable")),
        json!(number(budget, "/status/disruptionsAllowed")),
        json!(shown.age()),
    ]
}
