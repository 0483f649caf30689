//! Replicas whose pods are gone, and what the job's status still knows of their ends. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::find::replica;
use crate::present::time::ago;
use crate::present::{at, items, lines, one_line, text};
use crate::run::kinds;

/// The replicas of a job that have no pod, each with the reason.
pub(super) fn replicas(job: &Value, pods: &[Value]) -> Vec<(String, String)> {
    let Some(row) = kinds::of(job) else { return Vec::new() };
    let present: Vec<String> = pods.iter().map(replica).collect();
    let absent = (row.known)(job).into_iter().filter(|name| !present.contains(name));
    absent.map(|name| (name.clone(), why(job, &name, (row.end)(job).is_some()))).collect()
}

fn why(job: &Value, replica: &str, has_ended: bool) -> String {
    let policy = [&job["spec"]["runPolicy"]["cleanPodPolicy"], &job["spec"]["cleanPodPolicy"]];
    let policy = policy.into_iter().find_map(Value::as_str);
    let is_tfjob = job["spec"]["tfReplicaSpecs"].is_object();
    let words = match (has_ended, policy) {
        (true, Some("All")) => "its pod was deleted when the job ended (cleanPodPolicy: All)",
        (true, Some("None")) => "somebody deleted its pod",
        (true, _) if is_tfjob => {
            "its pod still ran when the job ended, and was deleted (cleanPodPolicy: Running)"
        }
        (true, _) => "its pod is gone",
        (false, _) if has_completed(job, replica) => "it has completed, and its pod is gone",
        (false, _) if is_suspended(job) => "it has no pod: the job is suspended",
        (false, _) => "it has no pod at present",
    };
    words.to_owned()
}

fn is_suspended(job: &Value) -> bool {
    let phase = text(job, &["status", "state", "phase"]);
    at(job, &["spec", "runPolicy", "suspend"]) == true || ["Aborting", "Aborted"].contains(&phase)
}

/// Whether the status counts its index as completed.
fn has_completed(job: &Value, replica: &str) -> bool {
    let Some((role, index)) = replica.rsplit_once('-') else { return false };
    let Ok(index) = index.parse::<u64>() else { return false };
    let counts = job["status"]["replicaStatuses"].as_object().into_iter().flatten();
    let mut own = counts.filter(|(name, _)| name.eq_ignore_ascii_case(role));
    own.any(|(_, counts)| {
        text(counts, &["completedIndexes"]).split(',').any(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let bounds = (first.parse::<u64>(), last.parse::<u64>());
            matches!(bounds, (Ok(first), Ok(last)) if (first..=last).contains(&index))
        })
    })
}

/// Whether pods of a replica have been replaced by new ones, as far as the status tells.
pub(super) fn was_replaced(job: &Value, replica: &str) -> bool {
    let record = items(job, &["status", "replicaRecords"]).find(|one| one["replica"] == replica);
    let by_record = record.is_some_and(|record| !record["lastRestartTime"].is_null());
    // A Volcano Job counts its retries; a TFJob that restarts as a whole counts its attempts.
    let counts = ["retryCount", "attempt"].map(|count| job["status"][count].as_u64());
    by_record || counts.into_iter().flatten().any(|count| count > 0)
}

/// How the job stands, and the last words that its status has kept.
pub(super) fn what_is_known(name: &str, job: &Value, now: Timestamp) -> String {
    let mut said = String::new();
    let last = items(job, &["status", "conditions"])
        .rfind(|condition| condition["status"] == "True" && !text(condition, &["type"]).is_empty());
    let phase = text(job, &["status", "state", "phase"]);
    if let Some(condition) = last.filter(|condition| condition["type"].is_string()) {
        let since = &condition["lastTransitionTime"];
        let since =
            if since.is_string() { format!(" {} ago", ago(since, now)) } else { String::new() };
        let _ = write!(said, "{name}: {}{since}", text(condition, &["type"]));
        let message = one_line(text(condition, &["message"]));
        let _ = if message.is_empty() { writeln!(said) } else { writeln!(said, ": {message}") };
    } else if !phase.is_empty() {
        let message = one_line(text(job, &["status", "state", "message"]));
        let colon = if message.is_empty() { "" } else { ": " };
        let _ = writeln!(said, "{name}: {phase}{colon}{message}");
    }
    let words = lines(text(job, &["status", "failure", "message"]));
    if !words.is_empty() {
        let _ = writeln!(said, "last words of {}:", text(job, &["status", "failure", "pod"]));
        for line in words.lines() {
            let _ = writeln!(said, "  {line}");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(policy: Option<&str>, condition: &str) -> Value {
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"},
            "spec": {"runPolicy": {"cleanPodPolicy": policy}, "tfReplicaSpecs": {
                "PS": {"replicas": 1}, "Worker": {"replicas": 2}}},
            "status": {"conditions": [
                {"type": "Created", "status": "True"},
                {"type": condition, "status": "True", "message": "worker-1\nended",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        })
    }

    fn pod(role: &str, index: &str) -> Value {
        json!({"metadata": {"labels": {
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": index}}})
    }

    #[test]
    fn absent_replicas_are_named_with_the_policy_that_deleted_them() {
        let pods = [pod("worker", "0"), pod("worker", "1")];
        let gone = replicas(&job(None, "Succeeded"), &pods);
        assert_eq!(gone.len(), 1);
        assert!(gone[0].0 == "ps-0" && gone[0].1.contains("cleanPodPolicy: Running"), "{gone:?}");
        let gone = replicas(&job(Some("All"), "Failed"), &[]);
        assert_eq!(gone.len(), 3);
        assert!(gone[2].1.contains("cleanPodPolicy: All"), "{gone:?}");
        let mut running = job(None, "Running");
        running["status"]["replicaStatuses"] = json!({"Worker": {"completedIndexes": "1-3"}});
        let gone = replicas(&running, &pods[..1]);
        assert_eq!(gone[0].1, "it has no pod at present");
        assert_eq!(gone[1].1, "it has completed, and its pod is gone");
    }

    #[test]
    fn a_new_pod_is_told_from_a_restart_in_place() {
        let mut job = job(None, "Running");
        job["status"]["replicaRecords"] = json!([
            {"replica": "worker-0", "restarts": 1, "inPlace": 1},
            {"replica": "worker-1", "restarts": 1, "lastRestartTime": "2026-01-01T00:00:00Z"}]);
        assert!(!was_replaced(&job, "worker-0"));
        assert!(was_replaced(&job, "worker-1"));
        assert!(was_replaced(&json!({"status": {"retryCount": 1}}), "any"));
        assert!(was_replaced(&json!({"status": {"attempt": 1}}), "any"));
    }

    #[test]
    fn status_tells_the_end_and_the_last_words() {
        let mut job = job(Some("All"), "Failed");
        job["status"]["failure"] =
            json!({"pod": "mnist-worker-1", "message": "Traceback\nKeyError"});
        let said = what_is_known("mnist", &job, "2026-01-01T00:00:30Z".parse().unwrap());
        assert_eq!(
            said,
            "mnist: Failed 30s ago: worker-1 ended\n\
             last words of mnist-worker-1:\n  Traceback\n  KeyError\n"
        );
        let volcanos = json!({"status": {"state": {"phase": "Aborted"}}});
        assert_eq!(what_is_known("vj", &volcanos, Timestamp::UNIX_EPOCH), "vj: Aborted\n");
        assert_eq!(what_is_known("x", &json!({}), Timestamp::UNIX_EPOCH), "");
    }
}
