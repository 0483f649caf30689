//! Jobs that somebody else looks after.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::contains;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::{Resource, refusal};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["managed_by": somebody_else, us_by_name, fixed_for_life]
}

async fn somebody_else(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).run_policy("managedBy", "kueue.x-k8s.io/multikueue");
    world.submit(job).await?;
    // A job of ours, submitted later, shows that the operator has passed by.
    world.submit(tfjob("b").workers(1)).await?;
    world.wait_conditions("b", &["Created=True"]).await?;
    let seen = world.wait_services(&["b-worker-0"]).await?;
    ensure!(seen.status("a").is_null(), "a status was written: {}", seen.status("a"));
    world
        .never_within(300, "the operator touches it", |seen| {
            !seen.status("a").is_null()
                || !seen.pod("a-worker-0").is_null()
                || !seen.events("a").is_empty()
        })
        .await
}

async fn us_by_name(world: World) -> Result<()> {
    let job = tfjob("a").workers(1).run_policy("managedBy", "kubeflow.org/training-operator");
    world.submit(job).await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    Ok(())
}

async fn fixed_for_life(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1)).await?;
    let job = tfjob("b").workers(1).run_policy("managedBy", "kueue.x-k8s.io/multikueue");
    world.submit(job).await?;
    for (job, by) in [
        ("a", json!("kueue.x-k8s.io/multikueue")),
        ("b", json!("kubeflow.org/training-operator")),
        ("b", json!(null)),
    ] {
        let patch = json!({"spec": {"runPolicy": {"managedBy": by}}});
        let said = refusal(world.rest.merge(Resource::Jobs, job, &patch).await)?;
        contains("refusal", &said, &["spec.runPolicy.managedBy", "field is immutable"])?;
    }
    Ok(())
}
