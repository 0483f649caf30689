//! What is changed of a Volcano Job. Pure.

use serde_json::{Value, json};
use trainyard_api::volcano::names;

use super::{Act, Change};
use crate::present::{items, text};

/// The type that is meant when none is named.
const USUAL: &str = "Worker";

fn phase(job: &Value) -> &str {
    text(job, &["status", "state", "phase"])
}

fn check_unfinished(job: &Value) -> Result<(), String> {
    match phase(job) {
        over @ ("Completed" | "Failed" | "Terminated") => {
            Err(format!("the job is {} already", over.to_lowercase()))
        }
        _ => Ok(()),
    }
}

/// Suspension is a Command that aborts the job, as Volcano's own tool writes it.
pub(super) fn suspended(job: &Value, wanted: bool) -> Result<Change, String> {
    check_unfinished(job)?;
    let now = ["Aborting", "Aborted"].contains(&phase(job));
    let said = match (wanted, now == wanted) {
        (true, true) => "is suspended already",
        (true, false) => "suspended",
        (false, true) => "is not suspended",
        (false, false) => "resumed",
    };
    let action = if wanted { "AbortJob" } else { "ResumeJob" };
    let act = if now == wanted { Act::Nothing } else { Act::Create(command(job, action)) };
    Ok(Change { act, said: said.into() })
}

fn command(job: &Value, action: &str) -> Value {
    let metadata = |field: &str| text(job, &["metadata", field]);
    let name = metadata("name");
    let target = json!({
        "apiVersion": names::API_VERSION, "kind": names::KIND, "name": name, "uid": metadata("uid"),
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
        "metadata": {
            "generateName": format!("{name}-{}-", action.to_lowercase()),
            "namespace": metadata("namespace"), "ownerReferences": [&target],
        },
        "action": action, "target": target,
    })
}

/// Changes the count of a task. Minimums that could no longer be reached are lowered with it.
pub(super) fn scaled(job: &Value, task: &str, replicas: u32) -> Result<Change, String> {
    check_unfinished(job)?;
    let tasks: Vec<&Value> = items(job, &["spec", "tasks"]).collect();
    let there: Vec<String> = tasks.iter().enumerate().map(|(at, task)| name(task, at)).collect();
    let named = there.iter().position(|name| name.eq_ignore_ascii_case(task));
    // Who has but one task need not name it.
    let single = (task == USUAL && tasks.len() == 1).then_some(0);
    let found = named.or(single).and_then(|at| Some((at, *tasks.get(at)?)));
    let Some((at, own)) = found else {
        return Err(format!("the job has no task {task}: it has {}", there.join(", ")));
    };
    let count = |task: &Value| task["replicas"].as_u64().unwrap_or_default();
    let (now, wanted) = (count(own), u64::from(replicas));
    if now == wanted {
        return Ok(Change { act: Act::Nothing, said: "has that many already".into() });
    }
    let all = tasks.iter().map(|task| count(task)).sum::<u64>() - now + wanted;
    let place = format!("/spec/tasks/{at}");
    // The list may have changed since it was read.
    let mut patch = Vec::new();
    if !own["name"].is_null() {
        patch.push(json!({"op": "test", "path": format!("{place}/name"), "value": own["name"]}));
    }
    patch.push(json!({"op": "add", "path": format!("{place}/replicas"), "value": wanted}));
    let mut said = "scaled".to_owned();
    let least = own["minAvailable"].as_u64().unwrap_or_default();
    if least > wanted {
        patch.push(json!({"op": "add", "path": format!("{place}/minAvailable"), "value": wanted}));
    }
    let least = job["spec"]["minAvailable"].as_u64().unwrap_or_default();
    if least > all {
        patch.push(json!({"op": "add", "path": "/spec/minAvailable", "value": all}));
        said = format!("scaled, with minAvailable {all} instead of {least}");
    }
    Ok(Change { act: Act::Patch(patch.into()), said: said.into() })
}

fn name(task: &Value, at: usize) -> String {
    match text(task, &["name"]) {
        "" => format!("default{at}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(phase: &str) -> Value {
        json!({"metadata": {"name": "vj", "namespace": "team", "uid": "u"},
            "spec": {"minAvailable": 3, "tasks": [
                {"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 2}]},
            "status": {"state": {"phase": phase}}})
    }

    #[test]
    fn suspension_is_a_command() {
        let change = suspended(&job("Running"), true).unwrap();
        let Act::Create(command) = change.act else { panic!("{change:?}") };
        assert_eq!(command["action"], "AbortJob");
        assert_eq!(command["metadata"]["generateName"], "vj-abortjob-");
        assert_eq!(command["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(command["target"]["apiVersion"], "batch.volcano.sh/v1alpha1");
        assert_eq!(command["target"]["kind"], "Job");
        let change = suspended(&job("Aborted"), false).unwrap();
        assert!(matches!(change.act, Act::Create(command) if command["action"] == "ResumeJob"));
        let change = suspended(&job("Aborting"), true).unwrap();
        assert_eq!((change.act, change.said.as_ref()), (Act::Nothing, "is suspended already"));
        let change = suspended(&job("Pending"), false).unwrap();
        assert_eq!((change.act, change.said.as_ref()), (Act::Nothing, "is not suspended"));
        let problem = suspended(&job("Completed"), true).unwrap_err();
        assert_eq!(problem, "the job is completed already");
    }

    #[test]
    fn a_task_is_scaled_and_the_minimum_follows() {
        let change = scaled(&job(""), "Worker", 5).unwrap();
        let patch = json!([{"op": "test", "path": "/spec/tasks/1/name", "value": "worker"},
            {"op": "add", "path": "/spec/tasks/1/replicas", "value": 5}]);
        assert_eq!((change.act, change.said.as_ref()), (Act::Patch(patch), "scaled"));
        let change = scaled(&job(""), "worker", 1).unwrap();
        assert_eq!(change.said, "scaled, with minAvailable 2 instead of 3");
        let Act::Patch(patch) = change.act else { panic!("no patch") };
        assert_eq!(patch[2], json!({"op": "add", "path": "/spec/minAvailable", "value": 2}));
        assert_eq!(scaled(&job(""), "ps", 1).unwrap().act, Act::Nothing);
        let problem = scaled(&job(""), "chief", 1).unwrap_err();
        assert_eq!(problem, "the job has no task chief: it has ps, worker");
    }

    #[test]
    fn the_only_task_need_not_be_named() {
        let job = json!({"spec": {"tasks": [{"replicas": 4, "minAvailable": 3}]}});
        let Act::Patch(patch) = scaled(&job, USUAL, 2).unwrap().act else { panic!("no patch") };
        assert_eq!(
            patch,
            json!([{"op": "add", "path": "/spec/tasks/0/replicas", "value": 2},
            {"op": "add", "path": "/spec/tasks/0/minAvailable", "value": 2}])
        );
        assert!(scaled(&job, "ps", 2).unwrap_err().contains("it has default0"));
    }
}
