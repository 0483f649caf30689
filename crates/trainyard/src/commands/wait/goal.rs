//! What is waited for, and whether it is so.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use trainyard_schema::jsonpath::Path;

use crate::failure::Failure;
use crate::present::template::{relaxed, shown};
use crate::present::{items, text};

/// What is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Goal {
    /// A job has finished.
    Finish,
    /// The object is gone.
    Delete,
    /// The object is there.
    Create,
    /// A condition has a status.
    Condition { kind: String, status: String },
    /// What a path leads to has this value, or any.
    Path { text: String, path: Path, value: Option<String> },
}

/// How far an object is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Reached,
    NotYet,
    /// It cannot come to it any more, and why.
    Never(String),
}

const HOW: &str = "write condition=TYPE, delete, create or jsonpath={PATH}=VALUE";

impl FromStr for Goal {
    type Err = String;

    fn from_str(goal: &str) -> Result<Self, String> {
        let (name, rest) = goal.split_once('=').unwrap_or((goal, ""));
        match (name, rest) {
            ("delete", "") => Ok(Self::Delete),
            ("create", "") => Ok(Self::Create),
            ("condition", "") => Err("condition of which type? write condition=Succeeded".into()),
            ("condition", rest) => {
                let (kind, status) = rest.split_once('=').unwrap_or((rest, "True"));
                Ok(Self::Condition { kind: kind.to_owned(), status: status.to_owned() })
            }
            ("jsonpath", rest) if !rest.is_empty() => {
                let (path, value) = path_and_value(rest);
                let parsed = relaxed(path).map_err(|error| format!("{path:?}: {error}"))?;
                let value = value.map(str::to_owned);
                Ok(Self::Path { text: path.to_owned(), path: parsed, value })
            }
            _ => Err(HOW.to_owned()),
        }
    }
}

/// Takes `{.a}=b` apart. An equals sign inside the braces belongs to the path.
fn path_and_value(text: &str) -> (&str, Option<&str>) {
    let end = if text.starts_with('{') { text.rfind('}').map_or(0, |at| at + 1) } else { 0 };
    match text[end..].split_once('=') {
        Some((before, value)) => (&text[..end + before.len()], Some(value)),
        None => (text, None),
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finish => write!(f, "the end"),
            Self::Delete => write!(f, "the deletion"),
            Self::Create => write!(f, "the creation"),
            Self::Condition { kind, status } if status == "True" => write!(f, "condition {kind}"),
            Self::Condition { kind, status } => write!(f, "condition {kind}={status}"),
            Self::Path { text, .. } => write!(f, "{text}"),
        }
    }
}

impl Goal {
    /// Whether an object is as it should be.
    pub(super) fn judge(&self, object: &Value, is_tfjob: bool) -> Result<Verdict, Failure> {
        let reached = match self {
            Self::Delete => object.is_null(),
            Self::Create => !object.is_null(),
            Self::Finish => holds(object, "Succeeded").is_some(),
            Self::Condition { kind, status } => {
                items(object, &["status", "conditions"]).any(|one| {
                    text(one, &["type"]).eq_ignore_ascii_case(kind)
                        && text(one, &["status"]).eq_ignore_ascii_case(status)
                        && is_current(object, one)
                })
            }
            Self::Path { path, value, text } => {
                let found = path.try_find(object).unwrap_or_default();
                match (found.as_slice(), value) {
                    ([], _) => false,
                    (_, None) => true,
                    ([one], Some(value)) => shown(one) == *value,
                    (several, Some(_)) => {
                        return Err(Failure::usage(format!(
                            "{text} leads to {} places: only one can be compared",
                            several.len()
                        )));
                    }
                }
            }
        };
        if reached {
            return Ok(Verdict::Reached);
        }
        let never = match self {
            Self::Finish => holds(object, "Failed"),
            Self::Condition { kind, status } if is_tfjob && status == "True" => lost(object, kind),
            _ => None,
        };
        Ok(never.map_or(Verdict::NotYet, Verdict::Never))
    }
}

