//! TFJob, in all versions that are served.

use serde_json::Value;
use trainyard_api::names;

use super::{Cause, End, JobKind, Member};
use crate::commands::job_logs::find::replica;
use crate::present::{items, text};

pub(super) const TFJOB: JobKind = JobKind {
    group: names::GROUP,
    kind: names::KIND,
    label: names::LABEL_JOB,
    is_gang: true,
    members,
    known: |job| members(job).iter().map(Member::replica).collect(),
    replica,
    beside,
    stays,
    end,
};

/// More replicas of a type than a machine could ever run are not looked at one by one.
const MOST: u64 = 10_000;

fn members(job: &Value) -> Vec<Member<'_>> {
    let specs = job["spec"]["tfReplicaSpecs"].as_object();
    let mut all = Vec::new();
    for (role, spec) in specs.into_iter().flatten() {
        let count = spec["replicas"].as_u64().unwrap_or(1).min(MOST);
        let template = &spec["template"];
        all.extend((0..count).map(|index| Member { role, index, template }));
    }
    all.sort_by_cached_key(|member| (order(member.role), member.index));
    all
}

/// Those who lead first, as people name them.
fn order(role: &str) -> usize {
    let known = ["chief", "master", "ps", "worker", "evaluator"];
    let role = role.to_lowercase();
    known.iter().position(|one| *one == role).unwrap_or(known.len())
}

fn beside(job: &Value) -> Vec<String> {
    let board = job["spec"]["tensorBoard"].is_object();
    board.then(|| "TensorBoard".to_owned()).into_iter().collect()
}

fn stays(replica: &str) -> bool {
    replica.starts_with(names::TENSORBOARD)
}

fn end(job: &Value) -> Option<End> {
    let holds = |kind: &str| {
        items(job, &["status", "conditions"])
            .find(|condition| condition["type"] == kind && condition["status"] == "True")
    };
    if holds("Succeeded").is_some() {
        return Some(End::Succeeded);
    }
    let condition = holds("Failed")?;
    let failure = &job["status"]["failure"];
    let cause = match text(failure, &["kind"]) {
        "DeadlineExceeded" | "StartTimeout" => Cause::Deadline,
        "InvalidSpec" => Cause::Invalid,
        _ => Cause::Replica,
    };
    let name = text(job, &["metadata", "name"]);
    let replica = text(failure, &["pod"])
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('-'))
        .map(str::to_owned);
    Some(End::Failed { cause, replica, message: text(condition, &["message"]).to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_are_counted_in_any_case() {
        let job = json!({"spec": {"tfReplicaSpecs": {
            "Worker": {"replicas": 2, "template": {"spec": 1}}, "PS": {}, "MASTER": {"replicas": 1},
            "evaluator": {"replicas": 0},
        }, "tensorBoard": {"logDir": "/logs"}}});
        let names: Vec<String> = members(&job).iter().map(Member::replica).collect();
        assert_eq!(names, ["master-0", "ps-0", "worker-0", "worker-1"]);
        assert_eq!(beside(&job), ["TensorBoard"]);
        assert_eq!(members(&json!({})).len(), 0);
    }

    #[test]
    fn ends_are_told_apart() {
        let job = |kind: &str, failure: Value| {
            json!({"metadata": {"name": "mnist"}, "status": {"failure": failure, "conditions": [
                {"type": "Running", "status": "False"},
                {"type": kind, "status": "True", "message": "m"}]}})
        };
        assert_eq!(end(&job("Running", Value::Null)), None);
        assert_eq!(end(&job("Succeeded", Value::Null)), Some(End::Succeeded));
        for (kind, cause) in [
            ("ReplicaFailed", Cause::Replica),
            ("BackoffLimitExceeded", Cause::Replica),
            ("DeadlineExceeded", Cause::Deadline),
            ("StartTimeout", Cause::Deadline),
            ("InvalidSpec", Cause::Invalid),
        ] {
            let failed = end(&job("Failed", json!({"kind": kind, "pod": "mnist-worker-1"})));
            let replica = Some("worker-1".to_owned());
            assert_eq!(failed, Some(End::Failed { cause, replica, message: "m".into() }), "{kind}");
        }
    }
}
