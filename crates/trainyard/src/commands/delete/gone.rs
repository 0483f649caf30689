//! Waiting until an object is gone.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::{Cluster, Error, Kind, Query};
use crate::present::text;

/// The UID that the answer to a deletion names.
pub(super) fn uid(answer: &Value) -> Option<String> {
    [text(answer, &["details", "uid"]), text(answer, &["metadata", "uid"])]
        .into_iter()
        .find(|uid| !uid.is_empty())
        .map(str::to_owned)
}

/// Returns when the object is gone, or another one of its name has come.
pub(in crate::commands) async fn wait(
    cluster: &Cluster,
    kind: &Kind,
    namespace: &str,
    name: &str,
    uid: Option<&str>,
) -> Result<(), Error> {
    loop {
        let current = match cluster.get(kind, namespace, name, None).await {
            Err(error) if error.code() == 404 => return Ok(()),
            answer => answer?,
        };
        if uid.is_some_and(|uid| uid != text(&current, &["metadata", "uid"])) {
            return Ok(());
        }
        let query = Query::default()
            .with("fieldSelector", format!("metadata.name={name}"))
            .with("resourceVersion", text(&current, &["metadata", "resourceVersion"]));
        if let Ok(mut lines) = cluster.watch(kind, Some(namespace), &query, false).await {
            while let Ok(Some(line)) = lines.next().await {
                let event: Value = serde_json::from_slice(&line).unwrap_or_default();
                match event["type"].as_str() {
                    Some("DELETED") => return Ok(()),
                    Some("ERROR") => break,
                    _ => {}
                }
            }
        }
        // The watch ended, or is not to be had: looked at again after a while.
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
