//! The TensorBoard beside a job: one pod and one service more.
//!
//! Lives from the job's start until the job is deleted or suspended, and has no say in the job's
//! success. Must not put anything into `TF_CONFIG`.

use jiff::Timestamp;
use serde_json::{Value, json};
use trainyard_api::{JobStatus, TensorBoard, names};

use super::{
    end::{End, end},
    objects::{Builder, pass_annotations_on, tolerate_node_loss},
    removal::pod_removal,
    restart::{due_for, find, note_disruption},
    roster::Roster,
};
use crate::{
    child::Child,
    config::Config,
    plan::{Create, Plan, Write},
};

/// The name of its record.
const RECORD: &str = "tensorboard-0";
/// Port of the web server.
const PORT: i64 = 6006;

/// Notes that its pod ended and is to be replaced.
pub(super) fn judge(status: &mut JobStatus, roster: &Roster<'_>, now: Timestamp, config: &Config) {
    let Some(pod) = roster.tensorboard else {
        return;
    };
    let ended =
        matches!(end(pod, now, config), End::Completed | End::Failed(_)) && pod.phase.is_finished();
    let noted =
        find(status, RECORD).is_some_and(|record| record.replaced && *record.uid == *pod.uid);
    if ended && !noted {
        note_disruption(status, RECORD, &pod.uid, now, config);
    }
}

/// What is to be created and deleted for it: writes for services, writes for pods.
#[must_use]
pub(super) fn writes(
    builder: &Builder<'_>,
    roster: &Roster<'_>,
    status: &JobStatus,
    now: Timestamp,
    plan: &mut Plan,
) -> (Vec<Write>, Vec<Write>) {
    let config = builder.config;
    let Some(board) = &builder.spec.tensorboard else {
        let service = roster.tensorboard_service.and_then(super::removal::service_removal);
        let pod = roster.tensorboard.and_then(|pod| pod_removal(pod, now, config, plan));
        return (service.into_iter().collect(), pod.into_iter().collect());
    };
    let mut services = Vec::new();
    let mut pods = Vec::new();
    if roster.tensorboard_service.is_none() {
        services.push(Write::Create(Child::Service, service(builder, board)));
    }
    match roster.tensorboard {
        Some(pod) if pod.phase.is_finished() => {
            pods.extend(pod_removal(pod, now, config, plan));
        }
        Some(_) => {}
        None => {
            let due = due_for(status, RECORD, config);
            if now < due {
                plan.look_again(due);
            } else {
                pods.push(Write::Create(Child::Pod, pod(builder, board)));
            }
        }
    }
    (services, pods)
}

fn name(builder: &Builder<'_>) -> String {
    names::replica_name(&builder.meta.name, names::TENSORBOARD, 0)
}

fn pod(builder: &Builder<'_>, board: &TensorBoard) -> Create {
    let name = name(builder);
    // Without volumes of its own it sees what the deciding replica sees, so logDir means the same.
    let deciding = builder
        .spec
        .deciding_type()
        .and_then(|kind| builder.spec.replicas.get(&kind))
        .or_else(|| builder.spec.replicas.values().next())
        .map(|replica| &replica.template);
    let trainer = deciding
        .and_then(|template| template.pointer("/spec/containers")?.as_array())
        .and_then(|all| all.iter().find(|container| container["name"] == names::CONTAINER));
    let of_trainer = |key: &str| trainer.and_then(|c| c.get(key)).cloned();
    let of_template =
        |key: &str| deciding.and_then(|template| template.pointer("/spec")?.get(key)).cloned();
    let own = board.volumes.is_some() || board.volume_mounts.is_some();
    let (volumes, mounts) = if own {
        (board.volumes.clone(), board.volume_mounts.clone())
    } else {
        (of_template("volumes"), of_trainer("volumeMounts"))
    };
    let image = board.image.clone().map(Value::from).or_else(|| of_trainer("image"));
    let mut container = json!({
        "name": names::TENSORBOARD,
        "image": image,
        "command": ["tensorboard", "--logdir", board.log_dir, "--host", "0.0.0.0"],
        "ports": [{"name": "tb-port", "containerPort": PORT}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    set(&mut container, "volumeMounts", mounts);
    let mut spec = json!({"restartPolicy": "Always", "containers": [container]});
    set(&mut spec, "volumes", volumes);
    set(&mut spec, "imagePullSecrets", of_template("imagePullSecrets"));
    set(&mut spec, "serviceAccountName", of_template("serviceAccountName"));
    set(&mut spec, "securityContext", of_template("securityContext"));
    if let Some(seconds) = builder.spec.run_policy.node_loss_toleration_seconds {
        tolerate_node_loss(&mut spec, seconds);
    }
    let mut metadata = builder.metadata(&name, &builder.labels(names::TENSORBOARD, 0));
    // It runs in the environment of the training, and a browser on the node's machine may look at it.
    let mut annotations = builder.meta.annotations.clone();
    annotations.insert(names::ANNOTATION_EXPOSE.to_owned(), PORT.to_string());
    pass_annotations_on(&mut metadata, &annotations);
    let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    Create { name, group: names::TENSORBOARD.into(), index: 0, body }
}

fn set(target: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value.filter(|value| !value.is_null()) {
        target[key] = value;
    }
}

fn service(builder: &Builder<'_>, board: &TensorBoard) -> Create {
    let name = name(builder);
    let labels = builder.labels(names::TENSORBOARD, 0);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": builder.metadata(&name, &labels),
        "spec": {
            "type": board.service_type.as_deref().unwrap_or("ClusterIP"),
            "selector": labels,
            "ports": [{"name": "tb-port", "port": 80, "targetPort": PORT}],
        },
    });
    Create { name, group: names::TENSORBOARD.into(), index: 0, body }
}
