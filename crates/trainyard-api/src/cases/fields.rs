//! Cases about policies and the other fields of a job.

use serde_json::{Value, json};

use super::{Draft, accepted, refused};

pub(super) fn drafts() -> Vec<Draft> {
    let mut drafts = restart_policies();
    drafts.extend(choices());
    drafts.extend(bounds());
    drafts.extend(managed_by());
    drafts.extend(scheduling());
    drafts.extend(tensorboard());
    drafts
}

const NOT_NEGATIVE: &str = "should be greater than or equal to 0";

fn run_policy(job: &mut Value, field: &str, value: Value) {
    job["spec"]["runPolicy"][field] = value;
}

fn worker(job: &mut Value) -> &mut Value {
    &mut job["spec"]["tfReplicaSpecs"]["Worker"]
}

fn restart_policies() -> Vec<Draft> {
    vec![
        accepted("every restart policy", |job| {
            let mut specs = json!({});
            for (kind, policy) in
                [("Chief", "Always"), ("PS", "Never"), ("Worker", "ExitCode"), ("Evaluator", "")]
            {
                specs[kind] = super::replica(1);
                specs[kind]["restartPolicy"] = json!(policy);
            }
            job["spec"]["tfReplicaSpecs"] = specs;
        }),
        refused("an unknown restart policy", "Unsupported value: \"Sometimes\"", |job| {
            worker(job)["restartPolicy"] = json!("Sometimes");
        }),
        accepted("a restart policy in the template", |job| {
            worker(job)["template"]["spec"]["restartPolicy"] = json!("OnFailure");
        }),
        refused("an unknown one in the template", "Unsupported value: \"sometimes\"", |job| {
            worker(job)["template"]["spec"]["restartPolicy"] = json!("sometimes");
        }),
    ]
}

fn choices() -> Vec<Draft> {
    let mut drafts = vec![
        refused("an unknown pod policy", "Unsupported value: \"Some\"", |job| {
            run_policy(job, "cleanPodPolicy", json!("Some"));
        }),
        refused("an unknown pod policy at the old place", "Unsupported value: \"none\"", |job| {
            job["spec"]["cleanPodPolicy"] = json!("none");
        }),
        accepted("the success policy of old examples", |job| {
            job["spec"]["successPolicy"] = json!("ChiefWorker");
        }),
        accepted("all workers", |job| {
            job["spec"]["successPolicy"] = json!("AllWorkers");
        }),
        accepted("an empty success policy", |job| {
            job["spec"]["successPolicy"] = json!("");
        }),
        refused("an unknown success policy", "Unsupported value: \"AnyWorker\"", |job| {
            job["spec"]["successPolicy"] = json!("AnyWorker");
        }),
        accepted("restarts of the whole job", |job| {
            run_policy(job, "restartScope", json!("Job"));
        }),
        refused("an unknown restart scope", "Unsupported value: \"Pod\"", |job| {
            run_policy(job, "restartScope", json!("Pod"));
        }),
        accepted("dynamic workers", |job| {
            job["spec"]["enableDynamicWorker"] = json!(true);
        }),
        refused("a flag that is text", "must be of type boolean", |job| {
            run_policy(job, "suspend", json!("yes"));
        }),
        accepted("a run policy that is null", |job| {
            job["spec"]["runPolicy"] = Value::Null;
        }),
    ];
    for (name, policy) in [
        ("pods that run are cleaned up", "Running"),
        ("all pods are cleaned up", "All"),
        ("no pods are cleaned up", "None"),
        ("an empty pod policy", ""),
    ] {
        drafts.push(accepted(name, |job| {
            run_policy(job, "cleanPodPolicy", json!(policy));
            job["spec"]["cleanPodPolicy"] = json!(policy);
        }));
    }
    drafts
}

fn bounds() -> Vec<Draft> {
    let mut drafts = vec![
        accepted("every limit at zero", |job| {
            for field in [
                "activeDeadlineSeconds",
                "backoffLimit",
                "nodeLossTolerationSeconds",
                "startTimeoutSeconds",
                "ttlSecondsAfterFinished",
            ] {
                run_policy(job, field, json!(0));
            }
        }),
        accepted("limits at the old place", |job| {
            job["spec"]["activeDeadlineSeconds"] = json!(3600);
            job["spec"]["backoffLimit"] = json!(3);
            job["spec"]["cleanPodPolicy"] = json!("None");
            job["spec"]["ttlSecondsAfterFinished"] = json!(100);
        }),
        refused("a negative limit later", NOT_NEGATIVE, |job| {
            run_policy(job, "backoffLimit", json!(-3));
        })
        .after(|_| {}),
        refused("a limit beyond 32 bits", "should be less than or equal to 2147483647", |job| {
            run_policy(job, "backoffLimit", json!(2_147_483_648_i64));
        }),
    ];
    for (name, old_name, field) in [
        ("a negative deadline", "a negative deadline at the old place", "activeDeadlineSeconds"),
        ("a negative backoff limit", "a negative one at the old place", "backoffLimit"),
        ("a negative time to live", "a negative life at the old place", "ttlSecondsAfterFinished"),
    ] {
        drafts.push(refused(name, NOT_NEGATIVE, |job| {
            run_policy(job, field, json!(-1));
        }));
        drafts.push(refused(old_name, NOT_NEGATIVE, |job| {
            job["spec"][field] = json!(-1);
        }));
    }
    drafts.push(refused("a negative toleration", NOT_NEGATIVE, |job| {
        run_policy(job, "nodeLossTolerationSeconds", json!(-1));
    }));
    drafts.push(refused(
        "a toleration beyond 32 bits",
        "should be less than or equal to 2147483647",
        |job| run_policy(job, "nodeLossTolerationSeconds", json!(2_147_483_648_i64)),
    ));
    drafts.push(refused("a negative start time-out", NOT_NEGATIVE, |job| {
        run_policy(job, "startTimeoutSeconds", json!(-1));
    }));
    drafts
}

