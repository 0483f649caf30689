//! Pods that somebody deletes while they run: made again under every policy, and not counted.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::{equal, fields};
use crate::harness::{Case, cases, tried_once};
use crate::real_kubelet::jobs::{TOLD, job, worker};
use crate::real_kubelet::site::Scene;

/// What people lose here they have lost for good.
pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    let all = cases!["deletion":
        deleted_pod_is_made_again_and_not_counted_under_never,
        deleted_pod_is_made_again_and_not_counted_under_on_failure,
        deleted_pod_is_made_again_and_not_counted_under_always,
        deleted_pod_is_made_again_and_not_counted_under_exit_code,
        deleted_pod_that_ends_well_is_made_again,
        pod_deleted_by_force_is_made_again,
        deleted_pod_of_a_completed_replica_never_runs_again,
        deleted_service_is_made_again,
    ];
    tried_once(all)
}

async fn deleted_pod_is_made_again_and_not_counted_under_never(scene: &Scene) -> Result<()> {
    deleted_under(scene, "Never", TOLD, &[]).await
}

async fn deleted_pod_is_made_again_and_not_counted_under_on_failure(scene: &Scene) -> Result<()> {
    deleted_under(scene, "OnFailure", TOLD, &[]).await
}

async fn deleted_pod_is_made_again_and_not_counted_under_always(scene: &Scene) -> Result<()> {
    deleted_under(scene, "Always", TOLD, &[]).await
}

async fn deleted_pod_is_made_again_and_not_counted_under_exit_code(scene: &Scene) -> Result<()> {
    deleted_under(scene, "ExitCode", TOLD, &[]).await
}

/// A program that obeys ends with code 0: that is no success of its replica.
async fn deleted_pod_that_ends_well_is_made_again(scene: &Scene) -> Result<()> {
    let polite = TOLD.replace("exit 143", "exit 0");
    deleted_under(scene, "Never", &polite, &[]).await
}

async fn pod_deleted_by_force_is_made_again(scene: &Scene) -> Result<()> {
    deleted_under(scene, "Never", TOLD, &["--force", "--grace-period=0"]).await
}

/// So many pods are deleted in a story: each end has a moment of its own at which it can be misunderstood.
const TIMES: i64 = 8;

/// All workers but one are deleted; that one knows nothing of it, and the job goes on. A backoff limit of none would
/// be passed by anything that counts, and the success of one worker would be the job's.
async fn deleted_under(scene: &Scene, policy: &str, script: &str, flags: &[&str]) -> Result<()> {
    let last = format!("a-worker-{TIMES}");
    let all = job("a", &[("Worker", TIMES + 1, script)]);
    scene.create(all.restart(policy).run_policy("backoffLimit", 0)).await?;
    scene.runs("a").await?;
    let before = scene.life(&last).await?;
    let mut uids = scene.uids().await?;
    uids.remove(&last);
    equal("pods", i64::try_from(uids.len())?, TIMES)?;
    let names: Vec<&str> = uids.keys().map(String::as_str).collect();
    scene.ok(&[&["delete", "pod"], &names[..], flags].concat()).await?;
    scene.are_replaced(&uids).await?;
    scene.runs("a").await?;
    equal("the other worker", scene.life(&last).await?, before)?;
    let after = scene.get("tfjob/a").await?;
    fields("job", &after, &[("/status/restarts", json!(null))])?;
    ensure!(after["status"]["completionTime"].is_null(), "{}", after["status"]);
    if policy == "Always" {
        return Ok(());
    }
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn deleted_pod_of_a_completed_replica_never_runs_again(scene: &Scene) -> Result<()> {
    let all = job("a", &[("Chief", 1, TOLD), ("Worker", 1, "echo done")]).restart("Never");
    scene.create(all).await?;
    scene.wait("pod/a-worker-0", "jsonpath={.status.phase}=Succeeded").await?;
    scene.wait("pod/a-chief-0", "condition=Ready").await?;
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
