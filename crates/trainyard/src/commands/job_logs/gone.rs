//! Replicas without a pod, each with the reason, and how their job stands. Pure.
//!
//! What a job shows is said, and nothing more: of a pod that is not there nobody knows who has deleted it,
//! only what the job's policies do.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use super::find::replica;
use crate::present::time::ago;
use crate::present::{at, items, lines, one_line, text};
use crate::run::kinds::{self, End};

/// How a completed replica without a pod is told.
const COMPLETED: &str = "it completed, and its pod has been deleted since";

/// The replicas that a job asks for, as far as they are known by name.
pub(super) fn known(job: &Value) -> Vec<String> {
    kinds::of(job).map_or_else(Vec::new, |row| (row.known)(job))
}

/// The replicas of a job that have no pod, each with the reason.
pub(super) fn replicas<'a>(
    job: &Value,
    pods: impl IntoIterator<Item = &'a Value>,
    now: Timestamp,
) -> Vec<(String, String)> {
    let Some(row) = kinds::of(job) else { return Vec::new() };
    let present: Vec<String> = pods.into_iter().map(replica).collect();
    let absent = known(job).into_iter().filter(|name| !present.contains(name));
    let has_ended = (row.end)(job).is_some();
    let why = |name: String| {
        let why = if is_suspended(job, has_ended) {
            "it has no pod: the job is suspended".to_owned()
        } else if has_ended {
            after_the_end(job, &name)
        } else {
            meanwhile(job, &name, now)
        };
        (name, why)
    };
    absent.map(why).collect()
}

/// Whether a job is held back by its owner. A TFJob that has ended does not heed the field any more; a
/// suspended Volcano Job is one that was aborted.
pub(super) fn is_suspended(job: &Value, has_ended: bool) -> bool {
    let phase = text(job, &["status", "state", "phase"]);
    let asked = [&["spec", "runPolicy", "suspend"][..], &["spec", "suspend"]];
    let is_asked = asked.into_iter().any(|path| *at(job, path) == true);
    (is_asked && !has_ended) || ["Aborting", "Aborted"].contains(&phase)
}

/// Why a replica of a job that has ended has no pod.
fn after_the_end(job: &Value, replica: &str) -> String {
    if has_completed(job, replica) {
        return COMPLETED.to_owned();
    }
    if !job["spec"]["tfReplicaSpecs"].is_object() {
        return if job["spec"]["tasks"].is_array() {
            "it has no pod: when a Volcano Job ends, pods that still wait or run are deleted"
        } else {
            "it has no pod: the Job has ended, and its pod was deleted or never made"
        }
        .to_owned();
    }
    let failure = text(job, &["status", "failure", "kind"]);
    if failure == "InvalidSpec" {
        return "it has no pod: the job cannot be run as it is written".to_owned();
    }
    let policy = [&job["spec"]["runPolicy"]["cleanPodPolicy"], &job["spec"]["cleanPodPolicy"]];
    let stops = ["BackoffLimitExceeded", "DeadlineExceeded", "StartTimeout"].contains(&failure);
    let pods = "pods that still wait or run";
    match policy.into_iter().find_map(Value::as_str) {
        Some("All") => {
            "it has no pod: cleanPodPolicy All deletes all pods when the job ends".into()
        }
        Some("Running") => {
            format!("it has no pod: cleanPodPolicy Running deletes {pods} when the job ends")
        }
        Some(_) if stops => {
            format!("it has no pod: {pods} are deleted when a job fails by {failure}")
        }
        Some(policy) => {
            format!(
                "it has no pod, though cleanPodPolicy {policy} keeps those that are there at the end"
            )
        }
        None => format!(
            "it has no pod: unless it was told otherwise, the operator deletes {pods} when the job ends \
             (cleanPodPolicy Running)"
        ),
    }
}

