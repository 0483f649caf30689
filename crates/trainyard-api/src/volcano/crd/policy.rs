//! The schema of lifecycle policies and their rules.
//!
//! Owns which events and actions there are and which belong together. The same list stands under a
//! job and under each of its tasks. Must not know where.

use serde_json::{Value, json};

use super::fields::{choice, duration, list, number, object};
use crate::limits::POLICIES_MAX;

/// Most events of one policy: bounds the cost of the rules.
const MAX_EVENTS: u32 = 20;

/// Events that a policy may wait for.
const EVENTS: [&str; 8] = [
    "*",
    "PodPending",
    "PodFailed",
    "PodEvicted",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
];
/// Events that are known but never lead to anything.
const INTERNAL: [&str; 3] = ["PodRunning", "OutOfSync", "CommandIssued"];
/// What a policy may ask for.
pub(crate) const ACTIONS: [&str; 8] = [
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
];

/// A list of policies.
pub(super) fn policies(description: &str) -> Value {
    let mut policies = list(description, POLICIES_MAX, &policy());
    policies["x-kubernetes-validations"] = list_rules();
    policies
}

fn policy() -> Value {
    let known: Vec<_> = EVENTS.into_iter().chain(INTERNAL).collect();
    let mut policy = object(
        "What is done when one thing happens: an event, or an exit code.",
        &json!({
            "action": choice(
                &ACTIONS,
                "What is done. RestartJob, RestartTask and RestartPod make pods again, \
                    CompleteJob ends the job well, TerminateJob ends it for good, AbortJob stops \
                    it until it is resumed.",
            ),
            "event": choice(
                &known,
                "What must happen. * stands for everything. PodFailed: a pod ended badly. \
                    PodEvicted: a pod was deleted. TaskCompleted: all pods of a task ended well. \
                    TaskFailed: containers of a task were restarted too often. PodPending: a pod \
                    waits, for as long as timeout says. Unknown: part of a job that runs cannot \
                    be scheduled.",
            ),
            "events": list(
                "More of them; each one is enough.",
                MAX_EVENTS,
                &json!({"type": "string", "enum": known}),
            ),
            "exitCode": number("The exit code with which a pod must fail; not 0."),
            "timeout": duration(
                "How long to wait before the action, as 10m or 1h30m: it is dropped when the \
                    cause has passed by then. Left out: at once.",
            ),
        }),
    );
    policy["x-kubernetes-validations"] = rules();
    policy
}

/// What is added to every complaint about a policy.
pub(crate) fn valid() -> String {
    let list = |words: &[&str]| words.join(" ");
    format!("valid events are [{}], valid actions are [{}];", list(&EVENTS), list(&ACTIONS))
}

fn literals(words: &[&str]) -> String {
    format!("['{}']", words.join("', '"))
}

const SAYS_EVENT: &str = "(has(self.event) || (has(self.events) && size(self.events) > 0))";

/// Rules about one policy.
fn rules() -> Value {
    let internal = literals(&INTERNAL);
    json!([
        {
            "rule": format!("!({SAYS_EVENT} && has(self.exitCode))"),
            "message": format!("must not specify event and exitCode simultaneously; {}", valid()),
        },
        {
            "rule": format!("{SAYS_EVENT} || has(self.exitCode)"),
            "message": format!("either event and exitCode should be specified; {}", valid()),
        },
        {
            "rule": "has(self.action)",
            "reason": "FieldValueRequired",
            "fieldPath": ".action",
            "message": format!("invalid policy action: none is given; {}", valid()),
        },
        {
            "rule": format!(
                "!(has(self.event) && self.event in {internal}) \
                 && !(has(self.events) && self.events.exists(e, e in {internal}))"
            ),
            "message": format!(
                "invalid policy event: {} are not for policies; {}", INTERNAL.join(", "), valid(),
            ),
        },
        {
            "rule": "!has(self.exitCode) || self.exitCode != 0",
            "fieldPath": ".exitCode",
            "message": format!("0 is not a valid error code; {}", valid()),
        },
    ])
}

/// Rules about a list of policies.
fn list_rules() -> Value {
    let waits = |event: &str| {
        format!("((has(p.event) && p.event == {event}) || (has(p.events) && {event} in p.events))")
    };
    let (each, any) = (waits("e"), waits("'*'"));
    let twice = format!("size(self.map(p, {each}, 1)) > 1");
    let events = literals(&EVENTS);
    let other = "((has(p.event) && p.event != '*') \
        || (has(p.events) && p.events.exists(e, e != '*')))";
    let shared = "has(p.exitCode) \
        && !self.exists_one(o, has(o.exitCode) && o.exitCode == p.exitCode)";
    json!([
        {
            "rule": format!("!{events}.exists(e, {twice})"),
            "message": format!("duplicate event  across different policy; {}", valid()),
            "messageExpression": format!(
                "'duplicate event %s  across different policy; {}'.format(\
                 [{events}.filter(e, {twice})[0]])",
                valid(),
            ),
        },
        {
            "rule": format!("!self.exists(p, {shared})"),
            "message": format!("duplicate exitCode; {}", valid()),
            "messageExpression": format!(
                "'duplicate exitCode %d; {}'.format([self.map(p, {shared}, p.exitCode)[0]])",
                valid(),
            ),
        },
        {
            "rule": format!("!(self.exists(p, {any}) && self.exists(p, {other}))"),
            "message": format!("if there's * here, no other policy should be here; {}", valid()),
        },
    ])
}
