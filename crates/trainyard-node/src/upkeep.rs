//! What is looked after while the agent runs, beside its pods: disk that nobody needs any more.
//!
//! Owns how often it is looked; what may go is decided where it was made.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;

use crate::objects::ApiObjects;
use crate::shared::{Shared, lock};
use crate::volumes;

/// A claim's data outlives it by no more than this.
const CLAIMS: Duration = Duration::from_secs(30);
const ENVIRONMENTS: Duration = Duration::from_hours(24);
/// With an API server that was there a moment ago.
const PATIENCE: Duration = Duration::from_secs(10);

/// What tells the cluster from others; none, and a warning, where it cannot be learnt.
pub(crate) async fn cluster(objects: &ApiObjects) -> Option<String> {
    let kept = "data of claims that are deleted is kept: the cluster cannot be told from others";
    match tokio::time::timeout(PATIENCE, objects.cluster()).await {
        Ok(Ok(cluster)) => return Some(cluster),
        Ok(Err(error)) => tracing::warn!(%error, "{kept}"),
        Err(_) => tracing::warn!("{kept}; the API server does not answer"),
    }
    None
}

/// Removes the data of claims that are gone, where it was to go with them; never returns.
pub(crate) async fn free_claims(shared: Arc<Shared>) {
    let Some(cluster) = &shared.cluster else { return std::future::pending().await };
    loop {
        let in_use = |namespace: &str, claim: &str| is_in_use(&shared, namespace, claim);
        let claims = &shared.places.claims;
        for claim in volumes::sweep(claims, cluster, &shared.objects, in_use).await {
            tracing::info!(
                claim,
                "its data was removed: the claim is gone, and was not to be retained"
            );
        }
        sleep(CLAIMS).await;
    }
}

fn is_in_use(shared: &Shared, namespace: &str, claim: &str) -> bool {
    let pods = lock(&shared.pods);
    let mut present = pods.values().filter(|live| !live.is_settled());
    present.any(|live| live.namespace == namespace && mounts(&live.pod(), claim))
}

fn mounts(pod: &Pod, claim: &str) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.any(|source| source.claim_name == claim)
}

/// Removes Python environments that nobody has used for so long; never returns.
pub(crate) async fn free_environments(shared: Arc<Shared>, unused_for: Duration) {
    loop {
        for name in shared.images.sweep(unused_for).await {
            tracing::info!(environment = name, "it was removed: nobody has used it for long");
        }
        sleep(ENVIRONMENTS).await;
    }
}
