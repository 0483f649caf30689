//! Job of `batch.volcano.sh`.

use std::borrow::Cow;

use serde_json::Value;
use trainyard_api::volcano::names;

use super::{Cause, End, JobKind, Member, Use};
use crate::commands::job_logs::find::replica;
use crate::present::{items, text};

pub(super) const JOB: JobKind = JobKind {
    group: "batch.volcano.sh",
    kind: names::KIND,
    title: "Volcano Job",
    label: names::LABEL_JOB,
    members,
    gang,
    uses,
    known: |job| members(job).iter().map(Member::replica).collect(),
    replica,
    beside: |_| Vec::new(),
    stays: |_| false,
    end,
};

/// More pods of a task than a machine could ever run are not looked at one by one.
const MOST: u64 = 10_000;

/// A task without a name is called after its place.
fn name(task: &Value, at: usize) -> Cow<'_, str> {
    match text(task, &["name"]) {
        "" => format!("default{at}").into(),
        name => name.into(),
    }
}

fn of_task(task: &Value, at: usize, count: u64) -> impl Iterator<Item = Member<'_>> {
    let (role, template) = (name(task, at), &task["template"]);
    (0..count.min(MOST)).map(move |index| Member { role: role.clone(), index, template })
}

fn replicas(task: &Value) -> u64 {
    task["replicas"].as_u64().unwrap_or_default()
}

fn members(job: &Value) -> Vec<Member<'_>> {
    let tasks = items(job, &["spec", "tasks"]).enumerate();
    tasks.flat_map(|(at, task)| of_task(task, at, replicas(task))).collect()
}

/// The least that its PodGroup asks for: what each task needs, and others up to the job's minimum. Tasks
/// that wait for others come later.
fn gang(job: &Value) -> Vec<Member<'_>> {
    let waits = |task: &Value| items(task, &["dependsOn", "name"]).next().is_some();
    let tasks = || items(job, &["spec", "tasks"]).enumerate().filter(|(_, task)| !waits(task));
    let least = |task: &Value| task["minAvailable"].as_u64().unwrap_or_else(|| replicas(task));
    let all: u64 = tasks().map(|(_, task)| least(task)).sum();
    let wanted = job["spec"]["minAvailable"].as_u64().filter(|wanted| *wanted > 0).unwrap_or(all);
    let mut gang: Vec<Member<'_>> =
        tasks().flat_map(|(at, task)| of_task(task, at, least(task))).collect();
    let beyond = tasks().flat_map(|(at, task)| {
        of_task(task, at, replicas(task)).filter(move |member| member.index >= least(task))
    });
    gang.extend(beyond);
    gang.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    gang
}

/// Its queue, and the claims that it says are there.
fn uses(job: &Value) -> Vec<Use<'_>> {
    let claims = items(job, &["spec", "volumes"])
        .map(|volume| text(volume, &["volumeClaimName"]))
        .filter(|name| !name.is_empty())
        .map(|name| Use { kind: "PersistentVolumeClaim", name, is_namespaced: true });
    queue(text(job, &["spec", "queue"])).into_iter().chain(claims).collect()
}

/// A queue that is not there by itself.
pub(super) fn queue(name: &str) -> Option<Use<'_>> {
    let is_made = ["", names::QUEUE, "root"].contains(&name);
    (!is_made).then_some(Use { kind: "Queue", name, is_namespaced: false })
}

fn end(job: &Value) -> Option<End> {
    let state = &job["status"]["state"];
    let phase = text(state, &["phase"]);
    match phase {
        "Completed" => return Some(End::Succeeded),
        "Failed" | "Terminated" | "Aborted" => {}
        _ => return None,
    }
    let (reason, message) = (text(state, &["reason"]), text(state, &["message"]));
    let said: Vec<&str> = [reason, message].into_iter().filter(|word| !word.is_empty()).collect();
    let cause = match reason {
        "InvalidJob" => Cause::Invalid,
        // Only with a time: its pods waited for longer than the job allows.
        "PodPending" => Cause::Deadline,
        _ => Cause::Replica,
    };
    let message = if said.is_empty() {
        format!("the job is {}", phase.to_lowercase())
    } else {
        said.join(": ")
    };
    Some(End::Failed { cause, replica: accused(job, &message), message })
}

