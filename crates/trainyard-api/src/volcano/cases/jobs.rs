//! Cases about the fields of a whole job: counts, names, plugins, volumes, queues.

use serde_json::{Value, json};

use super::{Case, accepted, refused, remove, spec, task, tensorflow_job};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = whole_jobs();
    cases.extend(counts());
    cases.extend(names());
    cases.extend(plugins());
    cases.extend(volumes());
    cases.extend(other_fields());
    cases
}

const NOT_NEGATIVE: &str = "should be greater than or equal to 0";

fn whole_jobs() -> Vec<Case> {
    let none = "No task specified in job spec";
    vec![
        accepted("the usual job", |_| {}),
        accepted("the manifest that people know", |job| *job = tensorflow_job()),
        refused("no spec", none, |job| remove(job, "spec")),
        refused("no tasks", none, |job| remove(spec(job), "tasks")),
        refused("an empty list of tasks", none, |job| spec(job)["tasks"] = json!([])),
        refused("tasks that are no list", "must be of type array", |job| {
            spec(job)["tasks"] = json!({});
        }),
        accepted("a hundred tasks", |job| {
            let tasks: Vec<_> = (0..100).map(|index| task(&format!("t{index}"), 1)).collect();
            spec(job)["tasks"] = json!(tasks);
        }),
        refused("too many tasks", "must have at most 100 items", |job| {
            let tasks: Vec<_> = (0..101).map(|index| task(&format!("t{index}"), 1)).collect();
            spec(job)["tasks"] = json!(tasks);
        }),
    ]
}

fn counts() -> Vec<Case> {
    vec![
        accepted("no minimum", |job| remove(spec(job), "minAvailable")),
        accepted("a minimum of none", |job| spec(job)["minAvailable"] = json!(0)),
        refused("a negative minimum", NOT_NEGATIVE, |job| spec(job)["minAvailable"] = json!(-1)),
        refused(
            "a minimum above all replicas",
            "job 'minAvailable' should not be greater than total replicas in tasks;",
            |job| spec(job)["minAvailable"] = json!(4),
        ),
        refused(
            "a minimum where there are no replicas",
            "job 'minAvailable' should not be greater than total replicas in tasks;",
            |job| {
                for task in spec(job)["tasks"].as_array_mut().into_iter().flatten() {
                    remove(task, "replicas");
                }
            },
        ),
        accepted("a negative number of retries for a task", |job| {
            spec(job)["tasks"][0]["maxRetry"] = json!(-1);
        }),
        refused("a negative number of retries", NOT_NEGATIVE, |job| {
            spec(job)["maxRetry"] = json!(-1);
        }),
        refused("a negative time to live", NOT_NEGATIVE, |job| {
            spec(job)["ttlSecondsAfterFinished"] = json!(-5);
        }),
        refused("success of no pod", "should be greater than or equal to 1", |job| {
            spec(job)["minSuccess"] = json!(0);
        }),
        refused("a minimum that is text", "must be of type integer", |job| {
            spec(job)["minAvailable"] = json!("3");
        }),
    ]
}

fn named(job: &mut Value, name: &str) {
    job["metadata"]["name"] = json!(name);
}

fn names() -> Vec<Case> {
    let fits = "a".repeat(63 - "-worker-0".len());
    let longer = format!("{fits}b");
    let too_long = "validate failed: must be no more than 63 characters";
    let label = "validate failed: the plugin svc makes a Service of that name";
    vec![
        accepted("a generated name", |job| job["metadata"] = json!({"generateName": "job-"})),
        accepted("the longest name", |job| named(job, &fits)),
        refused("a name that is one too long", too_long, |job| named(job, &longer)),
        accepted("the longest name for ten workers", |job| {
            named(job, &fits);
            spec(job)["tasks"][1]["replicas"] = json!(10);
        }),
        refused("the longest name for eleven workers", too_long, |job| {
            named(job, &fits);
            spec(job)["tasks"][1]["replicas"] = json!(11);
        }),
        accepted("a name with a dot", |job| named(job, "a.b")),
        refused("a name with a dot and services", label, |job| {
            named(job, "a.b");
            spec(job)["plugins"] = json!({"svc": []});
        }),
        refused(
            "a name that starts with a digit and TF_CONFIG",
            "create job with name 7-up validate failed",
            |job| {
                named(job, "7-up");
                spec(job)["plugins"] = json!({"tensorflow": []});
            },
        ),
    ]
}

