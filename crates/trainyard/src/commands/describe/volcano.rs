//! A Volcano Job as a tree: what was asked for, how far it is, every task with its pods.
//!
//! Pure: the job and its pods in, text out.

use std::fmt::Write as _;

use serde_json::Value;
use trainyard_api::volcano::names;

use super::job::ONE_BY_ONE;
use super::pod;
use super::sheet::Sheet;
use crate::present::{items, text};

pub(super) fn describe(sheet: &mut Sheet, job: &Value, pods: &[Value]) {
    sheet.metadata(job);
    sheet.field("API Version", text(job, &["apiVersion"]));
    sheet.field("Kind", text(job, &["kind"]));
    state(sheet, job);
    times(sheet, job);
    asked(sheet, job);
    tasks(sheet, job, pods);
}

fn state(sheet: &mut Sheet, job: &Value) {
    let state = &job["status"]["state"];
    let phase = match text(state, &["phase"]) {
        "" => "not yet seen by an operator",
        phase => phase,
    };
    sheet.field("State", phase);
    sheet.maybe(0, "Reason", text(state, &["reason"]));
    sheet.maybe(0, "Message", text(state, &["message"]));
    let been: Vec<&str> =
        items(job, &["status", "conditions"]).map(|one| text(one, &["status"])).collect();
    sheet.maybe(0, "Phases", &been.join(" → "));
}

fn times(sheet: &mut Sheet, job: &Value) {
    let created = sheet.when(&job["metadata"]["creationTimestamp"]);
    sheet.field("Created", &created);
    let since = sheet.when(&job["status"]["state"]["lastTransitionTime"]);
    sheet.maybe(0, "Since", &since);
    sheet.maybe(0, "Ran", text(job, &["status", "runningDuration"]));
    let deleting = sheet.when(&job["metadata"]["deletionTimestamp"]);
    sheet.maybe(0, "Deleting", &deleting);
}

fn asked(sheet: &mut Sheet, job: &Value) {
    let spec = &job["spec"];
    let queue = match text(spec, &["queue"]) {
        "" => names::QUEUE,
        queue => queue,
    };
    sheet.field("Queue", queue);
    sheet.maybe(0, "Priority Class", text(spec, &["priorityClassName"]));
    let shown = crate::present::template::shown;
    sheet.maybe(0, "Min Available", &shown(&spec["minAvailable"]));
    sheet.maybe(0, "Min Success", &shown(&spec["minSuccess"]));
    let tries = job["status"]["retryCount"].as_u64().unwrap_or_default();
    let most = spec["maxRetry"].as_u64().unwrap_or(names::MAX_RETRY.unsigned_abs());
    sheet.field("Restarts", &format!("{tries}; at {most} the job fails"));
    let plugins: Vec<String> = spec["plugins"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, words)| {
            let words: Vec<&str> =
                words.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            [&[name.as_str()], words.as_slice()].concat().join(" ")
        })
        .collect();
    sheet.maybe(0, "Plugins", &plugins.join(", "));
    policies(sheet, 0, spec);
}

/// What is done when something happens, a line each.
fn policies(sheet: &mut Sheet, indent: usize, of: &Value) {
    for policy in items(of, &["policies"]) {
        let mut when: Vec<String> = items(policy, &["events"])
            .filter_map(Value::as_str)
            .chain(policy["event"].as_str())
            .map(str::to_owned)
            .collect();
        if let Some(code) = policy["exitCode"].as_i64() {
            when.push(format!("exit code {code}"));
        }
        let mut line = format!("{} → {}", when.join(", "), text(policy, &["action"]));
        let after = text(policy, &["timeout"]);
        if !after.is_empty() {
            let _ = write!(line, " after {after}");
        }
        sheet.maybe(indent, "Policy", &line);
    }
}

