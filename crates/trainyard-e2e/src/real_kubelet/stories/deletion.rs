//! Pods that somebody deletes while they run: made again under every policy, and not counted.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::{equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{TOLD, job, worker};
use crate::real_kubelet::site::Scene;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["deletion":
        deleted_pod_is_made_again_and_not_counted_under_never,
        deleted_pod_is_made_again_and_not_counted_under_on_failure,
        deleted_pod_is_made_again_and_not_counted_under_always,
        deleted_pod_is_made_again_and_not_counted_under_exit_code,
        deleted_pod_that_ends_well_is_made_again,
        pod_deleted_by_force_is_made_again,
        deleted_pod_of_a_completed_replica_never_runs_again,
        deleted_service_is_made_again,
    ]
}

async fn deleted_pod_is_made_again_and_not_counted_under_never(scene: &Scene) -> Result<()> {
    deleted_under(scene, "Never", &[]).await
}

async fn deleted_pod_is_made_again_and_not_counted_under_on_failure(scene: &Scene) -> Result<()> {
    deleted_under(scene, "OnFailure", &[]).await
}

async fn deleted_pod_is_made_again_and_not_counted_under_always(scene: &Scene) -> Result<()> {
    deleted_under(scene, "Always", &[]).await
}

async fn deleted_pod_is_made_again_and_not_counted_under_exit_code(scene: &Scene) -> Result<()> {
    deleted_under(scene, "ExitCode", &[]).await
}

async fn pod_deleted_by_force_is_made_again(scene: &Scene) -> Result<()> {
    deleted_under(scene, "Never", &["--force", "--grace-period=0"]).await
}

/// One of two workers is deleted; the other knows nothing of it, and the job goes on. A backoff limit of none would
/// be passed by anything that counts.
async fn deleted_under(scene: &Scene, policy: &str, flags: &[&str]) -> Result<()> {
    let all = job("a", &[("Worker", 2, TOLD)]).restart(policy).run_policy("backoffLimit", 0);
    scene.create(all).await?;
    scene.runs("a").await?;
    let (first, other) = (scene.life("a-worker-0").await?, scene.life("a-worker-1").await?);
    scene.ok(&[&["delete", "pod", "a-worker-0"], flags].concat()).await?;
    scene.is_replaced("a-worker-0", &first.0).await?;
    equal("the other worker", scene.life("a-worker-1").await?, other)?;
    let after = scene.get("tfjob/a").await?;
    fields("job", &after, &[("/status/restarts", json!(null))])?;
    if policy == "Always" {
        return Ok(());
    }
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

/// A program that obeys ends with code 0: that is no success of its replica.
async fn deleted_pod_that_ends_well_is_made_again(scene: &Scene) -> Result<()> {
    let polite = "trap 'exit 0' TERM; echo up; while [ ! -e /tmp/end ]; do sleep 0.3; done";
    scene.create(worker("a", "Never", polite)).await?;
    scene.runs("a").await?;
    let (uid, _) = scene.life("a-worker-0").await?;
    scene.ok(&["delete", "pod", "a-worker-0"]).await?;
    scene.is_replaced("a-worker-0", &uid).await?;
    let job = scene.get("tfjob/a").await?;
    ensure!(job["status"]["completionTime"].is_null(), "{}", job["status"]);
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn deleted_pod_of_a_completed_replica_never_runs_again(scene: &Scene) -> Result<()> {
    let all = job("a", &[("Chief", 1, TOLD), ("Worker", 1, "echo done")]).restart("Never");
    scene.create(all).await?;
    scene.wait("pod/a-worker-0", "jsonpath={.status.phase}=Succeeded").await?;
    let path = "jsonpath={.status.replicaStatuses.Worker.succeeded}=1";
    scene.wait("tfjob/a", path).await?;
    scene.ok(&["delete", "pod", "a-worker-0"]).await?;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    equal("pods", scene.pods("a").await?, ["a-chief-0 Running"])?;
    scene.end("a-chief-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn deleted_service_is_made_again(scene: &Scene) -> Result<()> {
    scene.create(worker("a", "Never", TOLD)).await?;
    scene.runs("a").await?;
    let uid = scene.get("service/a-worker-0").await?["metadata"]["uid"].clone();
    scene.ok(&["delete", "service", "a-worker-0"]).await?;
    scene.wait("service/a-worker-0", "create").await?;
    let again = scene.get("service/a-worker-0").await?["metadata"]["uid"].clone();
    ensure!(again != uid, "the service was not deleted");
    Ok(())
}