/// Why a finished job will never have a condition: the end of a job is final.
fn lost(object: &Value, wanted: &str) -> Option<String> {
    let known = [
        "Created",
        "Running",
        "Restarting",
        "ReplicaFailure",
        "Succeeded",
        "Suspended",
        "Failed",
        "Completed",
    ];
    if !known.iter().any(|kind| kind.eq_ignore_ascii_case(wanted)) {
        return None;
    }
    ["Failed", "Succeeded"]
        .into_iter()
        .filter(|end| !end.eq_ignore_ascii_case(wanted))
        .find_map(|end| holds(object, end))
}

/// Whether a condition is about the object as it is now.
fn is_current(object: &Value, condition: &Value) -> bool {
    match (condition["observedGeneration"].as_i64(), object["metadata"]["generation"].as_i64()) {
        (Some(observed), Some(present)) => observed >= present,
        _ => true,
    }
}

/// What a condition that holds says of the job.
fn holds(object: &Value, kind: &str) -> Option<String> {
    items(object, &["status", "conditions"])
        .find(|one| one["type"] == kind && one["status"] == "True")
        .map(|one| match text(one, &["message"]) {
            "" => format!("the job has {}", kind.to_lowercase()),
            message => format!("the job has {}: {message}", kind.to_lowercase()),
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn goal(text: &str) -> Goal {
        text.parse().unwrap()
    }

    #[test]
    fn goals_are_read() {
        let condition =
            |kind: &str, status: &str| Goal::Condition { kind: kind.into(), status: status.into() };
        assert_eq!(goal("condition=Succeeded"), condition("Succeeded", "True"));
        assert_eq!(goal("condition=Ready=False"), condition("Ready", "False"));
        assert_eq!(goal("delete"), Goal::Delete);
        let filter = goal("jsonpath={.a[?(@.b==\"c\")].d}=x=y");
        assert!(matches!(filter, Goal::Path { value: Some(value), .. } if value == "x=y"));
        for wrong in ["", "ready", "condition", "condition=", "jsonpath", "jsonpath={.a["] {
            assert!(wrong.parse::<Goal>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn conditions_and_paths_are_looked_at() {
        let pod = json!({"status": {"phase": "Running", "n": 3, "conditions": [
            {"type": "Ready", "status": "True"},
        ]}});
        let judge = |text: &str| goal(text).judge(&pod, false).unwrap();
        assert_eq!(judge("condition=ready"), Verdict::Reached);
        assert_eq!(judge("condition=Ready=False"), Verdict::NotYet);
        assert_eq!(judge("jsonpath={.status.phase}=Running"), Verdict::Reached);
        assert_eq!(judge("jsonpath=.status.n=3"), Verdict::Reached);
        assert_eq!(judge("jsonpath={.status.phase}"), Verdict::Reached);
        assert_eq!(judge("jsonpath={.status.phase}=Failed"), Verdict::NotYet);
        assert_eq!(judge("jsonpath={.status.none}"), Verdict::NotYet);
        assert_eq!(judge("create"), Verdict::Reached);
        assert_eq!(goal("create").judge(&Value::Null, false).unwrap(), Verdict::NotYet);
    }

    #[test]
    fn an_old_generations_condition_does_not_count() {
        let object = json!({"metadata": {"generation": 2}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "observedGeneration": 1},
        ]}});
        assert_eq!(goal("condition=Ready").judge(&object, false).unwrap(), Verdict::NotYet);
    }

    #[test]
    fn a_failed_job_will_not_succeed() {
        let job = json!({"status": {"conditions": [
            {"type": "Running", "status": "False"},
            {"type": "Failed", "status": "True", "message": "exit code 1"},
        ]}});
        let never = Verdict::Never("the job has failed: exit code 1".into());
        assert_eq!(goal("condition=Succeeded").judge(&job, true).unwrap(), never);
        assert_eq!(goal("condition=Running").judge(&job, true).unwrap(), never);
        assert_eq!(Goal::Finish.judge(&job, true).unwrap(), never);
        assert_eq!(goal("condition=Failed").judge(&job, true).unwrap(), Verdict::Reached);
        assert_eq!(goal("condition=Other").judge(&job, true).unwrap(), Verdict::NotYet);
        assert_eq!(goal("condition=Succeeded").judge(&job, false).unwrap(), Verdict::NotYet);
    }
}