fn tasks(sheet: &mut Sheet, job: &Value, pods: &[Value]) {
    sheet.heading("Tasks");
    for (at, task) in items(job, &["spec", "tasks"]).enumerate() {
        let name = match text(task, &["name"]) {
            "" => format!("default{at}"),
            name => name.to_owned(),
        };
        let count = |phase: &str| {
            let counts = &job["status"]["taskStatusCount"][name.as_str()]["phase"];
            counts[phase].as_i64().unwrap_or_default()
        };
        let image = items(task, &["template", "spec", "containers"])
            .map(|container| text(container, &["image"]))
            .next()
            .unwrap_or_default();
        let wanted = task["replicas"].as_u64().unwrap_or_default();
        let least = task["minAvailable"].as_u64().filter(|least| *least != wanted);
        let least = least.map_or_else(String::new, |least| format!(", {least} needed"));
        let image = if image.is_empty() { String::new() } else { format!(", image {image}") };
        sheet.line(&format!(
            "  {name}: {wanted} ({} running, {} succeeded, {} failed){least}{image}",
            count("Running"),
            count("Succeeded"),
            count("Failed"),
        ));
        policies(sheet, 4, task);
        let after: Vec<&str> =
            items(task, &["dependsOn", "name"]).filter_map(Value::as_str).collect();
        sheet.maybe(4, "After", &after.join(", "));
        own_pods(sheet, pods, &name);
    }
}

fn own_pods(sheet: &mut Sheet, pods: &[Value], task: &str) {
    let label = |pod: &Value, name: &str| text(pod, &["metadata", "labels", name]).to_owned();
    let mut own: Vec<&Value> =
        pods.iter().filter(|pod| label(pod, names::LABEL_TASK) == task).collect();
    own.sort_by_key(|pod| label(pod, names::LABEL_INDEX).parse::<u64>().unwrap_or(u64::MAX));
    if own.len() > ONE_BY_ONE {
        let all = own.len();
        own.retain(|pod| !pod::is_fine(pod));
        sheet.line(&format!("    {} of {all} pods run or have succeeded", all - own.len()));
        own.truncate(ONE_BY_ONE);
    }
    for pod in own {
        let node = text(pod, &["spec", "nodeName"]);
        let place = if node.is_empty() { String::new() } else { format!(" on {node}") };
        let age = crate::present::time::ago(&pod["metadata"]["creationTimestamp"], sheet.now);
        let name = text(pod, &["metadata", "name"]);
        sheet.line(&format!("    {name}: {}{place}, {age} old", pod::phase(pod)));
        for (container, end) in pod::ends(pod, sheet.now) {
            sheet.line(&format!("      {container}: {end}"));
        }
        if let Some(why) = pod::why_pending(pod) {
            sheet.block(6, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_explains_itself() {
        let job = json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": {"name": "vj", "namespace": "team",
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"minAvailable": 2, "queue": "vision", "plugins": {"env": [], "svc": ["--x"]},
                "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
                "tasks": [{"name": "ps", "replicas": 1}, {"name": "worker", "replicas": 2,
                    "minAvailable": 1, "dependsOn": {"name": ["ps"]},
                    "policies": [{"exitCode": 3, "action": "AbortJob", "timeout": "1m"}],
                    "template": {"spec": {"containers": [{"image": "my/x"}]}}}]},
            "status": {"state": {"phase": "Restarting", "reason": "PodEvicted", "message": "gone"},
                "retryCount": 1, "conditions": [{"status": "Pending"}, {"status": "Running"}],
                "taskStatusCount": {"worker": {"phase": {"Running": 1}}}},
        });
        let pod = json!({"metadata": {"name": "vj-worker-1", "labels": {
                names::LABEL_TASK: "worker", names::LABEL_INDEX: "1"},
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "a"}, "status": {"phase": "Running"}});
        let mut sheet = Sheet::new("2026-01-01T00:01:00Z".parse().unwrap());
        describe(&mut sheet, &job, &[pod]);
        let text = sheet.text();
        for line in [
            "Restarting",
            "PodEvicted → RestartJob",
            "Pending → Running",
            "1; at 3 the job fails",
            "env, svc --x",
            "  ps: 1 (0 running, 0 succeeded, 0 failed)\n",
            "  worker: 2 (1 running, 0 succeeded, 0 failed), 1 needed, image my/x",
            "exit code 3 → AbortJob after 1m",
            "    vj-worker-1: Running on a, ",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
    }
}