fn managed_by() -> Vec<Draft> {
    let ours = || json!("kubeflow.org/training-operator");
    let other = || json!("kueue.x-k8s.io/multikueue");
    vec![
        accepted("managed by us", |job| run_policy(job, "managedBy", ours())),
        accepted("managed elsewhere", |job| {
            run_policy(job, "managedBy", other());
        }),
        refused("managed by a stranger", "Unsupported value: \"me\": supported values", |job| {
            run_policy(job, "managedBy", json!("me"));
        }),
        refused("managed by nobody", "Unsupported value: \"\"", |job| {
            run_policy(job, "managedBy", json!(""));
        }),
        refused("a manager that changes", "field is immutable", |job| {
            run_policy(job, "managedBy", other());
        })
        .after(|job| run_policy(job, "managedBy", ours())),
        refused("a manager that is added", "field is immutable: it is not set", |job| {
            run_policy(job, "managedBy", ours());
        })
        .after(|_| {}),
        refused("a manager that is removed", "it is \"kueue.x-k8s.io/multikueue\"", |_| {})
            .after(|job| run_policy(job, "managedBy", other())),
        accepted("a manager that stays", |job| {
            run_policy(job, "managedBy", other());
            run_policy(job, "suspend", json!(true));
        })
        .after(|job| run_policy(job, "managedBy", other())),
    ]
}

fn scheduling() -> Vec<Draft> {
    let queue = |job: &mut Value, queue: &str| {
        run_policy(job, "schedulingPolicy", json!({"queue": queue, "minAvailable": 3}));
    };
    vec![
        accepted("a scheduling policy", |job| {
            let policy = json!({
                "minAvailable": 3, "queue": "research", "priorityClass": "high",
                "minResources": {"cpu": 4, "memory": "8Gi"}, "scheduleTimeoutSeconds": 60,
            });
            run_policy(job, "schedulingPolicy", policy);
        }),
        refused(
            "a queue that changes",
            "spec.runPolicy.schedulingPolicy.queue is immutable",
            |job| queue(job, "production"),
        )
        .after(|job| queue(job, "research")),
        accepted("a queue that is added", |job| queue(job, "research")).after(|_| {}),
        refused("a minimum of resources that is none", "should match", |job| {
            run_policy(job, "schedulingPolicy", json!({"minResources": {"cpu": "many"}}));
        }),
        refused("a gang of nobody", "should be greater than or equal to 1", |job| {
            run_policy(job, "schedulingPolicy", json!({"minAvailable": 0}));
        }),
        refused("a gang that waits less than nothing", NOT_NEGATIVE, |job| {
            run_policy(job, "schedulingPolicy", json!({"scheduleTimeoutSeconds": -1}));
        }),
        accepted("a gang larger than the job", |job| {
            run_policy(job, "schedulingPolicy", json!({"minAvailable": 1000}));
        }),
    ]
}

fn tensorboard() -> Vec<Draft> {
    let board = |job: &mut Value, board: Value| job["spec"]["tensorBoard"] = board;
    vec![
        accepted("a TensorBoard", |job| {
            board(
                job,
                json!({
                    "logDir": "/logs", "image": "tensorflow/tensorflow:2.21.0",
                    "serviceType": "NodePort",
                    "volumes": [{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}],
                    "volumeMounts": [{"name": "logs", "mountPath": "/logs"}],
                }),
            );
        }),
        refused("a TensorBoard without directory", "tensorBoard.logDir: Required value", |job| {
            board(job, json!({"image": "x"}));
        }),
        refused("a TensorBoard with an empty directory", "must name the directory", |job| {
            board(job, json!({"logDir": ""}));
        }),
        refused("an unknown type of service", "Unsupported value: \"Public\"", |job| {
            board(job, json!({"logDir": "/logs", "serviceType": "Public"}));
        }),
        refused("a mount without path", "volumeMounts[0].mountPath: Required value", |job| {
            board(job, json!({"logDir": "/logs", "volumeMounts": [{"name": "logs"}]}));
        })
        .only_in_v1(),
    ]
}