/// The replica that a message names, by the name of its pod.
fn accused(job: &Value, message: &str) -> Option<String> {
    let prefix = format!("{}-", text(job, &["metadata", "name"]));
    let known: Vec<String> = members(job).iter().map(Member::replica).collect();
    message
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
        .filter_map(|word| word.strip_prefix(&prefix))
        .find(|word| known.iter().any(|one| one == word))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(min_available: u64, tasks: &Value) -> Value {
        json!({"metadata": {"name": "mnist"},
               "spec": {"minAvailable": min_available, "tasks": tasks}})
    }

    fn names(members: &[Member<'_>]) -> String {
        members.iter().map(Member::replica).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn members_are_those_of_all_tasks() {
        let job =
            job(0, &json!([{"name": "ps", "replicas": 1}, {"replicas": 2}, {"name": "none"}]));
        assert_eq!(names(&members(&job)), "ps-0 default1-0 default1-1");
    }

    #[test]
    fn the_gang_is_the_least_that_is_needed() {
        let tasks = json!([{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 3,
            "minAvailable": 1}]);
        assert_eq!(names(&gang(&job(0, &tasks))), "ps-0 worker-0");
        assert_eq!(names(&gang(&job(3, &tasks))), "ps-0 worker-0 worker-1");
        assert_eq!(names(&gang(&job(1, &tasks))), "ps-0");
        let waits = json!([{"name": "ps", "replicas": 1},
            {"name": "worker", "replicas": 2, "dependsOn": {"name": ["ps"]}}]);
        assert_eq!(names(&gang(&job(3, &waits))), "ps-0");
    }

    #[test]
    fn what_it_uses_beside_its_pods() {
        let job = json!({"spec": {"queue": "vision", "volumes": [
            {"mountPath": "/a", "volumeClaimName": "data"}, {"mountPath": "/b", "volumeClaim": {}}]}});
        let used: Vec<(&str, &str)> = uses(&job).iter().map(|one| (one.kind, one.name)).collect();
        assert_eq!(used, [("Queue", "vision"), ("PersistentVolumeClaim", "data")]);
        assert_eq!(uses(&json!({"spec": {"queue": "default"}})), []);
    }

    #[test]
    fn ends_are_told_apart() {
        let ended = |phase: &str, reason: &str, message: &str| {
            let mut job = job(1, &json!([{"name": "worker", "replicas": 2}]));
            job["status"] =
                json!({"state": {"phase": phase, "reason": reason, "message": message}});
            end(&job)
        };
        for phase in
            ["", "Pending", "Running", "Restarting", "Completing", "Aborting", "Terminating"]
        {
            assert_eq!(ended(phase, "", ""), None, "{phase}");
        }
        assert_eq!(ended("Completed", "", ""), Some(End::Succeeded));
        for phase in ["Failed", "Terminated", "Aborted"] {
            let Some(End::Failed { cause, replica, message }) =
                ended(phase, "PodFailed", "pod default/mnist-worker-1 failed: exit code 1")
            else {
                unreachable!("{phase}");
            };
            assert_eq!((cause, replica.as_deref()), (Cause::Replica, Some("worker-1")));
            assert_eq!(message, "PodFailed: pod default/mnist-worker-1 failed: exit code 1");
        }
        let Some(End::Failed { message, replica, .. }) = ended("Aborted", "", "") else {
            unreachable!()
        };
        assert_eq!((message.as_str(), replica), ("the job is aborted", None));
        for (reason, wanted) in [("InvalidJob", Cause::Invalid), ("PodPending", Cause::Deadline)] {
            let end = ended("Failed", reason, "x");
            assert!(matches!(end, Some(End::Failed { cause, .. }) if cause == wanted), "{reason}");
        }
    }
}