/// Why a replica of a job that goes on has no pod.
fn meanwhile(job: &Value, replica: &str, now: Timestamp) -> String {
    if has_completed(job, replica) {
        return COMPLETED.to_owned();
    }
    let away = items(job, &["status", "unavailableReplicas"]).find(|one| one["replica"] == replica);
    if let Some(away) = away {
        let message = one_line(text(away, &["message"]));
        return format!(
            "it has no pod, and has not run for {}: {message}",
            ago(&away["since"], now)
        );
    }
    let refused = items(job, &["status", "conditions"])
        .find(|one| one["type"] == "ReplicaFailure" && one["status"] == "True");
    if let Some(refused) = refused {
        return format!("it has no pod: {}", one_line(text(refused, &["message"])));
    }
    let status = job["status"].as_object().filter(|status| !status.is_empty());
    match status {
        None => "it has no pod: no operator has looked at the job yet".to_owned(),
        Some(_) => match text(job, &["status", "state", "phase"]) {
            "" => "it has no pod at present".to_owned(),
            phase => format!("it has no pod: the job is {phase}"),
        },
    }
}

/// Whether the status counts it as completed.
fn has_completed(job: &Value, replica: &str) -> bool {
    let Some((role, index)) = replica.rsplit_once('-') else { return false };
    let Ok(index) = index.parse::<u64>() else { return false };
    let counts = job["status"]["replicaStatuses"].as_object().into_iter().flatten();
    let mut own = counts.filter(|(name, _)| name.eq_ignore_ascii_case(role));
    let of_type = own.any(|(_, counts)| holds(text(counts, &["completedIndexes"]), index));
    // Of an indexed Job, and of a Volcano Job.
    let name = format!("{}-{replica}", text(job, &["metadata", "name"]));
    of_type
        || holds(text(job, &["status", "completedIndexes"]), index)
        || text(job, &["status", "pods", &name, "phase"]) == "Succeeded"
}

/// Whether an index is among those of a list: `0-3,5`.
fn holds(indexes: &str, index: u64) -> bool {
    indexes.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds = (first.parse::<u64>(), last.parse::<u64>());
        matches!(bounds, (Ok(first), Ok(last)) if (first..=last).contains(&index))
    })
}

/// How a job has finished: `Succeeded`, or `Failed` and why; none while it has not.
pub(super) fn finished(job: &Value) -> Option<String> {
    let end = kinds::of(job).and_then(|row| (row.end)(job))?;
    let phase = text(job, &["status", "state", "phase"]);
    Some(match end {
        End::Succeeded if phase.is_empty() => "Succeeded".to_owned(),
        End::Succeeded => phase.to_owned(),
        End::Failed { message, .. } => {
            let how = if phase.is_empty() { "Failed" } else { phase };
            let message = one_line(&message);
            let is_more =
                !message.is_empty() && !message.eq_ignore_ascii_case(&format!("the job is {how}"));
            if is_more { format!("{how}: {message}") } else { how.to_owned() }
        }
    })
}

/// How the job stands, and the last words that its status has kept.
pub(super) fn what_is_known(name: &str, job: &Value, now: Timestamp) -> String {
    let mut said = String::new();
    let last = items(job, &["status", "conditions"])
        .rfind(|condition| condition["status"] == "True" && !text(condition, &["type"]).is_empty());
    let state = &job["status"]["state"];
    let phase = text(state, &["phase"]);
    let told = match last {
        Some(condition) => {
            Some((text(condition, &["type"]), &condition["lastTransitionTime"], condition))
        }
        None if phase.is_empty() => None,
        None => Some((phase, &state["lastTransitionTime"], state)),
    };
    if let Some((how, since, words)) = told {
        let since =
            if since.is_string() { format!(" {} ago", ago(since, now)) } else { String::new() };
        let message = one_line(text(words, &["message"]));
        let colon = if message.is_empty() { "" } else { ": " };
        let _ = writeln!(said, "{name}: {how}{since}{colon}{message}");
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
mod tests;
