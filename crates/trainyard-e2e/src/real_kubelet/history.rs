//! What whoever watches a job sees of it, version by version: what was true for a moment only is in it too.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinSet;

use super::scene::condition;
use super::site::Scene;
use crate::rest::Resource;
use crate::seen::text;

/// The versions of a `TFJob` since it is followed. It is followed no more when this is dropped.
pub(super) struct History {
    versions: Arc<Mutex<Vec<Value>>>,
    _watch: JoinSet<()>,
}

impl History {
    /// Follows a job that is there.
    pub(super) async fn of(scene: &Scene, job: &str) -> Result<Self> {
        let rest = scene.site.rest(&scene.namespace).await?;
        let now = rest.get(Resource::Jobs, job).await?;
        let from = text(&now["metadata"]["resourceVersion"]);
        let path = format!(
            "{}?watch=1&timeoutSeconds=290&fieldSelector=metadata.name%3D{job}&resourceVersion={from}",
            rest.path(Resource::Jobs),
        );
        let events = rest.client().request_events::<Value>(Request::get(path).body(Vec::new())?);
        let mut events = Box::pin(events.await?);
        let versions = Arc::new(Mutex::new(vec![now]));
        let (seen, mut watch) = (Arc::clone(&versions), JoinSet::new());
        watch.spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(job) | WatchEvent::Modified(job) = event {
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(job);
                }
            }
        });
        Ok(Self { versions, _watch: watch })
    }

    /// Makes sure that the job was seen without a replica: `Restarting` and not `Running` meanwhile, the replica
    /// among those that are away, for one of these reasons, and no other.
    pub(super) fn tells_of(&self, replica: &str, reasons: &[&str]) -> Result<()> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let told = versions.iter().any(|job| {
            let away = &job["status"]["unavailableReplicas"];
            is_restarting(job)
                && away.as_array().is_some_and(|away| away.len() == 1)
                && away[0]["replica"] == replica
                && reasons.contains(&text(&away[0]["reason"]))
                && away[0]["since"].is_string()
        });
        let statuses = || versions.iter().map(|job| job["status"].to_string()).collect::<Vec<_>>();
        ensure!(told, "{replica} was never away for one of {reasons:?}: {:#?}", statuses());
        Ok(())
    }
}

/// Whether a job says that it is restarting, and not that it runs.
pub(super) fn is_restarting(job: &Value) -> bool {
    let is = |kind| condition(job, kind)["status"] == "True";
    is("Restarting") && !is("Running")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn history(statuses: [&Value; 3]) -> History {
        let versions = statuses.map(|status| json!({"status": status}));
        History { versions: Arc::new(Mutex::new(versions.to_vec())), _watch: JoinSet::new() }
    }

    #[test]
    fn a_replica_that_was_away_for_a_moment_is_told() {
        let runs = json!({"conditions": [{"type": "Running", "status": "True"}]});
        let conditions = json!([{"type": "Restarting", "status": "True"}]);
        let away = json!([{"replica": "worker-1", "reason": "Deleted", "since": "today"}]);
        let away = json!({"conditions": conditions, "unavailableReplicas": away});
        let mut both = away.clone();
        let list = [&away["conditions"][0], &runs["conditions"][0]];
        both["conditions"] = json!(list);
        let told = history([&runs, &away, &runs]);
        told.tells_of("worker-1", &["NodeUnreachable", "Deleted"]).unwrap();
        assert!(told.tells_of("worker-0", &["Deleted"]).is_err());
        assert!(told.tells_of("worker-1", &["NodeUnreachable"]).is_err());
        assert!(history([&runs, &both, &runs]).tells_of("worker-1", &["Deleted"]).is_err());
    }
}
