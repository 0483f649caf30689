//! A namespace that is full: the job waits until there is room. Needs a server with quotas.

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["quota": waited_for]
}

/// Nobody computes the status of quotas here, so it is written together with the limit.
async fn limit_pods(world: &World, method: Method, count: &str) -> Result<()> {
    let base = format!("/api/v1/namespaces/{}/resourcequotas", world.namespace);
    let quota = |part: Value| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"},
            "spec": {"hard": {"pods": count}}, "status": part})
    };
    let path = if method == Method::POST { base.clone() } else { format!("{base}/small") };
    world.rest.send(method, &path, Some(&quota(json!({})))).await.context("setting a quota")?;
    let status = quota(json!({"hard": {"pods": count}, "used": {"pods": "0"}}));
    let path = format!("{base}/small/status");
    let written = world.rest.send(Method::PATCH, &path, Some(&status)).await;
    written.context("writing the status of a quota")?;
    Ok(())
}

async fn waited_for(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    limit_pods(&world, Method::POST, "0").await?;
    // The quota takes a moment to be enforced; a probe shows that it is.
    let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let path = format!("/api/v1/namespaces/{}/pods?dryRun=All", world.namespace);
    for _ in 0..100 {
        if world.rest.send(Method::POST, &path, Some(&probe)).await.is_err() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    world.submit(tfjob("a").workers(2)).await?;
    let told = "Warning FailedCreatePod Error creating:";
    let seen = world
        .wait_until("the quota is named", |seen| {
            let events = seen.events("a");
            events.iter().any(|event| event.starts_with(told) && event.contains("exceeded quota"))
        })
        .await?;
    equal("it is not the end", seen.is("a", "Failed"), false)?;
    let seen = world.wait_conditions("a", &["Created=True", "ReplicaFailure=True"]).await?;
    let message = text(&seen.condition("a", "ReplicaFailure")["message"]);
    contains("the server's words", message, &["is forbidden: exceeded quota: small"])?;
    world.never_within(500, "the job fails for it", |seen| seen.is("a", "Failed")).await?;
    limit_pods(&world, Method::PATCH, "10").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}
