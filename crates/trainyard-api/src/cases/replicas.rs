//! Cases about replica types, their counts, names and containers.

use serde_json::{Value, json};

use super::{Draft, accepted, refused, remove, replica};

pub(super) fn drafts() -> Vec<Draft> {
    let mut drafts = types();
    drafts.extend(wrong_types());
    drafts.extend(counts());
    drafts.extend(containers());
    drafts.extend(pod_templates());
    drafts.extend(job_names());
    drafts
}

fn specs(job: &mut Value) -> &mut Value {
    &mut job["spec"]["tfReplicaSpecs"]
}

fn types() -> Vec<Draft> {
    vec![
        accepted("the usual job", |_| {}),
        accepted("one worker alone", |job| {
            *specs(job) = json!({"Worker": replica(1)});
        }),
        accepted("chief, workers, servers and an evaluator", |job| {
            *specs(job) = json!({
                "Chief": replica(1), "Worker": replica(2), "PS": replica(2),
                "Evaluator": replica(1),
            });
        }),
        accepted("keys in any case", |job| {
            *specs(job) = json!({"MASTER": replica(1), "worker": replica(2), "ps": replica(1)});
        }),
    ]
}

fn wrong_types() -> Vec<Draft> {
    vec![
        refused("no spec", "must be given", |job| remove(job, "spec")),
        refused("no replica types", "must be required", |job| {
            remove(&mut job["spec"], "tfReplicaSpecs");
        }),
        refused("an empty map of replica types", "must name at least one replica type", |job| {
            *specs(job) = json!({});
        }),
        refused("a list of replica types", "must be of type object", |job| {
            *specs(job) = json!([]);
        }),
        refused("an unknown replica type", "unknown replica type [\"Gardener\"]", |job| {
            specs(job)["Gardener"] = replica(1);
        }),
        refused("the same type in two spellings", "the same replica type is given twice", |job| {
            specs(job)["WORKER"] = replica(1);
        }),
        refused("chief and master", "must not have more than 1 Chief or Master role", |job| {
            specs(job)["Chief"] = replica(1);
            specs(job)["Master"] = replica(1);
        }),
        refused(
            "chief and master in other spellings",
            "must not have more than 1 Chief or Master role",
            |job| {
                specs(job)["chief"] = replica(1);
                specs(job)["MASTER"] = replica(1);
            },
        ),
        refused("a replica type without content", "must name at least one replica type", |job| {
            *specs(job) = json!({"Worker": null});
        }),
        refused("more types than there can be", "must have at most 10 items", |job| {
            for index in 0..10 {
                specs(job)[format!("Type{index}")] = replica(1);
            }
        }),
    ]
}

fn counts() -> Vec<Draft> {
    vec![
        accepted("no count means one", |job| {
            remove(&mut specs(job)["Worker"], "replicas");
        }),
        accepted("no replica at all", |job| {
            specs(job)["Worker"]["replicas"] = json!(0);
        }),
        accepted("a chief that is switched off", |job| {
            specs(job)["Chief"] = replica(0);
        }),
        refused("a negative count", "should be greater than or equal to 0", |job| {
            specs(job)["Worker"]["replicas"] = json!(-1);
        }),
        refused("a count that is text", "must be of type integer", |job| {
            specs(job)["Worker"]["replicas"] = json!("2");
        }),
        refused("a count with a fraction", "must be of type integer", |job| {
            specs(job)["Worker"]["replicas"] = json!(1.5);
        }),
        accepted("as many workers as a job may have", |job| {
            *specs(job) = json!({"Worker": replica(10_000)});
        }),
        refused("more workers", "should be less than or equal to 10000", |job| {
            *specs(job) = json!({"Worker": replica(10_001)});
        }),
        refused("all workers that a number can hold", "less than or equal to 10000", |job| {
            specs(job)["Worker"]["replicas"] = json!(i32::MAX);
        }),
        refused(
            "more replicas of all types",
            "10001 replicas in all are too many; a job has at most 10000",
            |job| *specs(job) = json!({"Worker": replica(9_999), "PS": replica(2)}),
        ),
        refused("more workers later", "should be less than or equal to 10000", |job| {
            specs(job)["Worker"]["replicas"] = json!(10_001);
        })
        .after(|_| {}),
        accepted("a count that is null", |job| {
            specs(job)["Worker"]["replicas"] = Value::Null;
        }),
        refused("two chiefs", "replicas of [\"Chief\"] must not be above 1", |job| {
            specs(job)["Chief"] = replica(2);
        }),
        refused("three masters in capitals", "must not be above 1, but is [\"3\"]", |job| {
            specs(job)["MASTER"] = replica(3);
        }),
        accepted("more workers later", |job| {
            specs(job)["Worker"]["replicas"] = json!(12);
        })
        .after(|_| {}),
        accepted("one more type later", |job| {
            specs(job)["Evaluator"] = replica(1);
        })
        .after(|_| {}),
        refused("a second chief later", "must not be above 1", |job| {
            specs(job)["Chief"] = replica(2);
        })
        .after(|job| specs(job)["Chief"] = replica(1)),
    ]
}

fn pod(job: &mut Value) -> &mut Value {
    &mut specs(job)["Worker"]["template"]["spec"]
}

