//! Cases about tasks: their names, counts, templates and dependencies.

use serde_json::{Value, json};

use super::{Case, accepted, refused, remove, spec, task};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = tasks();
    cases.extend(templates());
    cases.extend(dependencies());
    cases
}

fn worker(job: &mut Value) -> &mut Value {
    &mut spec(job)["tasks"][1]
}

fn tasks() -> Vec<Case> {
    vec![
        accepted("tasks without names", |job| {
            for task in spec(job)["tasks"].as_array_mut().into_iter().flatten() {
                remove(task, "name");
            }
        }),
        accepted("tasks with empty names", |job| {
            for task in spec(job)["tasks"].as_array_mut().into_iter().flatten() {
                task["name"] = json!("");
            }
        }),
        refused("one name twice", "duplicated task name worker;", |job| {
            spec(job)["tasks"] = json!([task("worker", 1), task("ps", 1), task("worker", 1)]);
        }),
        refused("a name in capitals", "should match", |job| {
            worker(job)["name"] = json!("Worker");
        }),
        refused("a negative number of replicas", "should be greater than or equal to 0", |job| {
            worker(job)["replicas"] = json!(-2);
            remove(spec(job), "minAvailable");
        }),
        accepted("as many replicas as a job may have", |job| {
            worker(job)["replicas"] = json!(9_999);
        }),
        refused("more replicas", "should be less than or equal to 10000", |job| {
            worker(job)["replicas"] = json!(10_001);
        }),
        refused("all replicas that a number can hold", "less than or equal to 10000", |job| {
            worker(job)["replicas"] = json!(i32::MAX);
        }),
        refused(
            "more replicas in all tasks",
            "10001 replicas in all tasks are too many; a job has at most 10000",
            |job| worker(job)["replicas"] = json!(10_000),
        ),
        accepted("some of the replicas", |job| worker(job)["minAvailable"] = json!(1)),
        refused(
            "more than the replicas",
            "'minAvailable' is greater than 'replicas' in task: worker, job: mnist;",
            |job| worker(job)["minAvailable"] = json!(3),
        ),
        refused(
            "some replicas of none",
            "'minAvailable' is greater than 'replicas' in task: worker, job: mnist;",
            |job| {
                spec(job)["minAvailable"] = json!(1);
                remove(worker(job), "replicas");
                worker(job)["minAvailable"] = json!(1);
            },
        ),
        refused("parts of a task", "is not supported yet; leave it out and split", |job| {
            worker(job)["partitionPolicy"] = json!({"totalPartitions": 2, "partitionSize": 1});
        }),
        accepted("a policy for memory", |job| {
            worker(job)["topologyPolicy"] = json!("best-effort");
        }),
        refused("an unknown policy for memory", "Unsupported value: \"some\"", |job| {
            worker(job)["topologyPolicy"] = json!("some");
        }),
    ]
}

fn templates() -> Vec<Case> {
    let path = "spec.tasks[1].template.spec.containers: Required value: must be specified";
    vec![
        refused("no template", path, |job| remove(worker(job), "template")),
        refused("no containers", path, |job| {
            worker(job)["template"]["spec"]["containers"] = json!([]);
        }),
        refused(
            "a container without image",
            "spec.tasks[1].template.spec.containers[0].image: Required value",
            |job| remove(&mut worker(job)["template"]["spec"]["containers"][0], "image"),
        ),
        refused("a container without name", "containers[0].name: Required value", |job| {
            remove(&mut worker(job)["template"]["spec"]["containers"][0], "name");
        }),
        accepted("a null creation time in the template", |job| {
            worker(job)["template"]["metadata"] =
                json!({"creationTimestamp": null, "labels": {"team": "vision"}});
        }),
        refused("a restart policy of TFJobs", "Unsupported value: \"ExitCode\"", |job| {
            worker(job)["template"]["spec"]["restartPolicy"] = json!("ExitCode");
        }),
        refused("an amount that is none", "should match", |job| {
            worker(job)["template"]["spec"]["containers"][0]["resources"] =
                json!({"limits": {"memory": "much"}});
        }),
        refused("arguments that are no list", "must be of type array", |job| {
            worker(job)["template"]["spec"]["containers"][0]["args"] = json!("--steps=1");
        }),
    ]
}

fn dependencies() -> Vec<Case> {
    let no_dag = |rest: &str| {
        format!(
            "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);\
             {rest}"
        )
    };
    vec![
        accepted("workers wait for servers", |job| {
            worker(job)["dependsOn"] = json!({"name": ["ps"], "iteration": "all"});
        }),
        accepted("dependencies on nothing", |job| worker(job)["dependsOn"] = json!({})),
        accepted("a name that is filled in", |job| {
            remove(&mut spec(job)["tasks"][0], "name");
            worker(job)["dependsOn"] = json!({"name": ["default0"]});
        }),
        accepted("a wide graph", |job| {
            let mut tasks: Vec<_> = (0..100).map(|index| task(&format!("t{index}"), 1)).collect();
            let names: Vec<_> = (0..99).map(|index| format!("t{index}")).collect();
            tasks[99]["dependsOn"] = json!({"name": names, "iteration": "any"});
            spec(job)["tasks"] = json!(tasks);
        }),
        refused("an unknown task", &no_dag(" there is no task [\"chief\"]"), |job| {
            worker(job)["dependsOn"] = json!({"name": ["ps", "chief"]});
        }),
        refused("a task that waits for itself", &no_dag(""), |job| {
            worker(job)["dependsOn"] = json!({"name": ["worker"]});
        }),
        refused("two tasks that wait for each other", &no_dag(""), |job| {
            worker(job)["dependsOn"] = json!({"name": ["ps"]});
            spec(job)["tasks"][0]["dependsOn"] = json!({"name": ["worker"]});
        }),
        refused("an unknown iteration", "Unsupported value: \"some\"", |job| {
            worker(job)["dependsOn"] = json!({"name": ["ps"], "iteration": "some"});
        }),
    ]
}
