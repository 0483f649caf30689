//! Programs that kubelets start again several times, and the limit that their job has for it.

use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::manifest::Manifest;
use crate::real_kubelet::jobs::worker;
use crate::real_kubelet::scene::{condition, state};
use crate::real_kubelet::site::Scene;
use crate::seen::text;

use super::policies::ended_at_the_limit;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["restarts": three_restarts_in_place_are_counted_and_judged_by_the_backoff_limit]
}

/// Fails three times; the fourth run lasts long enough for its start to be seen, and succeeds.
const FOURTH_TIME: &str = "echo run >> /keep/runs; runs=$(wc -l < /keep/runs); echo run $runs; \
    if [ $runs -lt 4 ]; then exit 1; fi; sleep 5";

fn job(limit: i64) -> Manifest {
    let job = worker(&format!("limit-{limit}"), "OnFailure", FOURTH_TIME);
    job.run_policy("backoffLimit", limit).edit("Worker", |replica| {
        let spec = &mut replica["template"]["spec"];
        spec["volumes"] = json!([{"name": "keep", "emptyDir": {}}]);
        spec["containers"][0]["volumeMounts"] = json!([{"name": "keep", "mountPath": "/keep"}]);
    })
}

/// As a Job of Kubernetes does, a job fails when its restarts in place reach the limit: two and three are too few for
/// three restarts, four are enough.
async fn three_restarts_in_place_are_counted_and_judged_by_the_backoff_limit(
    scene: &Scene,
) -> Result<()> {
    let jobs = [2, 3, 4].map(|limit| Value::from(job(limit)));
    scene.create(json!({"apiVersion": "v1", "kind": "List", "items": jobs})).await?;
    scene.all_end().await?;
    for limit in [2, 3] {
        let name = format!("limit-{limit}");
        let ended = scene.get(&format!("tfjob/{name}")).await?;
        ended_at_the_limit(&name, &ended, limit)?;
        let message = text(&condition(&ended, "Failed")["message"]);
        contains(&name, message, &["has reached the specified backoff limit"])?;
    }
    let ended = scene.get("tfjob/limit-4").await?;
    equal("limit-4", state(&ended), "Succeeded")?;
    fields("limit-4", &ended, &[("/status/restarts", json!(3))])?;
    equal("restarts in place", scene.life("limit-4-worker-0").await?.1, 3)?;
    equal("log", scene.log("limit-4-worker-0").await?.as_str(), "run 4\n")
}
