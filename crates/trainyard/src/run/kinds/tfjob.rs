//! TFJob, in all versions that are served.

use serde_json::Value;
use trainyard_api::names;

use super::{Cause, End, JobKind, Member, Use, volcano};
use crate::commands::job_logs::find::replica;
use crate::present::{items, text};

pub(super) const TFJOB: JobKind = JobKind {
    group: names::GROUP,
    kind: names::KIND,
    title: names::KIND,
    label: names::LABEL_JOB,
    members,
    gang,
    uses,
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
        all.extend((0..count).map(|index| Member { role: role.into(), index, template }));
    }
    all.sort_by_cached_key(|member| (order(&member.role), member.index));
    all
}

/// All of them, or as many as the job says it needs.
fn gang(job: &Value) -> Vec<Member<'_>> {
    let mut all = members(job);
    if let Some(least) = policy(job)["minAvailable"].as_u64() {
        all.truncate(usize::try_from(least).unwrap_or(usize::MAX).max(1));
    }
    all
}

fn policy(job: &Value) -> &Value {
    &job["spec"]["runPolicy"]["schedulingPolicy"]
}

/// Its queue.
fn uses(job: &Value) -> Vec<Use<'_>> {
    volcano::queue(text(policy(job), &["queue"])).into_iter().collect()
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
    fn a_job_may_need_fewer_than_it_asks_for() {
        let job = |policy: Value| {
            json!({"spec": {"runPolicy": {"schedulingPolicy": policy}, "tfReplicaSpecs": {
                "Worker": {"replicas": 3}, "PS": {"replicas": 1}}}})
        };
        let names = |policy: Value| {
            gang(&job(policy)).iter().map(Member::replica).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Value::Null), "ps-0 worker-0 worker-1 worker-2");
        assert_eq!(names(json!({"minAvailable": 2})), "ps-0 worker-0");
        let queue = job(json!({"queue": "vision"}));
        assert_eq!(uses(&queue)[0].name, "vision");
        assert_eq!(uses(&job(json!({"queue": "default"}))), []);
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
