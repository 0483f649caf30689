//! Which policy answers to what has happened.
//!
//! The task's policies go before the job's, and in a list the first that names it. Must not know
//! what an action does.

use trainyard_api::volcano::{JobSpec, LifecyclePolicy, PolicyEvent};

use super::events::Cause;

/// The policy that answers, and the event it answers to.
#[must_use]
pub(super) fn answer<'s>(
    spec: &'s JobSpec,
    cause: &Cause,
) -> Option<(&'s LifecyclePolicy, PolicyEvent)> {
    cause.events.iter().find_map(|event| {
        let own = spec.task(&cause.task).into_iter().flat_map(|task| &task.policies);
        let mut all = own.chain(&spec.policies);
        all.find(|policy| hits(policy, *event, cause.exit_code)).map(|policy| (policy, *event))
    })
}

fn hits(policy: &LifecyclePolicy, event: PolicyEvent, exit_code: i64) -> bool {
    let named = policy.events.contains(&event) || policy.events.contains(&PolicyEvent::Any);
    match event {
        // A pod that waits is nothing yet; one that waits too long may be.
        PolicyEvent::PodPending => named && policy.timeout_ms.is_some(),
        PolicyEvent::PodFailed => named || (exit_code != 0 && policy.exit_code == Some(exit_code)),
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Policies from `PodFailed RestartJob`, `3 TerminateJob` and `* RestartPod 1s`.
    fn policies(list: &[&str]) -> Vec<Value> {
        let policy = |text: &&str| {
            let mut words = text.split(' ');
            let (what, action) = (words.next().unwrap(), words.next().unwrap());
            let mut policy = match what.parse::<i64>() {
                Ok(code) => json!({"exitCode": code, "action": action}),
                Err(_) => json!({"event": what, "action": action}),
            };
            policy["timeout"] = json!(words.next());
            policy
        };
        list.iter().map(policy).collect()
    }

    fn found(job: &[&str], task: &[&str], events: &[PolicyEvent], exit_code: i64) -> String {
        let task = json!({"name": "w", "replicas": 1, "policies": policies(task)});
        let spec = JobSpec::parse(json!({"tasks": [task], "policies": policies(job)})).unwrap();
        let cause = Cause {
            events: events.to_vec(),
            task: "w".into(),
            pod: "j-w-0".into(),
            uid: "u".into(),
            exit_code,
            words: String::new(),
        };
        answer(&spec, &cause).map_or("nothing", |(policy, _)| policy.action.as_str()).to_owned()
    }

    #[test]
    fn the_first_that_names_it_and_the_tasks_before_the_jobs() {
        use PolicyEvent::{PodEvicted, PodFailed, PodPending, TaskCompleted, Unknown};
        let (restart, abort, code) =
            ("PodFailed RestartJob", "PodFailed AbortJob", "3 TerminateJob");
        let (any, late) = ("* RestartJob", "* RestartPod 1s");
        let evicted = "PodEvicted RestartJob";
        assert_eq!(found(&[restart], &[], &[PodFailed], 1), "RestartJob");
        assert_eq!(found(&[restart], &[], &[PodEvicted], 0), "nothing");
        assert_eq!(found(&[restart], &[abort], &[PodFailed], 1), "AbortJob");
        assert_eq!(found(&[restart, abort], &[], &[PodFailed], 1), "RestartJob");
        assert_eq!(found(&[restart], &[code], &[PodFailed], 3), "TerminateJob");
        assert_eq!(found(&[restart], &[code], &[PodFailed], 4), "RestartJob");
        assert_eq!(found(&[code, restart], &[], &[PodFailed], 3), "TerminateJob");
        assert_eq!(found(&[restart, code], &[], &[PodFailed], 3), "RestartJob");
        assert_eq!(found(&[code], &[], &[PodEvicted], 3), "nothing");
        assert_eq!(found(&[any], &[], &[TaskCompleted], 0), "RestartJob");
        assert_eq!(found(&[any], &[], &[Unknown], 0), "RestartJob");
        assert_eq!(found(&[any], &[], &[PodPending], 0), "nothing");
        assert_eq!(found(&["PodPending RestartJob"], &[], &[PodPending], 0), "nothing");
        assert_eq!(found(&[any, late], &[], &[PodPending], 0), "RestartPod");
        assert_eq!(found(&[evicted], &[], &[PodFailed, PodEvicted], 0), "RestartJob");
        assert_eq!(found(&[evicted, abort], &[], &[PodFailed, PodEvicted], 0), "AbortJob");
    }
}
