//! A TFJob as a tree: what was asked for, how far it is, every replica with its pods.
//!
//! Pure: the job and its pods in, text out.

use std::fmt::Write as _;

use serde_json::Value;
use trainyard_api::names;

use super::pod;
use super::sheet::Sheet;
use crate::present::time::{between, time};
use crate::present::{items, text};

/// Replicas of one type that are shown one by one; of more only those that are not as they should be.
pub(super) const ONE_BY_ONE: usize = 20;

pub(super) fn describe(sheet: &mut Sheet, job: &Value, pods: &[Value]) {
    sheet.metadata(job);
    sheet.field("API Version", text(job, &["apiVersion"]));
    sheet.field("Kind", text(job, &["kind"]));
    sheet.field("State", &state(job));
    times(sheet, job);
    policy(sheet, job);
    sheet.conditions(job);
    replicas(sheet, job, pods);
    failure(sheet, job);
}

/// The last condition that holds, and what it says.
fn state(job: &Value) -> String {
    let last =
        items(job, &["status", "conditions"]).rfind(|condition| condition["status"] == "True");
    match last {
        Some(condition) => text(condition, &["type"]).to_owned(),
        None => "not yet seen by an operator".to_owned(),
    }
}

fn times(sheet: &mut Sheet, job: &Value) {
    let status = &job["status"];
    let created = sheet.when(&job["metadata"]["creationTimestamp"]);
    sheet.field("Created", &created);
    let started = sheet.when(&status["startTime"]);
    sheet.maybe(0, "Started", &started);
    let running = sheet.when(&status["runningTime"]);
    sheet.maybe(0, "All Running", &running);
    if time(&status["completionTime"]).is_some() {
        let mut finished = sheet.when(&status["completionTime"]);
        if let Some(took) = between(&status["startTime"], &status["completionTime"]) {
            let _ = write!(finished, ", took {took}");
        }
        sheet.field("Finished", &finished);
    }
    let deleting = sheet.when(&job["metadata"]["deletionTimestamp"]);
    sheet.maybe(0, "Deleting", &deleting);
}

/// What is set of the run policy, wherever the manifest has it.
fn policy(sheet: &mut Sheet, job: &Value) {
    let spec = &job["spec"];
    let mut parts = Vec::new();
    for (field, words) in [
        ("cleanPodPolicy", "clean pods"),
        ("ttlSecondsAfterFinished", "delete after (s)"),
        ("activeDeadlineSeconds", "deadline (s)"),
        ("startTimeoutSeconds", "start within (s)"),
        ("nodeLossTolerationSeconds", "lost node tolerated (s)"),
        ("backoffLimit", "retries"),
        ("restartScope", "restart scope"),
        ("suspend", "suspended"),
    ] {
        let value =
            [&spec["runPolicy"][field], &spec[field]].into_iter().find(|one| !one.is_null());
        if let Some(value) = value {
            parts.push(format!("{words}: {}", crate::present::template::shown(value)));
        }
    }
    sheet.maybe(0, "Run Policy", &parts.join(", "));
    sheet.maybe(0, "Success", text(spec, &["successPolicy"]));
    if let Some(restarts) = job["status"]["restarts"].as_i64().filter(|restarts| *restarts > 0) {
        sheet.field("Restarts", &restarts.to_string());
    }
}

fn replicas(sheet: &mut Sheet, job: &Value, pods: &[Value]) {
    sheet.heading("Replicas");
    let specs = job["spec"]["tfReplicaSpecs"].as_object();
    for (key, spec) in specs.into_iter().flatten() {
        let wanted = spec["replicas"].as_u64().unwrap_or(1);
        one_type(sheet, job, key, spec, wanted, pods);
    }
    let board = of_type(pods, names::TENSORBOARD);
    if !job["spec"]["tensorBoard"].is_null() || !board.is_empty() {
        let address = |pod: &&Value| {
            text(pod, &["metadata", "annotations", names::ANNOTATION_ADDRESS]).to_owned()
        };
        let address = board.iter().map(address).find(|address| !address.is_empty());
        let at = address.map_or_else(String::new, |address| format!(", at {address}"));
        sheet.line(&format!("  TensorBoard: 1{at}"));
        for pod in board {
            one_pod(sheet, job, pod);
        }
    }
}

