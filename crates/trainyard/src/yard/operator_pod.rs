//! The operator as people look for it: a pod in `kubeflow` whose log is the operator's.
//!
//! Must not know how the operator works.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Where the operator is shown.
pub(super) const NAMESPACE: &str = "kubeflow";
const LABEL: &str = "tf-job-operator";

/// The pod's name.
pub(super) fn name() -> String {
    format!("{LABEL}-0")
}

/// Shows the operator.
pub(super) async fn show(client: &Client) -> Result<(), Failure> {
    let failed = |doing: &str, error: &kube::Error| Failure::other(doing, error);
    let pods = api(client, "", "Pod", Some(NAMESPACE));
    put(&pods, pod()).await.map_err(|error| failed("showing the operator", &error))?;
    let status = json!({"status": status()});
    pods.patch_status(&name(), &PatchParams::default(), &Patch::Merge(&status))
        .await
        .map_err(|error| failed("showing the operator", &error))?;
    Ok(())
}

pub(super) fn api(
    client: &Client,
    group: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates the pod. Of one that is there the specification cannot change; its labels can.
async fn put(api: &Api<DynamicObject>, object: Value) -> Result<(), kube::Error> {
    let wanted: DynamicObject =
        serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &wanted).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(answer)) if answer.code == 409 => {
            let name = wanted.metadata.name.clone().unwrap_or_default();
            let patch = json!({"metadata": {"labels": object["metadata"]["labels"]}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name(), "namespace": NAMESPACE,
            "labels": {"name": LABEL, "app.kubernetes.io/name": "trainyard"},
            "annotations": {"trainyard.dev/resident": "true"},
        },
        "spec": {
            "restartPolicy": "Always",
            // It runs in the yard itself: no scheduler is to find it a node.
            "schedulerName": "trainyard-resident",
            "automountServiceAccountToken": false,
            "containers": [{
                "name": LABEL,
                "image": concat!("trainyard:", env!("CARGO_PKG_VERSION")),
                "args": ["operator"],
            }],
            "tolerations": [{"operator": "Exists"}],
        },
    })
}

fn status() -> Value {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    json!({
        "phase": "Running",
        "startTime": now,
        "conditions": conditions,
        "containerStatuses": [{
            "name": LABEL, "ready": true, "started": true, "restartCount": 0,
            "image": concat!("trainyard:", env!("CARGO_PKG_VERSION")), "imageID": "",
            "state": {"running": {"startedAt": now}},
        }],
    })
}
