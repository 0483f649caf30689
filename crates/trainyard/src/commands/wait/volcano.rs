//! A Volcano Job in the words of conditions: its phase holds, and its end is that of other jobs too.
//!
//! Pure.

use serde_json::{Value, json};

use crate::present::text;

/// The job with a condition for its phase; at its end with `Succeeded` or `Failed` as well.
pub(super) fn conditions(job: &Value) -> Value {
    let state = &job["status"]["state"];
    let phase = text(state, &["phase"]);
    let (reason, message) = (text(state, &["reason"]), text(state, &["message"]));
    let message = match (reason, message) {
        ("", "") if phase == "Aborted" || phase == "Terminated" => phase.to_lowercase(),
        ("", said) | (said, "") => said.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    let holds = |kind: &str| json!({"type": kind, "status": "True", "message": message});
    let mut conditions = vec![holds(phase)];
    match phase {
        "Completed" => conditions.push(holds("Succeeded")),
        "Terminated" | "Aborted" => conditions.push(holds("Failed")),
        _ => {}
    }
    let mut shown = job.clone();
    shown["status"]["conditions"] = conditions.into();
    shown
}

#[cfg(test)]
mod tests {
    use super::super::goal::{Goal, Verdict};
    use super::*;

    fn judge(goal: &Goal, phase: &str) -> Verdict {
        let job = json!({"status": {"state": {"phase": phase, "reason": "PodFailed"},
            "conditions": [{"status": "Pending"}]}});
        goal.judge(&conditions(&job), true).unwrap()
    }

    #[test]
    fn phases_are_conditions() {
        let finish = Goal::Finish;
        assert_eq!(judge(&finish, "Running"), Verdict::NotYet);
        assert_eq!(judge(&finish, "Completed"), Verdict::Reached);
        for phase in ["Failed", "Terminated", "Aborted"] {
            let never = Verdict::Never("the job has failed: PodFailed".to_owned());
            assert_eq!(judge(&finish, phase), never, "{phase}");
        }
        let goal: Goal = "condition=Aborted".parse().unwrap();
        assert_eq!(judge(&goal, "Aborted"), Verdict::Reached);
        let goal: Goal = "condition=Completed".parse().unwrap();
        assert_eq!(judge(&goal, "Running"), Verdict::NotYet);
        assert_eq!(judge(&goal, "Completed"), Verdict::Reached);
        assert!(matches!(judge(&goal, "Failed"), Verdict::Never(_)));
    }
}