fn one_type(sheet: &mut Sheet, job: &Value, key: &str, spec: &Value, wanted: u64, pods: &[Value]) {
    let counts = job["status"]["replicaStatuses"]
        .as_object()
        .into_iter()
        .flatten()
        .find(|(name, _)| name.eq_ignore_ascii_case(key))
        .map(|(_, counts)| counts);
    let count = |name: &str| counts.map_or(0, |counts| counts[name].as_i64().unwrap_or_default());
    let container = items(spec, &["template", "spec", "containers"])
        .find(|container| container["name"] == names::CONTAINER);
    let image = container.map_or("", |container| text(container, &["image"]));
    let restart =
        [text(spec, &["restartPolicy"]), text(spec, &["template", "spec", "restartPolicy"])]
            .into_iter()
            .find(|policy| !policy.is_empty())
            .unwrap_or("Never");
    sheet.line(&format!(
        "  {key}: {wanted} ({} active, {} succeeded, {} failed), restart {restart}, image {image}",
        count("active"),
        count("succeeded"),
        count("failed"),
    ));
    let mut own = of_type(pods, &key.to_lowercase());
    if own.len() > ONE_BY_ONE {
        let all = own.len();
        own.retain(|pod| !pod::is_fine(pod));
        sheet.line(&format!("    {} of {all} pods run or have succeeded", all - own.len()));
        own.truncate(ONE_BY_ONE);
    }
    for pod in own {
        one_pod(sheet, job, pod);
    }
}

/// The pods of a replica type, by index.
fn of_type<'a>(pods: &'a [Value], replica_type: &str) -> Vec<&'a Value> {
    let label = |pod: &'a Value, name: &str| text(pod, &["metadata", "labels", name]);
    let mut own: Vec<&Value> =
        pods.iter().filter(|pod| label(pod, names::LABEL_TYPE) == replica_type).collect();
    own.sort_by_key(|pod| label(pod, names::LABEL_INDEX).parse::<u64>().unwrap_or(u64::MAX));
    own
}

fn one_pod(sheet: &mut Sheet, job: &Value, pod: &Value) {
    let name = text(pod, &["metadata", "name"]);
    let node = text(pod, &["spec", "nodeName"]);
    let place = if node.is_empty() { String::new() } else { format!(" on {node}") };
    let replica = name
        .strip_prefix(text(job, &["metadata", "name"]))
        .and_then(|rest| rest.strip_prefix('-'))
        .unwrap_or(name);
    let in_place: i64 = items(pod, &["status", "containerStatuses"])
        .filter_map(|status| status["restartCount"].as_i64())
        .sum();
    let record = items(job, &["status", "replicaRecords"]).find(|one| one["replica"] == replica);
    let counted = record.map_or(0, |record| record["restarts"].as_i64().unwrap_or_default());
    let disrupted = record.map_or(0, |record| record["disruptions"].as_i64().unwrap_or_default());
    let mut line = format!("    {name}: {}{place}", pod::phase(pod));
    let restarts = in_place.max(counted);
    if restarts > 0 {
        let _ = write!(line, ", {restarts} restarts");
    }
    if disrupted > 0 {
        let _ = write!(line, ", {disrupted} disruptions");
    }
    let age = crate::present::time::ago(&pod["metadata"]["creationTimestamp"], sheet.now);
    sheet.line(&format!("{line}, {age} old"));
    for (container, end) in pod::ends(pod, sheet.now) {
        sheet.line(&format!("      {container}: {end}"));
    }
    if let Some(why) = pod::why_pending(pod) {
        sheet.block(6, &why);
    }
}

