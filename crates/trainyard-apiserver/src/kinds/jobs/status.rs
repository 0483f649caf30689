//! What a job's status may say, and how it may change: its numbers never go back, and its end is
//! final.

use serde_json::Value;
use trainyard_schema::{FieldError, golang};

use crate::kinds::json::{items, not_negative, number, text};

/// Whether a condition is true.
pub(super) fn holds(status: &Value, kind: &str) -> bool {
    let is_it = |one: &Value| text(one, "type") == kind && text(one, "status") == "True";
    items(status, "conditions").iter().any(is_it)
}

/// A status before and after, and what of it has changed.
struct Turn<'a> {
    spec: &'a Value,
    new: &'a Value,
    old: &'a Value,
    errors: Vec<FieldError>,
}

/// What is wrong with a change of a job's status.
pub(super) fn change(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut turn = Turn {
        spec: &new["spec"],
        new: &new["status"],
        old: &old["status"],
        errors: numbers(&new["status"]),
    };
    turn.end_is_one();
    turn.times();
    turn.end_was_announced();
    turn.nothing_is_left();
    turn.indexes();
    turn.success_is_no_failure();
    turn.stays();
    turn.errors
}

fn numbers(status: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        errors.extend(not_negative(&status[key], &format!("status.{key}")));
    }
    let mut seen: Vec<&str> = Vec::new();
    for key in ["succeeded", "failed"] {
        for (at, uid) in items(&status["uncountedTerminatedPods"], key).iter().enumerate() {
            let path = format!("status.uncountedTerminatedPods.{key}[{at}]");
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid(path, uid, "must not be empty"));
            } else if seen.contains(&uid) {
                errors.push(FieldError::duplicate(path, uid));
            } else {
                seen.push(uid);
            }
        }
    }
    errors
}

