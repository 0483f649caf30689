//! Controllers that have nothing to do write nothing: not when everything is done, and not when they
//! begin anew on what is done already.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::ground::{Ground, look};

/// Objects that the controllers write. (Leases beat, and events come and go.)
const WRITTEN: [&str; 10] = [
    "/api/v1/configmaps",
    "/api/v1/endpoints",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/api/v1/pods",
    "/api/v1/serviceaccounts",
    "/apis/batch/v1/jobs",
    "/apis/discovery.k8s.io/v1/endpointslices",
];
/// Longer than any time that is waited for.
const QUIET: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_mins(1);

/// All objects with their revisions.
async fn revisions(ground: &Ground) -> Result<BTreeMap<String, String>> {
    let rest = ground.cluster();
    let mut all = BTreeMap::new();
    for path in WRITTEN {
        let list = look(&rest, path).await?;
        for object in list["items"].as_array().into_iter().flatten() {
            let meta = &object["metadata"];
            let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
            let name = format!("{path}/{}/{}", text("namespace"), text("name"));
            all.insert(name, text("resourceVersion"));
        }
    }
    Ok(all)
}

fn differences(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let mut changed: Vec<String> =
        names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect();
    changed.sort();
    changed.dedup();
    changed
}

/// Waits for what the last cases have left to do, such as nodes that fall silent; [`stays`] tells whether that
/// was all.
pub(super) async fn settle(ground: &Ground) -> Result<()> {
    let started = Instant::now();
    let mut before = revisions(ground).await?;
    while started.elapsed() < PATIENCE {
        tokio::time::sleep(QUIET).await;
        let after = revisions(ground).await?;
        let changed = differences(&before, &after);
        if changed.is_empty() {
            return Ok(());
        }
        before = after;
    }
    let now = revisions(ground).await?;
    bail!("still writing after {PATIENCE:?}: {:?}", differences(&before, &now))
}

/// Nothing is written for a while.
pub(super) async fn stays(ground: &Ground) -> Result<()> {
    let before = revisions(ground).await?;
    ensure!(!before.is_empty(), "there is nothing to write to");
    tokio::time::sleep(QUIET).await;
    let changed = differences(&before, &revisions(ground).await?);
    ensure!(changed.is_empty(), "written: {changed:?}");
    Ok(())
}
