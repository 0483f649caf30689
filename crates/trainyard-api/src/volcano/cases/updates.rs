//! Cases about what may change in a job and in a queue.

use serde_json::{Value, json};

use super::{Case, job, remove, spec, task, tensorflow_job};

/// The job before, the change, and what is said of it.
fn update(
    name: &str,
    message: Option<&str>,
    before: impl FnOnce(&mut Value),
    change: impl FnOnce(&mut Value),
) -> Case {
    let mut old = job();
    before(&mut old);
    let mut object = old.clone();
    change(&mut object);
    Case {
        name: format!("Job: {name}, later"),
        object,
        old: Some(old),
        refused: message.map(str::to_owned),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = scaling();
    cases.extend(fixed_fields());
    cases.extend(volumes());
    cases.extend(names());
    cases
}

fn scaling() -> Vec<Case> {
    let plain = |_: &mut Value| {};
    vec![
        update("nothing new", None, plain, plain),
        update("labels and annotations", None, plain, |job| {
            job["metadata"]["labels"] = json!({"team": "vision"});
        }),
        update("more workers", None, plain, |job| spec(job)["tasks"][1]["replicas"] = json!(5)),
        update("fewer workers and a lower minimum", None, plain, |job| {
            spec(job)["tasks"][1]["replicas"] = json!(1);
            spec(job)["minAvailable"] = json!(2);
        }),
        update("a minimum of a task", None, plain, |job| {
            spec(job)["tasks"][1]["minAvailable"] = json!(1);
        }),
        update("another class", None, plain, |job| {
            spec(job)["priorityClassName"] = json!("high");
        }),
        update(
            "fewer workers than the minimum",
            Some("job 'minAvailable' must not be greater than total replicas"),
            plain,
            |job| spec(job)["tasks"][1]["replicas"] = json!(1),
        ),
        update(
            "fewer workers than the task's minimum",
            Some("'minAvailable' must be <= 'replicas' in task: worker"),
            |job| {
                spec(job)["minAvailable"] = json!(1);
                spec(job)["tasks"][1]["minAvailable"] = json!(2);
            },
            |job| spec(job)["tasks"][1]["replicas"] = json!(1),
        ),
        update("a negative count", Some("should be greater than or equal to 0"), plain, |job| {
            spec(job)["tasks"][1]["replicas"] = json!(-1);
            remove(spec(job), "minAvailable");
        }),
        update("one more task", Some("job updates may not add or remove tasks"), plain, |job| {
            spec(job)["tasks"] = json!([task("ps", 1), task("worker", 2), task("chief", 1)]);
        }),
        update(
            "one task fewer",
            Some("job updates may not add or remove tasks"),
            |job| spec(job)["minAvailable"] = json!(1),
            |job| spec(job)["tasks"] = json!([task("worker", 2)]),
        ),
        update(
            "a hundred tasks and one more pod",
            None,
            |job| {
                let tasks: Vec<_> = (0..100).map(|at| task(&format!("t{at}"), 1)).collect();
                spec(job)["tasks"] = json!(tasks);
            },
            |job| spec(job)["tasks"][99]["replicas"] = json!(2),
        ),
    ]
}

fn fixed_fields() -> Vec<Case> {
    let refused = |name: &str, told: &str, change: fn(&mut Value)| {
        let message = format!("and `PriorityClassName`; but these differ: [\"{told}\"]");
        let before = |job: &mut Value| {
            let name = job["metadata"]["name"].clone();
            *job = tensorflow_job();
            job["metadata"]["name"] = name;
            spec(job)["tasks"][0]["template"]["metadata"] = json!({"creationTimestamp": null});
        };
        update(name, Some(&message), before, change)
    };
    vec![
        refused("another queue", "spec.queue", |job| spec(job)["queue"] = json!("other")),
        refused("no scheduler", "spec.schedulerName", |job| remove(spec(job), "schedulerName")),
        refused("more retries", "spec.maxRetry", |job| spec(job)["maxRetry"] = json!(9)),
        refused("another plugin", "spec.plugins", |job| {
            spec(job)["plugins"]["tensorflow"] = json!([]);
        }),
        refused("another policy", "spec.policies", |job| {
            spec(job)["policies"][0]["action"] = json!("AbortJob");
        }),
        refused("a time to live", "spec.ttlSecondsAfterFinished", |job| {
            spec(job)["ttlSecondsAfterFinished"] = json!(9);
        }),
        refused("another label", "spec.tasks[*].template.metadata.labels", |job| {
            spec(job)["tasks"][1]["template"]["metadata"] = json!({"labels": {"a": "b"}});
        }),
        refused("another image", "spec.tasks[*].template.spec", |job| {
            spec(job)["tasks"][1]["template"]["spec"]["containers"][0]["image"] = json!("other");
        }),
        refused("another policy of a task", "spec.tasks[*].policies", |job| {
            remove(&mut spec(job)["tasks"][1], "policies");
        }),
        refused("another name of a task", "spec.tasks[*].name", |job| {
            spec(job)["tasks"][1]["name"] = json!("helper");
        }),
        refused("a dependency", "spec.tasks[*].dependsOn", |job| {
            spec(job)["tasks"][1]["dependsOn"] = json!({"name": ["ps"]});
        }),
        refused("a network tier", "spec.networkTopology", |job| {
            spec(job)["networkTopology"] = json!({"highestTierAllowed": 1});
        }),
        refused("a volume", "spec.volumes", |job| {
            spec(job)["volumes"] = json!([{"mountPath": "/a", "volumeClaimName": "a"}]);
        }),
        update(
            "more workers of the manifest that people know",
            None,
            |job| {
                *job = tensorflow_job();
                spec(job)["tasks"][0]["template"]["metadata"] = json!({"creationTimestamp": null});
            },
            |job| spec(job)["tasks"][1]["replicas"] = json!(3),
        ),
    ]
}

fn volumes() -> Vec<Case> {
    let claim = || {
        json!([
            {"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
        ])
    };
    vec![
        update(
            "the name of a claim that was made",
            None,
            |job| spec(job)["volumes"] = claim(),
            |job| spec(job)["volumes"][0]["volumeClaimName"] = json!("mnist-pvc-1"),
        ),
        update(
            "another claim",
            Some("but these differ: [\"spec.volumes\"]"),
            |job| spec(job)["volumes"] = json!([{"mountPath": "/a", "volumeClaimName": "a"}]),
            |job| spec(job)["volumes"][0]["volumeClaimName"] = json!("b"),
        ),
        update(
            "another path",
            Some("but these differ: [\"spec.volumes\"]"),
            |job| spec(job)["volumes"] = claim(),
            |job| spec(job)["volumes"][0]["mountPath"] = json!("/b"),
        ),
    ]
}

fn names() -> Vec<Case> {
    let (fits, scaled) = ("c".repeat(54), "d".repeat(54));
    let named = |name: String| move |job: &mut Value| job["metadata"]["name"] = json!(name);
    vec![
        update(
            "scaled beyond what the name allows",
            Some("must be no more than 63 characters"),
            named(fits),
            |job| spec(job)["tasks"][1]["replicas"] = json!(11),
        ),
        update("scaled within what the name allows", None, named(scaled), |job| {
            spec(job)["tasks"][1]["replicas"] = json!(10);
        }),
    ]
}
