//! Claims that are bound when their first consumer is placed: a volume is a folder of one node.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::Manifest;
use crate::real_kubelet::jobs::{TOLD, job, worker};
use crate::real_kubelet::site::{NODES, Scene};
use crate::seen::text;

/// On the cluster's own scheduler, and on the gang scheduler.
pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["volumes":
        claim_that_waits_for_its_consumer_is_bound_where_its_volume_is,
        ephemeral_volume_is_claimed_where_one_is_and_goes_with_its_pod,
    ]
}

/// On the gang scheduler alone.
pub(super) fn of_gangs() -> Vec<Case<Arc<Scene>>> {
    cases!["volumes": gang_has_each_claim_bound_where_a_volume_is]
}

/// The story's class, whose claims wait for their first consumer, and a volume of it for each of these nodes; gives
/// the folders behind them.
async fn volumes(scene: &Scene, nodes: &[&str]) -> Result<Vec<PathBuf>> {
    let class = scene.namespace.as_str();
    let mut all = vec![json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    })];
    let mut folders = Vec::new();
    for node in nodes {
        let name = volume(scene, node);
        let folder = scene.site.folder(&name)?;
        let on_node = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [{
            "key": "kubernetes.io/hostname", "operator": "In", "values": [node],
        }]}]}});
        all.push(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": class, "local": {"path": folder}, "nodeAffinity": on_node,
                "persistentVolumeReclaimPolicy": "Retain",
            },
        }));
        folders.push(folder);
    }
    scene.create(json!({"apiVersion": "v1", "kind": "List", "items": all})).await?;
    Ok(folders)
}

/// The name of the volume on a node.
fn volume(scene: &Scene, node: &str) -> String {
    format!("{}-{node}", scene.namespace)
}

