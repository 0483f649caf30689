//! Job of `batch/v1`, as simpletfjob renders them.

use serde_json::Value;

use super::{Cause, End, JobKind, Member};
use crate::present::{items, text};

const LABEL_JOB: &str = "batch.kubernetes.io/job-name";
const LABEL_INDEX: &str = "batch.kubernetes.io/job-completion-index";
const ROLE: &str = "pod";

pub(super) const JOB: JobKind = JobKind {
    group: "batch",
    kind: "Job",
    title: "Job",
    label: LABEL_JOB,
    members,
    gang: |_| Vec::new(),
    uses: |_| Vec::new(),
    known,
    replica,
    beside: |_| Vec::new(),
    stays: |_| false,
    end,
};

/// More pods at once than a machine could ever run are not looked at one by one.
const MOST: u64 = 10_000;

/// The pods that run at the same time.
fn members(job: &Value) -> Vec<Member<'_>> {
    let spec = &job["spec"];
    let at_once = spec["parallelism"].as_u64().unwrap_or(1);
    let count = spec["completions"].as_u64().map_or(at_once, |all| all.min(at_once)).min(MOST);
    let template = &spec["template"];
    (0..count).map(|index| Member { role: ROLE.into(), index, template }).collect()
}

/// Only pods with an index have a name before they are there.
fn known(job: &Value) -> Vec<String> {
    if job["spec"]["completionMode"] != "Indexed" {
        return Vec::new();
    }
    let all = job["spec"]["completions"].as_u64().unwrap_or_default().min(MOST);
    (0..all).map(|index| format!("{ROLE}-{index}")).collect()
}

fn replica(pod: &Value) -> String {
    let labels = &pod["metadata"]["labels"];
    let index = text(labels, &[LABEL_INDEX]);
    if !index.is_empty() {
        return format!("{ROLE}-{index}");
    }
    let (name, job) = (text(pod, &["metadata", "name"]), text(labels, &[LABEL_JOB]));
    let rest = name.strip_prefix(job).and_then(|rest| rest.strip_prefix('-'));
    rest.unwrap_or(name).to_owned()
}

fn end(job: &Value) -> Option<End> {
    let holds = |kind: &str| {
        items(job, &["status", "conditions"])
            .find(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    if holds("Complete").is_some() {
        return Some(End::Succeeded);
    }
    let condition = holds("Failed")?;
    let cause = match text(condition, &["reason"]) {
        "DeadlineExceeded" => Cause::Deadline,
        _ => Cause::Replica,
    };
    let message = text(condition, &["message"]).to_owned();
    Some(End::Failed { cause, replica: None, message })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn as_many_as_run_at_once() {
        let count = |spec: Value| members(&json!({"spec": spec})).len();
        assert_eq!(count(json!({})), 1);
        assert_eq!(count(json!({"parallelism": 3})), 3);
        assert_eq!(count(json!({"parallelism": 3, "completions": 2})), 2);
        assert_eq!(count(json!({"parallelism": 2, "completions": 5})), 2);
        assert_eq!(count(json!({"parallelism": 0})), 0);
    }

    #[test]
    fn indexed_pods_are_known_before_they_are_there() {
        let job = |mode: &str| json!({"spec": {"completions": 2, "completionMode": mode}});
        assert_eq!(known(&job("Indexed")), ["pod-0", "pod-1"]);
        assert!(known(&job("NonIndexed")).is_empty());
        let pod = |index: Option<&str>| {
            json!({"metadata": {"name": "train-0-x7d2p", "labels": {
                LABEL_JOB: "train", LABEL_INDEX: index,
            }}})
        };
        assert_eq!(replica(&pod(Some("0"))), "pod-0");
        assert_eq!(replica(&pod(None)), "0-x7d2p");
        assert_eq!(replica(&json!({"metadata": {"name": "alone"}})), "alone");
    }

    #[test]
    fn ends_are_told_apart() {
        let job = |kind: &str, reason: &str| {
            json!({"status": {"conditions": [
                {"type": "FailureTarget", "status": "True"},
                {"type": kind, "status": "True", "reason": reason, "message": "m"}]}})
        };
        assert_eq!(end(&job("Suspended", "JobSuspended")), None);
        assert_eq!(end(&job("Complete", "")), Some(End::Succeeded));
        for (reason, cause) in
            [("BackoffLimitExceeded", Cause::Replica), ("DeadlineExceeded", Cause::Deadline)]
        {
            let failed = Some(End::Failed { cause, replica: None, message: "m".to_owned() });
            assert_eq!(end(&job("Failed", reason)), failed);
        }
    }
}