fn containers() -> Vec<Draft> {
    let path = "spec.tfReplicaSpecs[Worker].template.spec.containers: Required value: \
        must be specified";
    vec![
        accepted("a second container", |job| {
            pod(job)["containers"] = json!([
                {"name": "sidecar", "image": "busybox"}, {"name": "tensorflow", "image": "x"},
            ]);
        }),
        refused("no template", path, |job| {
            remove(&mut specs(job)["Worker"], "template");
        }),
        refused("no pod specification", path, |job| {
            remove(&mut specs(job)["Worker"]["template"], "spec");
        }),
        refused("no containers", path, |job| remove(pod(job), "containers")),
        refused("an empty list of containers", path, |job| {
            pod(job)["containers"] = json!([]);
        }),
        refused(
            "no container that trains",
            "must have at least one container with name tensorflow, but has only [\"trainer\"]",
            |job| pod(job)["containers"][0]["name"] = json!("trainer"),
        ),
        refused("a container without name", "containers[0].name: Required value", |job| {
            remove(&mut pod(job)["containers"][0], "name");
        }),
        refused(
            "a container without image",
            "spec.tfReplicaSpecs[Worker].template.spec.containers[0].image: Required value: \
             must be required",
            |job| remove(&mut pod(job)["containers"][0], "image"),
        ),
        refused("a container with an empty image", "image: Required value", |job| {
            pod(job)["containers"][0]["image"] = json!("");
        }),
        refused("two containers of one name", "Duplicate value", |job| {
            let container = pod(job)["containers"][0].clone();
            pod(job)["containers"] = json!([container, container]);
        })
        .only_in_v1(),
    ]
}

fn pod_templates() -> Vec<Draft> {
    vec![
        accepted("a null creation time in the template", |job| {
            specs(job)["Worker"]["template"]["metadata"] =
                json!({"creationTimestamp": null, "labels": {"team": "vision"}});
        }),
        accepted("amounts as numbers and as text", |job| {
            pod(job)["containers"][0]["resources"] =
                json!({"limits": {"nvidia.com/gpu": 1, "memory": "1.5Gi", "cpu": "500m"}});
        }),
        refused("an amount that is none", "should match", |job| {
            pod(job)["containers"][0]["resources"] = json!({"limits": {"memory": "much"}});
        })
        .only_in_v1(),
        refused("arguments that are no list", "must be of type array", |job| {
            pod(job)["containers"][0]["args"] = json!("--steps=1");
        })
        .only_in_v1(),
        refused("a port that is text", "must be of type integer", |job| {
            pod(job)["containers"][0]["ports"] = json!([{"containerPort": "2222"}]);
        })
        .only_in_v1(),
        accepted("one port for two protocols", |job| {
            pod(job)["containers"][0]["ports"] =
                json!([{"containerPort": 2222}, {"containerPort": 2222, "protocol": "UDP"}]);
        }),
        refused("one port twice", "Duplicate value", |job| {
            pod(job)["containers"][0]["ports"] =
                json!([{"containerPort": 2222}, {"containerPort": 2222, "protocol": "TCP"}]);
        })
        .only_in_v1(),
    ]
}

fn named(job: &mut Value, name: &str) {
    job["metadata"]["name"] = json!(name);
}

fn job_names() -> Vec<Draft> {
    let fits = "a".repeat(63 - "-worker-0".len());
    let (longer, board) = (format!("{fits}b"), "t".repeat(63 - "-tensorboard-0".len()));
    let (scaled, scaled_up) = (format!("{}c", &fits[1..]), format!("{}d", &fits[1..]));
    let with_board = |job: &mut Value| job["spec"]["tensorBoard"] = json!({"logDir": "/logs"});
    vec![
        accepted("a generated name", |job| {
            job["metadata"] = json!({"generateName": "tfjob"});
        }),
        refused("a name that starts with a digit", "should match: a DNS-1035 label", |job| {
            named(job, "7-up");
        }),
        refused("a name with a dot", "should match: a DNS-1035 label", |job| named(job, "a.b")),
        accepted("the longest name", |job| named(job, &fits)),
        refused("a name that is one too long", "must fit 63 characters", |job| {
            named(job, &longer);
        }),
        accepted("the longest name for ten workers", |job| {
            named(job, &fits);
            specs(job)["Worker"]["replicas"] = json!(10);
        }),
        refused("the longest name for eleven workers", "must fit 63 characters", |job| {
            named(job, &fits);
            specs(job)["Worker"]["replicas"] = json!(11);
        }),
        refused("scaled beyond what the name allows", "must fit 63 characters", |job| {
            named(job, &scaled);
            specs(job)["Worker"]["replicas"] = json!(11);
        })
        .after(|job| named(job, &scaled)),
        accepted("scaled within what the name allows", |job| {
            named(job, &scaled_up);
            specs(job)["Worker"]["replicas"] = json!(10);
        })
        .after(|job| named(job, &scaled_up)),
        accepted("the longest name beside TensorBoard", |job| {
            named(job, &board);
            with_board(job);
        }),
        refused("no room for TensorBoard", "-tensorboard-0, must fit 63", |job| {
            named(job, &format!("{board}u"));
            with_board(job);
        }),
    ]
}
