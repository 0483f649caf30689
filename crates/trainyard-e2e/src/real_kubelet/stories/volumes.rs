//! Claims that are bound when their first consumer is placed.

use std::sync::Arc;

use anyhow::Result;
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{TOLD, worker};
use crate::real_kubelet::site::{NODES, Scene};
use crate::seen::text;

/// On the cluster's own scheduler, and on the gang scheduler.
pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["volumes": claim_that_waits_for_its_consumer_is_bound_where_its_volume_is]
}

/// A folder of one node as a volume, and a claim of the same class that waits for its first consumer: the job's pod
/// must go to that node, and keep what it writes there.
pub(super) async fn claim_that_waits_for_its_consumer_is_bound_where_its_volume_is(
    scene: &Scene,
) -> Result<()> {
    let (class, node) = (scene.namespace.as_str(), NODES[1]);
    let folder = scene.site.folder(&format!("{class}-volume"))?;
    let on_node = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{
        "key": "kubernetes.io/hostname", "operator": "In", "values": [node],
    }]}]}});
    let all = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": class},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": class, "local": {"path": folder}, "nodeAffinity": on_node,
                "persistentVolumeReclaimPolicy": "Retain",
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "model"},
            "spec": {
                "storageClassName": class, "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]});
    scene.create(all).await?;
    let job = worker("a", "Never", &format!("echo trained > /model/weights; {TOLD}")).edit(
        "Worker",
        |replica| {
            let spec = &mut replica["template"]["spec"];
            spec["volumes"] =
                json!([{"name": "model", "persistentVolumeClaim": {"claimName": "model"}}]);
            spec["containers"][0]["volumeMounts"] =
                json!([{"name": "model", "mountPath": "/model"}]);
        },
    );
    scene.create(job).await?;
    scene.runs("a").await?;
    let pod = scene.get("pod/a-worker-0").await?;
    equal("node", text(&pod["spec"]["nodeName"]), node)?;
    let claim = scene.get("pvc/model").await?;
    equal("claim", text(&claim["status"]["phase"]), "Bound")?;
    equal("volume", text(&claim["spec"]["volumeName"]), class)?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    equal("weights", std::fs::read_to_string(folder.join("weights"))?.as_str(), "trained\n")?;
    scene.ok(&["delete", "tfjob/a", "pod/a-worker-0", "pvc/model", "--ignore-not-found"]).await?;
    scene.ok(&["delete", &format!("pv/{class}"), &format!("storageclass/{class}")]).await.map(drop)
}
