//! What a kubelet says of one container, from what it said before. Pure.

use serde_json::{Value, json};

/// The word for a container that a kubelet could not find when its pod was terminated.
const UNKNOWN: &str = "ContainerStatusUnknown";
/// The same for people.
const NOT_FOUND: &str = "The container could not be located when the pod was terminated";

/// How a container ended.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Its exit code.
    pub code: i64,
    /// The kubelet's word; `Completed` or `Error` when empty.
    pub reason: &'a str,
    /// Its termination message.
    pub message: &'a str,
}

impl End<'_> {
    /// By a program that leaves no last words.
    pub(in crate::kubelet) const fn by(code: i64) -> Self {
        Self { code, reason: "", message: "" }
    }

    /// Of a container that had not started when its pod was terminated.
    pub(in crate::kubelet) const fn unknown() -> Self {
        Self { code: 137, reason: UNKNOWN, message: NOT_FOUND }
    }

    fn state(self, started_at: &Value, at: &str) -> Value {
        let reason = match (self.reason, self.code) {
            (_, 0) => "Completed",
            ("", _) => "Error",
            (reason, _) => reason,
        };
        let mut state = json!({
            "exitCode": self.code, "reason": reason, "message": self.message,
            "startedAt": null, "finishedAt": null,
        });
        // Nobody has seen when that was.
        if reason != UNKNOWN {
            state["startedAt"] = started_at.as_str().unwrap_or(at).into();
            state["finishedAt"] = at.into();
        }
        json!({"terminated": state})
    }
}

/// What a container does.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::kubelet) enum Doing<'a> {
    /// What it did before; it waits for its turn if nothing was said of it yet.
    #[default]
    Same,
    /// It waits, for what is told by a word and by a sentence.
    Waits(&'a str, &'a str),
    /// It runs: again, if it has ended before.
    Runs,
    /// It has ended.
    Ended(End<'a>),
    /// It is stopped: so it ends if it runs, and is not started again if it has ended.
    Stopped(End<'a>),
}

/// The status of the container of a specification, after the status `before`. One of which nothing was said
/// yet waits for `turn`.
pub(super) fn status(
    spec: &Value,
    before: &Value,
    doing: Doing<'_>,
    turn: &str,
    at: &str,
) -> Value {
    let (said, last) = (&before["state"], &before["lastState"]);
    let ended = [said, last].into_iter().find(|state| state["terminated"].is_object());
    let state = match doing {
        Doing::Same | Doing::Stopped(_) if before.is_null() => json!({"waiting": {"reason": turn}}),
        Doing::Same => return before.clone(),
        Doing::Runs if runs(before) => return before.clone(),
        Doing::Runs => json!({"running": {"startedAt": at}}),
        Doing::Waits(reason, "") => json!({"waiting": {"reason": reason}}),
        Doing::Waits(reason, message) => json!({"waiting": {"reason": reason, "message": message}}),
        Doing::Stopped(end) if runs(before) => end.state(&said["running"]["startedAt"], at),
        Doing::Stopped(_) => ended.unwrap_or(said).clone(),
        Doing::Ended(end) => end.state(&said["running"]["startedAt"], at),
    };
    let is_again = matches!(doing, Doing::Runs) && ended.is_some();
    // As if another had been started and lost.
    let is_lost = runs(before) && state["terminated"]["reason"] == UNKNOWN;
    let count = before["restartCount"].as_i64().unwrap_or(0) + i64::from(is_again || is_lost);
    // A container that stays ended has not ended once more.
    let last = if &state == said { Some(last) } else { ended };
    let last = last.filter(|last| last.is_object()).cloned().unwrap_or_else(|| json!({}));
    let is_up = state["running"].is_object();
    json!({
        "name": spec["name"], "image": spec["image"], "imageID": "played",
        "ready": is_up, "started": is_up, "restartCount": count,
        "state": state, "lastState": last,
    })
}

/// Whether a container runs, by its status.
pub(super) fn runs(status: &Value) -> bool {
    status["state"]["running"].is_object()
}

/// Whether a container has ever run, by its status.
pub(super) fn has_run(status: &Value) -> bool {
    let has_ended = |state: &Value| state["terminated"].is_object();
    runs(status) || has_ended(&status["state"]) || has_ended(&status["lastState"])
}

/// The exit code of a container that has ended, by its status.
pub(super) fn exit_code(status: &Value) -> Option<i64> {
    status["state"]["terminated"]["exitCode"].as_i64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(before: &Value, doing: Doing<'_>) -> Value {
        let spec = json!({"name": "tensorflow", "image": "a"});
        status(&spec, before, doing, "ContainerCreating", "2026-01-01T00:00:00Z")
    }

    #[test]
    fn a_restart_is_counted_and_remembers_the_end_before_it() {
        let waits = after(&Value::Null, Doing::Same);
        assert_eq!(waits["state"]["waiting"]["reason"], "ContainerCreating");
        let first = after(&waits, Doing::Runs);
        assert_eq!((first["restartCount"].as_i64(), &first["lastState"]), (Some(0), &json!({})));
        assert!(first["ready"] == true && runs(&first));
        let ended = after(&first, Doing::Ended(End::by(3)));
        assert_eq!(ended["state"]["terminated"]["reason"], "Error");
        assert_eq!((ended["restartCount"].as_i64(), &ended["ready"]), (Some(0), &json!(false)));
        let backs_off = after(&ended, Doing::Waits("CrashLoopBackOff", "back-off 10s"));
        for before in [&ended, &backs_off] {
            let again = after(before, Doing::Runs);
            assert_eq!(again["restartCount"], 1);
            assert_eq!(again["lastState"]["terminated"]["exitCode"], 3);
        }
        assert!(has_run(&backs_off) && !has_run(&waits));
    }

    #[test]
    fn a_container_that_is_stopped_ends_once() {
        let running = after(&Value::Null, Doing::Runs);
        let stopped = after(&running, Doing::Stopped(End::by(143)));
        assert_eq!(exit_code(&stopped), Some(143));
        let ended = after(&running, Doing::Ended(End::by(3)));
        let backs_off = after(&ended, Doing::Waits("CrashLoopBackOff", ""));
        for before in [&ended, &backs_off] {
            let stopped = after(before, Doing::Stopped(End::by(143)));
            assert_eq!(exit_code(&stopped), Some(3));
        }
        let waits = after(&Value::Null, Doing::Same);
        assert_eq!(exit_code(&after(&waits, Doing::Stopped(End::by(143)))), None);
    }

    #[test]
    fn what_goes_on_is_said_as_before() {
        let running = after(&Value::Null, Doing::Runs);
        assert_eq!(after(&running, Doing::Same), running);
        assert_eq!(after(&running, Doing::Runs), running);
    }
}