impl Turn<'_> {
    fn now(&self, kind: &str) -> bool {
        holds(self.new, kind)
    }

    fn turned(&self, kind: &str) -> bool {
        self.now(kind) != holds(self.old, kind)
    }

    fn changed(&self, key: &str) -> bool {
        self.new[key] != self.old[key]
    }

    fn is_finished(&self) -> bool {
        self.now("Complete") || self.now("Failed")
    }

    fn finish_turned(&self) -> bool {
        self.is_finished() != (holds(self.old, "Complete") || holds(self.old, "Failed"))
    }

    fn refuse(&mut self, when: bool, words: &str) {
        if when {
            let path = "status.conditions".to_owned();
            let fault = FieldError { value: None, ..FieldError::invalid(path, Value::Null, words) };
            self.errors.push(fault);
        }
    }

    fn refuse_value(&mut self, when: bool, key: &str, words: &str) {
        if when {
            let value = shown(key, &self.new[key]);
            self.errors.push(FieldError::invalid(format!("status.{key}"), value, words));
        }
    }

    fn require(&mut self, when: bool, key: &str, words: &str) {
        if when {
            self.errors.push(FieldError::required(format!("status.{key}"), words));
        }
    }

    fn end_is_one(&mut self) {
        let complete = self.now("Complete");
        self.refuse(
            complete && self.now("Failed") && (self.turned("Complete") || self.turned("Failed")),
            "cannot set Complete=True and Failed=true conditions",
        );
        self.refuse(
            complete
                && self.now("FailureTarget")
                && (self.turned("Complete") || self.turned("FailureTarget")),
            "cannot set Complete=True and FailureTarget=true conditions",
        );
    }

    fn times(&mut self) {
        let complete = self.now("Complete");
        let ended = !self.new["completionTime"].is_null();
        let turned = self.turned("Complete") || self.changed("completionTime");
        self.refuse_value(
            turned && ended && !complete,
            "completionTime",
            "cannot set completionTime when there is no Complete=True condition",
        );
        let words = "completionTime is required for Complete jobs";
        self.require(turned && !ended && complete, "completionTime", words);
        let time = |key: &str| text(self.new, key).parse::<jiff::Timestamp>().ok();
        let early = match (time("startTime"), time("completionTime")) {
            (Some(start), Some(end)) => end < start,
            _ => false,
        };
        self.refuse_value(
            early && (self.changed("startTime") || self.changed("completionTime")),
            "completionTime",
            "must be equal to or after `startTime`",
        );
    }

    fn end_was_announced(&mut self) {
        self.refuse(
            self.now("Failed")
                && !self.now("FailureTarget")
                && (self.turned("Failed") || self.changed("failedIndexes")),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
        self.refuse(
            self.now("Complete")
                && !self.now("SuccessCriteriaMet")
                && (self.turned("Complete") || self.turned("SuccessCriteriaMet")),
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
    }

    fn nothing_is_left(&mut self) {
        let (finished, turned) = (self.is_finished(), self.finish_turned());
        self.refuse_value(
            finished && number(self.new, "active") > 0 && (turned || self.changed("active")),
            "active",
            "active>0 is invalid for finished job",
        );
        let held_empty = self.spec["suspend"].as_bool() == Some(true)
            && self.spec["completions"].as_i64() == Some(0);
        self.require(
            finished
                && self.new["startTime"].is_null()
                && (turned || self.changed("startTime"))
                && !held_empty,
            "startTime",
            "startTime is required for finished job",
        );
        let uncounted = &self.new["uncountedTerminatedPods"];
        let left =
            !items(uncounted, "succeeded").is_empty() || !items(uncounted, "failed").is_empty();
        self.refuse_value(
            finished && left && (turned || self.changed("uncountedTerminatedPods")),
            "uncountedTerminatedPods",
            "must be empty for finished job",
        );
    }

    fn indexes(&mut self) {
        let changed = self.changed("completedIndexes");
        let said = text(self.new, "completedIndexes");
        let completions = self.spec["completions"].as_i64();
        if changed && let Some(fault) = completions.and_then(|most| index_fault(said, most)) {
            let words = format!("error parsing completedIndexes: {fault}");
            self.refuse_value(true, "completedIndexes", &words);
        }
        let indexed = text(self.spec, "completionMode") == "Indexed";
        self.refuse_value(
            changed && !said.is_empty() && !indexed,
            "completedIndexes",
            "cannot set non-empty completedIndexes when non-indexed completion mode",
        );
        self.refuse_value(
            self.changed("failedIndexes") && !self.new["failedIndexes"].is_null(),
            "failedIndexes",
            "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
        );
        let finished = self.is_finished();
        self.refuse_value(
            finished
                && number(self.new, "terminating") > 0
                && (self.finish_turned() || self.changed("terminating")),
            "terminating",
            "terminating>0 is invalid for finished job",
        );
        self.refuse_value(
            number(self.new, "ready") > number(self.new, "active")
                && (self.changed("ready") || self.changed("active")),
            "ready",
            "cannot set more ready pods than active",
        );
    }

    fn success_is_no_failure(&mut self) {
        let met = self.now("SuccessCriteriaMet");
        self.refuse(
            met && self.now("Failed"),
            "cannot set SuccessCriteriaMet=True and Failed=true conditions",
        );
        self.refuse(
            met && self.now("FailureTarget"),
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        );
    }

    fn stays(&mut self) {
        for kind in ["Failed", "Complete", "FailureTarget"] {
            let words = format!("cannot disable the terminal {kind}=True condition");
            self.refuse(holds(self.old, kind) && !self.now(kind), &words);
        }
        let fewer = |key: &str| number(self.new, key) < number(self.old, key);
        let (failed, succeeded) = (fewer("failed"), fewer("succeeded"));
        self.refuse_value(failed, "failed", "cannot decrease the failed counter");
        let elastic = text(self.spec, "completionMode") == "Indexed"
            && self.spec["completions"] == self.spec["parallelism"];
        self.refuse_value(
            succeeded && !elastic,
            "succeeded",
            "cannot decrease the succeeded counter",
        );
        let moved = |key: &str| !self.old[key].is_null() && self.changed(key);
        let (ended, started) = (moved("completionTime"), moved("startTime"));
        let words = "field is immutable";
        self.refuse_value(ended && !self.new["completionTime"].is_null(), "completionTime", words);
        let resumed = holds(self.old, "Suspended")
            && items(self.new, "conditions")
                .iter()
                .any(|one| text(one, "type") == "Suspended" && text(one, "status") == "False");
        let suspended = self.spec["suspend"].as_bool() == Some(true);
        self.refuse_value(
            started && !resumed && !suspended,
            "startTime",
            "field is immutable for unsuspended job once set",
        );
        let (met, was) = (self.now("SuccessCriteriaMet"), holds(self.old, "SuccessCriteriaMet"));
        self.refuse(was && !met, "cannot disable the SuccessCriteriaMet=True condition");
        self.refuse(
            holds(self.old, "Complete") && !was && met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        );
    }
}

/// A value as the real server has it: counts are never absent.
fn shown(key: &str, value: &Value) -> Value {
    match key {
        "active" | "succeeded" | "failed" => value.as_i64().unwrap_or_default().into(),
        _ => value.clone(),
    }
}

/// What is wrong with a text of indexes.
fn index_fault(text: &str, completions: i64) -> Option<String> {
    let read = |text: &str| -> Result<i64, String> {
        let index = text.parse().map_err(|_| {
            format!("cannot convert string to integer for index: {}", golang::quote(text))
        })?;
        if index >= completions {
            return Err(format!("too large index: {}", golang::quote(text)));
        }
        Ok(index)
    };
    let order = |last, next| format!("non-increasing order, previous: {last}, current: {next}");
    let mut last: Option<i64> = None;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let limits: Vec<&str> = part.split('-').collect();
        let run = match limits.as_slice() {
            [one] => read(one).map(|one| (one, one)),
            [first, end] => read(first).and_then(|first| Ok((first, read(end)?))),
            _ => Err(format!(
                "the fragment {} violates the requirement that an index interval can have at most \
                 two parts separated by '-'",
                golang::quote(part)
            )),
        };
        let (first, end) = match run {
            Ok(run) => run,
            Err(fault) => return Some(fault),
        };
        if limits.len() == 2 && first >= end {
            return Some(order(first, end));
        }
        if let Some(last) = last.filter(|last| *last >= first) {
            return Some(order(last, first));
        }
        last = Some(end);
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(old: &Value, new: &Value) -> Vec<String> {
        let job = |status: &Value| {
            json!({"spec": {"completions": 5, "parallelism": 2, "completionMode": "Indexed"},
                "status": status})
        };
        change(&job(new), &job(old)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_end_is_announced_and_final() {
        let holding = |kinds: &[&str]| {
            let all: Vec<Value> =
                kinds.iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
            json!({"conditions": all, "startTime": "2026-01-01T12:00:00Z"})
        };
        let begun = holding(&[]);
        assert_eq!(
            told(&begun, &holding(&["Failed"])),
            ["status.conditions: Invalid value: cannot set Failed=True condition without the \
              FailureTarget=true condition"]
        );
        let failed = holding(&["FailureTarget", "Failed"]);
        assert_eq!(told(&begun, &failed), [] as [&str; 0]);
        assert_eq!(
            told(&failed, &begun),
            [
                "status.conditions: Invalid value: cannot disable the terminal Failed=True condition",
                "status.conditions: Invalid value: cannot disable the terminal FailureTarget=True \
              condition"
            ]
        );
    }

    #[test]
    fn numbers_do_not_go_back() {
        let old = json!({"failed": 2, "succeeded": 2, "startTime": "2026-01-01T12:00:00Z"});
        let new = json!({"failed": 1, "succeeded": 1, "ready": 1});
        assert_eq!(
            told(&old, &new),
            [
                "status.ready: Invalid value: 1: cannot set more ready pods than active",
                "status.failed: Invalid value: 1: cannot decrease the failed counter",
                "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
                "status.startTime: Invalid value: null: field is immutable for unsuspended job once set"
            ]
        );
    }

    #[test]
    fn indexes_are_in_order_and_exist() {
        assert_eq!(index_fault("0,2-4", 5), None);
        assert_eq!(index_fault("", 5), None);
        assert_eq!(index_fault("0,5", 5).as_deref(), Some("too large index: \"5\""));
        let order = "non-increasing order, previous: 2, current: 1";
        assert_eq!(index_fault("0-2,1", 5).as_deref(), Some(order));
        assert_eq!(index_fault("2-1", 5).as_deref(), Some(order));
        assert!(index_fault("1-2-3", 5).unwrap().starts_with("the fragment \"1-2-3\""));
        assert!(index_fault("x", 5).unwrap().starts_with("cannot convert"));
    }
}