fn plugins() -> Vec<Case> {
    let plugin =
        |name: &'static str| move |job: &mut Value| spec(job)["plugins"] = json!({name: []});
    let mut cases = vec![
        accepted("all plugins that there are", |job| {
            spec(job)["plugins"] = json!({"env": [], "svc": [], "tensorflow": ["--port=3333"]});
        }),
        accepted("arguments that mean nothing", |job| {
            spec(job)["plugins"] = json!({"svc": ["9090", "--no-such=flag"]});
        }),
        accepted("a plugin without arguments", |job| {
            spec(job)["plugins"] = json!({"env": null});
        }),
        refused("a plugin that nobody knows", "unable to find job plugin: magic;", plugin("magic")),
        refused("an argument that is a number", "must be of type string", |job| {
            spec(job)["plugins"] = json!({"svc": [9090]});
        }),
    ];
    for name in crate::volcano::plugins::POSTPONED {
        let message = format!("plugin {name} is not supported yet");
        cases.push(refused(&format!("the plugin {name}"), &message, plugin(name)));
    }
    cases
}

fn volumes() -> Vec<Case> {
    let claim = || {
        json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        })
    };
    let set = |volumes: Value| move |job: &mut Value| spec(job)["volumes"] = volumes;
    vec![
        accepted(
            "a claim and a name",
            set(json!([
                {"mountPath": "/data", "volumeClaimName": "data"},
                {"mountPath": "/out", "volumeClaim": claim()},
            ])),
        ),
        refused(
            "a volume without path",
            "mountPath is required;",
            set(json!([
                {"volumeClaimName": "data"},
            ])),
        ),
        refused(
            "one path twice",
            "duplicated mountPath: /data;",
            set(json!([
                {"mountPath": "/data", "volumeClaimName": "a"},
                {"mountPath": "/data", "volumeClaimName": "b"},
            ])),
        ),
        refused(
            "a volume without claim",
            "either VolumeClaim or VolumeClaimName must be specified;",
            set(json!([{"mountPath": "/data", "volumeClaimName": ""}])),
        ),
        refused(
            "a claim that is there and is to be made",
            "conflict: If you want to use an existing PVC, just specify VolumeClaimName.",
            set(json!([
                {"mountPath": "/data", "volumeClaimName": "a", "volumeClaim": claim()},
            ])),
        ),
        refused(
            "a name that no claim can have",
            "invalid VolumeClaimName Data_1 :",
            set(json!([
                {"mountPath": "/data", "volumeClaimName": "Data_1"},
            ])),
        ),
        refused(
            "a path with a colon",
            "must not contain ':'",
            set(json!([
                {"mountPath": "a:b", "volumeClaimName": "data"},
            ])),
        ),
    ]
}

fn other_fields() -> Vec<Case> {
    let set = |field: &'static str, value: Value| move |job: &mut Value| spec(job)[field] = value;
    vec![
        accepted("an empty queue", set("queue", json!(""))),
        accepted("a queue with dots", set("queue", json!("team.a"))),
        refused("the root queue", "can not submit job to root queue;", set("queue", json!("root"))),
        refused("a queue that cannot be", "should match", set("queue", json!("Team A"))),
        accepted("an estimate", set("runningEstimate", json!("1h30m"))),
        refused("an estimate that is none", "should match", set("runningEstimate", json!("soon"))),
        accepted("a network tier", set("networkTopology", json!({"highestTierAllowed": 2}))),
        refused(
            "two network tiers",
            "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology \
             simultaneously",
            set("networkTopology", json!({"highestTierAllowed": 2, "highestTierName": "rack"})),
        ),
        refused(
            "an unknown mode",
            "Unsupported value: \"firm\"",
            set("networkTopology", json!({"mode": "firm"})),
        ),
        accepted("a class and a time to live", |job| {
            spec(job)["priorityClassName"] = json!("high");
            spec(job)["ttlSecondsAfterFinished"] = json!(60);
            spec(job)["schedulerName"] = json!("default-scheduler");
            spec(job)["minSuccess"] = json!(1);
        }),
    ]
}
