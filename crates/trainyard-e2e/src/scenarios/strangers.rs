//! Objects that are not the job's: never counted, never deleted, waited for where they are in the
//! way.

use anyhow::Result;
use serde_json::{Value, json};

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["strangers":
        a_pod_has_our_name,
        a_service_has_our_name,
        our_labels_are_not_enough,
        another_owner_is_another_owner,
        the_same_name_again,
        the_same_name_again_while_pods_leave,
        odd_labels_do_no_harm,
    ]
}

fn labels(index: &str) -> Value {
    json!({
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/job-name": "a",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": index,
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [
            {"name": "tensorflow", "image": "example.com/other:1"}]},
    })
}

async fn a_pod_has_our_name(world: World) -> Result<()> {
    world.create(Resource::Pods, &pod("a-worker-0")).await?;
    let stranger = world.seen().uid("a-worker-0");
    world.submit(tfjob("a").workers(2)).await?;
    let seen = world
        .wait_until("the stranger is named", |seen| seen.told("a", "Warning FailedCreatePod"))
        .await?;
    let events = seen.events("a").join("\n");
    contains("event", &events, &["FailedCreatePod Error creating:", "a-worker-0"])?;
    world.wait_until("the other worker is there", |seen| !seen.pod("a-worker-1").is_null()).await?;
    world
        .never_within(300, "the stranger is touched", |seen| seen.uid("a-worker-0") != stranger)
        .await?;
    world.kubelet.delete("a-worker-0", Some(0)).await?;
    let seen = world.wait_successor("a-worker-0", &stranger).await?;
    let owner = &seen.pod("a-worker-0")["metadata"]["ownerReferences"][0]["kind"];
    equal("now it is ours", owner, "TFJob")?;
    world.kubelet.start_all(&["a-worker-0", "a-worker-1"]).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn a_service_has_our_name(world: World) -> Result<()> {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a-worker-0"},
        "spec": {"ports": [{"port": 80}]},
    });
    world.create(Resource::Services, &service).await?;
    world.submit(tfjob("a").workers(1)).await?;
    world
        .wait_until("the stranger is named", |seen| seen.told("a", "Warning FailedCreateService"))
        .await?;
    let seen = world.seen();
    equal("untouched", &seen.service("a-worker-0")["spec"]["ports"][0]["port"], 80)?;
    world.rest.delete(Resource::Services, "a-worker-0", None).await?;
    world
        .wait_until("ours takes its place", |seen| {
            seen.service("a-worker-0")["spec"]["clusterIP"] == "None"
        })
        .await?;
    Ok(())
}

async fn our_labels_are_not_enough(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let mut other = pod("other");
    other["metadata"]["labels"] = labels("0");
    let mut surplus = pod("surplus");
    surplus["metadata"]["labels"] = labels("7");
    world.create(Resource::Pods, &other).await?;
    world.create(Resource::Pods, &surplus).await?;
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("other", 1).await?;
    world.kubelet.exit("surplus", 0).await?;
    world
        .never_within(400, "strangers are counted or deleted", |seen| {
            seen.conditions("a") != ["Created=True", "Running=True"]
                || seen.pods() != ["a-worker-0", "other", "surplus"]
        })
        .await?;
    equal("counts", world.seen().counts("a", "Worker"), [1, 0, 0])
}

async fn another_owner_is_another_owner(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let owner = world.submit(tfjob("b").workers(0)).await?;
    let mut other = pod("other");
    other["metadata"]["labels"] = labels("0");
    other["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "b",
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    world.create(Resource::Pods, &other).await?;
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("other", 1).await?;
    world
        .never_within(400, "the pod of another job counts", |seen| {
            seen.is("a", "Failed") || seen.is("b", "Failed")
        })
        .await
}

async fn the_same_name_again(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let old = world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    let uid = old.uid("a-worker-0");
    world.delete("a").await?;
    world.submit(tfjob("a").workers(2)).await?;
    world.wait_successor("a-worker-0", &uid).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("nothing of the old job counts", seen.completed("a", "Worker"), "")?;
    Ok(())
}

async fn the_same_name_again_while_pods_leave(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    world.kubelet.start("a-worker-0").await?;
    let old = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let uid = old.uid("a-worker-0");
    world.delete("a").await?;
    world.wait_until("its pod is being deleted", |seen| seen.live_pods().is_empty()).await?;
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    world
        .never_within(300, "the old pod counts for the new job", |seen| {
            seen.is("a", "Running") || seen.is("a", "Failed")
        })
        .await?;
    world.kubelet.finish_termination("a-worker-0").await?;
    world.wait_successor("a-worker-0", &uid).await?;
    world.kubelet.start("a-worker-0").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

/// Pods that say they belong to the job but not to which replica.
async fn odd_labels_do_no_harm(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let owner = json!([{
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a",
        "uid": job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    for (name, index) in [("odd-1", "99999999999"), ("odd-2", "banana"), ("odd-3", "0")] {
        let mut odd = pod(name);
        odd["metadata"]["labels"] = labels(index);
        odd["metadata"]["ownerReferences"] = owner.clone();
        world.create(Resource::Pods, &odd).await?;
        world.wait_until("it runs", |seen| seen.pod(name)["status"]["phase"] == "Running").await?;
        world.kubelet.exit(name, 1).await?;
    }
    world
        .never_within(400, "they are taken for replicas", |seen| {
            seen.conditions("a") != ["Created=True", "Running=True"]
                || seen.counts("a", "Worker") != [1, 0, 0]
        })
        .await
}