/// A claim of the story's class.
fn claim(scene: &Scene) -> Value {
    json!({"spec": {
        "storageClassName": scene.namespace, "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }})
}

/// The same under a name.
fn named_claim(scene: &Scene, name: &str) -> Value {
    let mut claim = claim(scene);
    claim["apiVersion"] = "v1".into();
    claim["kind"] = "PersistentVolumeClaim".into();
    claim["metadata"] = json!({"name": name});
    claim
}

/// Has replicas of a type keep their model on a volume.
fn with_model(job: Manifest, kind: &str, source: &Value) -> Manifest {
    job.edit(kind, |replica| {
        let mut volume = source.clone();
        volume["name"] = "model".into();
        let spec = &mut replica["template"]["spec"];
        spec["volumes"] = json!([volume]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "model", "mountPath": "/model"}]);
    })
}

/// Writes to its model who it is, and goes on until it is told to end.
fn trains(replica: &str) -> String {
    format!("echo {replica} > /model/weights; {TOLD}")
}

/// A pod is on the node of the volume that its claim is bound to.
async fn is_bound(scene: &Scene, pod: &str, claim: &str) -> Result<String> {
    let pod = scene.get(&format!("pod/{pod}")).await?;
    let node = text(&pod["spec"]["nodeName"]);
    let found = scene.get(&format!("pvc/{claim}")).await?;
    equal(claim, text(&found["status"]["phase"]), "Bound")?;
    equal(claim, text(&found["spec"]["volumeName"]), volume(scene, node).as_str())?;
    Ok(node.to_owned())
}

fn weights(folder: &Path) -> Result<String> {
    Ok(std::fs::read_to_string(folder.join("weights"))?)
}

/// Removes what is in no namespace.
async fn remove(scene: &Scene, nodes: &[&str]) -> Result<()> {
    scene.ok(&["delete", "tfjob,pod,pvc", "--all"]).await?;
    let volumes = nodes.iter().map(|node| format!("pv/{}", volume(scene, node)));
    let all: Vec<_> = volumes.chain([format!("storageclass/{}", scene.namespace)]).collect();
    let words = std::iter::once("delete").chain(all.iter().map(String::as_str));
    scene.ok(&words.collect::<Vec<_>>()).await.map(drop)
}

/// The job's pod must go to the node of the only volume, and keep what it writes there.
async fn claim_that_waits_for_its_consumer_is_bound_where_its_volume_is(
    scene: &Scene,
) -> Result<()> {
    let folders = volumes(scene, &NODES[1..]).await?;
    scene.create(named_claim(scene, "model")).await?;
    let source = json!({"persistentVolumeClaim": {"claimName": "model"}});
    let job = worker("a", "Never", &trains("worker"));
    scene.create(with_model(job, "Worker", &source)).await?;
    scene.runs("a").await?;
    equal("node", is_bound(scene, "a-worker-0", "model").await?.as_str(), NODES[1])?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    equal("weights", weights(&folders[0])?.as_str(), "worker\n")?;
    remove(scene, &NODES[1..]).await
}

/// A volume that a template asks for is a claim of each pod's own.
async fn ephemeral_volume_is_claimed_where_one_is_and_goes_with_its_pod(
    scene: &Scene,
) -> Result<()> {
    let folders = volumes(scene, &NODES[1..]).await?;
    let source = json!({"ephemeral": {"volumeClaimTemplate": claim(scene)}});
    let job = worker("a", "Never", &trains("worker"));
    scene.create(with_model(job, "Worker", &source)).await?;
    scene.runs("a").await?;
    let claim = "a-worker-0-model";
    equal("node", is_bound(scene, "a-worker-0", claim).await?.as_str(), NODES[1])?;
    let owner = &scene.get(&format!("pvc/{claim}")).await?["metadata"]["ownerReferences"][0];
    equal("its owner", text(&owner["uid"]), scene.life("a-worker-0").await?.0.as_str())?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    equal("weights", weights(&folders[0])?.as_str(), "worker\n")?;
    scene.ok(&["delete", "pod", "a-worker-0"]).await?;
    scene.wait(&format!("pvc/{claim}"), "delete").await?;
    remove(scene, &NODES[1..]).await
}

/// Two replicas, each with a claim, and one volume on each node: they are placed together, or neither is.
async fn gang_has_each_claim_bound_where_a_volume_is(scene: &Scene) -> Result<()> {
    let folders = volumes(scene, &NODES).await?;
    let (chief, worker) = (trains("chief"), trains("worker"));
    let mut gang = job("a", &[("Chief", 1, &chief), ("Worker", 1, &worker)]).restart("Never");
    for (kind, name) in [("Chief", "of-chief"), ("Worker", "of-worker")] {
        scene.create(named_claim(scene, name)).await?;
        gang = with_model(gang, kind, &json!({"persistentVolumeClaim": {"claimName": name}}));
    }
    scene.create(gang).await?;
    for pod in ["a-chief-0", "a-worker-0"] {
        scene.wait(&format!("pod/{pod}"), "condition=Ready").await?;
    }
    let of_chief = is_bound(scene, "a-chief-0", "of-chief").await?;
    let of_worker = is_bound(scene, "a-worker-0", "of-worker").await?;
    let mut nodes = [of_chief.as_str(), of_worker.as_str()];
    nodes.sort_unstable();
    equal("nodes", nodes, NODES)?;
    for pod in ["a-chief-0", "a-worker-0"] {
        let scheduler = &scene.get(&format!("pod/{pod}")).await?["spec"]["schedulerName"];
        equal("scheduler", text(scheduler), "trainyard")?;
    }
    let group = scene.get("podgroup.scheduling.volcano.sh/a").await?;
    equal("group", &group["spec"]["minMember"], &json!(2))?;
    scene.end("a-chief-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    let mut all = [weights(&folders[0])?, weights(&folders[1])?];
    all.sort_unstable();
    equal("weights", all, ["chief\n".to_owned(), "worker\n".to_owned()])?;
    let chief_s = usize::from(of_chief == NODES[1]);
    equal("the chief's weights", weights(&folders[chief_s])?.as_str(), "chief\n")?;
    remove(scene, &NODES).await
}
