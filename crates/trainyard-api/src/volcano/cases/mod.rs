//! Objects of Volcano's kinds that are accepted and objects that are refused, as data.
//!
//! The same cases are put to our own evaluation of the definitions and to a real API server, so that
//! the two can never disagree in silence. Owns only the cases; must not evaluate them.

mod jobs;
mod policies;
mod scheduling;
mod tasks;
mod updates;

use serde_json::{Value, json};

pub use crate::cases::Case;

/// All cases. Objects of creations share names; those of updates do not.
#[must_use]
pub fn validation_cases() -> Vec<Case> {
    let mut cases = jobs::cases();
    cases.extend(tasks::cases());
    cases.extend(policies::cases());
    cases.extend(scheduling::cases());
    for (index, mut case) in updates::cases().into_iter().enumerate() {
        for object in [Some(&mut case.object), case.old.as_mut()].into_iter().flatten() {
            if object["metadata"]["name"] == NAME {
                object["metadata"]["name"] = json!(format!("update-{index}"));
            }
        }
        cases.push(case);
    }
    cases
}

/// The manifest that people know: parameter servers and workers, each pod told all names in files.
#[must_use]
pub fn tensorflow_job() -> Value {
    let container = |kind: &str| {
        let script = format!(
            "PS_HOST=`cat /etc/volcano/ps.host | sed 's/$/&:2222/g' | tr \"\\n\" \",\"`;\n\
             export TF_CONFIG={{\\\"task\\\":{{\\\"type\\\":\\\"{kind}\\\",\
             \\\"index\\\":${{VK_TASK_INDEX}}}},\\\"environment\\\":\\\"cloud\\\"}};\n\
             python /var/tf_dist_mnist/dist_mnist.py\n"
        );
        json!({
            "command": ["sh", "-c", script],
            "image": "volcanosh/dist-mnist-tf-example:0.0.1",
            "name": "tensorflow",
            "ports": [{"containerPort": 2222, "name": "tfjob-port"}],
            "resources": {},
        })
    };
    let template =
        |kind: &str| json!({"spec": {"containers": [container(kind)], "restartPolicy": "Never"}});
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "tensorflow-dist-mnist"},
        "spec": {
            "minAvailable": 3,
            "schedulerName": "volcano",
            "plugins": {"env": [], "svc": []},
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "queue": "default",
            "tasks": [
                {"replicas": 1, "name": "ps", "template": template("ps")},
                {
                    "replicas": 2,
                    "name": "worker",
                    "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
                    "template": template("worker"),
                },
            ],
        },
    })
}

/// The name that cases share.
const NAME: &str = "mnist";

/// The job that cases start from: a server and two workers.
fn job() -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": NAME},
        "spec": {"minAvailable": 3, "tasks": [task("ps", 1), task("worker", 2)]},
    })
}

fn task(name: &str, replicas: i64) -> Value {
    json!({
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"containers": [
            {"name": "main", "image": "tensorflow/tensorflow:2.21.0"},
        ]}},
    })
}

/// A job that is accepted after the change.
fn accepted(name: &str, change: impl FnOnce(&mut Value)) -> Case {
    let mut object = job();
    change(&mut object);
    Case { name: format!("Job: {name}"), object, old: None, refused: None }
}

/// A job that is refused after the change.
fn refused(name: &str, message: &str, change: impl FnOnce(&mut Value)) -> Case {
    Case { refused: Some(message.to_owned()), ..accepted(name, change) }
}

fn spec(job: &mut Value) -> &mut Value {
    &mut job["spec"]
}

fn remove(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}