fn failure(sheet: &mut Sheet, job: &Value) {
    let failure = &job["status"]["failure"];
    if !failure.is_object() {
        return;
    }
    sheet.heading("Failure");
    for (field, name) in [
        ("kind", "Kind"),
        ("pod", "Pod"),
        ("container", "Container"),
        ("exitCode", "Exit Code"),
        ("signal", "Signal"),
        ("reason", "Reason"),
    ] {
        let value = crate::present::template::shown(&failure[field]);
        sheet.maybe(2, name, &value);
    }
    let words = text(failure, &["message"]);
    if !words.is_empty() {
        sheet.line("  Last Words:");
        sheet.block(4, words);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(kind: &str, index: &str, status: &Value) -> Value {
        json!({
            "metadata": {"name": format!("mnist-{kind}-{index}"),
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {names::LABEL_TYPE: kind, names::LABEL_INDEX: index}},
            "spec": {"nodeName": "a"}, "status": status,
        })
    }

    fn described(job: &Value, pods: &[Value]) -> String {
        let mut sheet = Sheet::new("2026-01-01T00:01:00Z".parse().unwrap());
        describe(&mut sheet, job, pods);
        sheet.text()
    }

    #[test]
    fn a_failed_job_explains_itself() {
        let job = json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
            "metadata": {"name": "mnist", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"runPolicy": {"backoffLimit": 2, "cleanPodPolicy": "None"}, "tfReplicaSpecs": {
                "Worker": {"replicas": 2, "restartPolicy": "ExitCode", "template": {"spec": {
                    "containers": [{"name": "tensorflow", "image": "my/mnist"}]}}},
            }},
            "status": {
                "startTime": "2026-01-01T00:00:01Z", "completionTime": "2026-01-01T00:00:31Z",
                "restarts": 2,
                "conditions": [
                    {"type": "Created", "status": "True"},
                    {"type": "Failed", "status": "True", "reason": "TFJobFailed"}],
                "replicaStatuses": {"Worker": {"active": 1, "failed": 1}},
                "replicaRecords": [{"replica": "worker-1", "restarts": 2}],
                "failure": {"kind": "BackoffLimitExceeded", "pod": "mnist-worker-1", "exitCode": 137,
                    "signal": "SIGKILL", "message": "Traceback\nMemoryError"},
            },
        });
        let pods = [
            pod(
                "worker",
                "1",
                &json!({"phase": "Failed", "containerStatuses": [{"name": "tensorflow",
                "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                          "finishedAt": "2026-01-01T00:00:30Z"}}}]}),
            ),
            pod("worker", "0", &json!({"phase": "Running"})),
        ];
        let text = described(&job, &pods);
        for line in [
            "State:        Failed\n",
            "Finished:     2026-01-01T00:00:31Z (29s ago), took 30s\n",
            "Run Policy:   clean pods: None, retries: 2\n",
            "  Worker: 2 (1 active, 0 succeeded, 1 failed), restart ExitCode, image my/mnist\n    \
             mnist-worker-0: Running on a, 60s old\n    \
             mnist-worker-1: Failed on a, 2 restarts, 60s old\n      \
             tensorflow: exit code 137 (OOMKilled), 30s ago\n",
            "Failure:\n  Kind:         BackoffLimitExceeded\n",
            "  Exit Code:    137\n",
            "  Last Words:\n    Traceback\n    MemoryError\n",
        ] {
            assert!(text.contains(line), "{line}\n--- in\n{text}");
        }
    }

    #[test]
    fn a_job_that_nobody_has_seen_says_so() {
        let text = described(&json!({"metadata": {"name": "mnist"}, "spec": {}}), &[]);
        assert!(text.contains("State:        not yet seen by an operator\n"), "{text}");
    }

    #[test]
    fn a_board_says_where_it_is() {
        let job = json!({"metadata": {"name": "mnist"}, "spec": {"tensorBoard": {"logDir": "/l"}}});
        assert!(described(&job, &[]).contains("  TensorBoard: 1\n"));
        let mut board = pod("tensorboard", "0", &json!({"phase": "Running"}));
        board["metadata"]["annotations"] = json!({"trainyard.dev/address": "http://127.0.0.1:1"});
        let text = described(&job, &[board]);
        assert!(text.contains("  TensorBoard: 1, at http://127.0.0.1:1\n"), "{text}");
    }

    #[test]
    fn of_many_replicas_only_the_odd_ones_are_shown() {
        let job = json!({"metadata": {"name": "mnist"}, "spec": {"tfReplicaSpecs": {
            "Worker": {"replicas": 40}}}});
        let mut pods: Vec<Value> = (0..40)
            .map(|index| pod("worker", &index.to_string(), &json!({"phase": "Running"})))
            .collect();
        pods[7]["status"]["phase"] = json!("Pending");
        let text = described(&job, &pods);
        assert!(
            text.contains("    39 of 40 pods run or have succeeded\n    mnist-worker-7: "),
            "{text}"
        );
        assert!(!text.contains("mnist-worker-8"), "{text}");
    }
}
