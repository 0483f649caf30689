//! Whose pods are whose.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Work, a_while, manifest, name};
use crate::check;
use crate::controllers::ground::Ground;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "jobs": take_over_pods_of_nobody,
        part_with_pods_that_change,
        replace_pods_that_are_deleted,
        let_go_of_pods_that_say_they_are_theirs,
    )
}

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

fn labelled(node: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"of": "manual", "job-name": "manual"}},
        "spec": {"nodeName": node, "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none"}]},
    })
}

async fn take_over_pods_of_nobody(ground: &Ground) -> Result<()> {
    let place = ground.place("manual").await?;
    place.make("pods", &labelled(&place.node, "early")).await?;
    let mut job = manifest(
        &place,
        "manual",
        &json!({"manualSelector": true, "parallelism": 2,
        "completions": 2, "selector": {"matchLabels": {"of": "manual"}}}),
    );
    job["spec"]["template"]["metadata"] = json!({"labels": {"of": "manual", "job-name": "manual"}});
    let job = place.make("batch/v1/jobs", &job).await?;
    let work = Work { place, name: "manual".to_owned() };
    let ours = |pod: &Value| pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"];
    let early = work.place.until("pods/early", "taken over", ours).await?;
    check::equal("its finalizers", &early["metadata"]["finalizers"], &json!([FINALIZER]))?;
    let pods = work.until_active(2).await?;
    check::equal("the names", pods.iter().filter(|pod| name(pod) == "early").count(), 1)?;
    for pod in &pods {
        work.ends(pod, "Succeeded").await?;
    }
    let job = work.until_complete().await?;
    check::equal("succeeded", &job["status"]["succeeded"], &json!(2))
}

async fn part_with_pods_that_change(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "parts", &json!({})).await?;
    let pod = work.until_one().await?;
    work.until_status(&[("active", json!(1))]).await?;
    let path = format!("pods/{}", name(&pod));
    let away = json!({"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "away"}}});
    work.place.change(&path, &away).await?;
    let free = |pod: &Value| {
        pod["metadata"]["ownerReferences"].is_null() && pod["metadata"]["finalizers"].is_null()
    };
    work.place.until(&path, "nobody's", free).await?;
    // Another takes its place, and nothing has failed.
    let pods = work.until_active(2).await?;
    ensure!(pods.iter().any(|one| name(one) == name(&pod)), "the pod itself is gone");
    let job = work.until_status(&[("active", json!(1))]).await?;
    check::equal("failed", &job["status"]["failed"], &Value::Null)
}

async fn replace_pods_that_are_deleted(ground: &Ground) -> Result<()> {
    let spec = json!({"parallelism": 2, "completions": 2});
    let work = Work::start(ground, "replaced", &spec).await?;
    let pods = work.until_active(2).await?;
    work.until_status(&[("active", json!(2))]).await?;
    work.place.delete(&format!("pods/{}", name(&pods[0])), &json!({})).await?;
    // It counts as failed at once.
    work.until_status(&[("failed", json!(1)), ("terminating", json!(1))]).await?;
    work.gone(&pods[0]).await?;
    work.until_status(&[("failed", json!(1)), ("terminating", json!(0))]).await?;
    // A success of the other ends the pause.
    work.ends(&pods[1], "Succeeded").await?;
    let next = work.until_one().await?;
    work.ends(&next, "Succeeded").await?;
    let job = work.until_complete().await?;
    let wanted = [("/failed", json!(1)), ("/succeeded", json!(2))];
    check::fields("the status", &job["status"], &wanted)
}

/// A finalizer without a job holds nobody.
async fn let_go_of_pods_that_say_they_are_theirs(ground: &Ground) -> Result<()> {
    let place = ground.place("claims-so").await?;
    let mut stray = labelled(&place.node, "stray");
    stray["metadata"]["finalizers"] = json!([FINALIZER]);
    place.make("pods", &stray).await?;
    let free = |pod: &Value| pod["metadata"]["finalizers"].is_null();
    place.until("pods/stray", "let go", free).await?;
    let mut other = labelled(&place.node, "other");
    other["metadata"]["finalizers"] = json!([FINALIZER]);
    let thing = place.thing("thing", &json!([])).await?;
    other["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "thing", "uid": thing, "controller": true}]);
    place.make("pods", &other).await?;
    a_while().await;
    let other = place.look("pods/other").await?;
    check::equal("another's", &other["metadata"]["finalizers"], &json!([FINALIZER]))?;
    place.change("pods/other", &json!({"metadata": {"finalizers": null}})).await
}
