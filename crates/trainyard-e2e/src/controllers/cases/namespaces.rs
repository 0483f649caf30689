//! The end of namespaces.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check;
use crate::controllers::ground::{Ground, delete, until};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!("namespaces": take_everything_along, wait_for_finalizers_and_say_so, wait_for_pods)
}

fn condition<'a>(namespace: &'a Value, kind: &str) -> &'a Value {
    let all = namespace["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

async fn take_everything_along(ground: &Ground) -> Result<()> {
    let place = ground.place("full").await?;
    let rest = ground.cluster();
    let path = format!("/api/v1/namespaces/{}", place.name);
    for at in 0..5 {
        place.thing(&format!("thing-{at}"), &json!([])).await?;
    }
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    place.make("services", &service).await?;
    place.pod("never-placed", &json!({"nodeName": null})).await?;
    delete(&rest, &path, &json!({})).await?;
    until(&rest, &path, "gone", Value::is_null).await?;
    // Nothing of it is left for a namespace of the same name.
    ensure!(place.look("configmaps/thing-0").await?.is_null(), "a thing outlived its namespace");
    Ok(())
}

async fn wait_for_finalizers_and_say_so(ground: &Ground) -> Result<()> {
    let place = ground.place("held").await?;
    let rest = ground.cluster();
    let path = format!("/api/v1/namespaces/{}", place.name);
    place.thing("held", &json!([])).await?;
    let hold = |list: Value| json!({"metadata": {"finalizers": list}});
    place.change("configmaps/held", &hold(json!(["tests.trainyard.dev/hold"]))).await?;
    delete(&rest, &path, &json!({})).await?;
    let told = |found: &Value| condition(found, "NamespaceFinalizersRemaining")["status"] == "True";
    let namespace = until(&rest, &path, "telling of finalizers", told).await?;
    check::equal("phase", &namespace["status"]["phase"], "Terminating")?;
    let remaining = condition(&namespace, "NamespaceContentRemaining");
    check::equal(
        "what remains",
        &remaining["message"],
        "Some resources are remaining: configmaps. has 1 resource instances",
    )?;
    check::equal(
        "finalizers",
        &condition(&namespace, "NamespaceFinalizersRemaining")["message"],
        "Some content in the namespace has finalizers remaining: tests.trainyard.dev/hold in 1 \
         resource instances",
    )?;
    check::equal(
        "content",
        &condition(&namespace, "NamespaceDeletionContentFailure")["reason"],
        "ContentDeleted",
    )?;
    place.change("configmaps/held", &hold(json!([]))).await?;
    until(&rest, &path, "gone", Value::is_null).await.map(|_| ())
}

/// What pods need outlasts them.
async fn wait_for_pods(ground: &Ground) -> Result<()> {
    let place = ground.place("pods").await?;
    let rest = ground.cluster();
    let path = format!("/api/v1/namespaces/{}", place.name);
    place.thing("needed", &json!([])).await?;
    place.pod("runs", &json!({})).await?;
    place.runs("runs", "10.7.0.1", true).await?;
    delete(&rest, &path, &json!({})).await?;
    let deleting = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
    place.until("pods/runs", "being deleted", deleting).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ensure!(!place.look("configmaps/needed").await?.is_null(), "gone before the pod");
    // Its kubelet has ended it.
    place.delete("pods/runs", &json!({"gracePeriodSeconds": 0})).await?;
    until(&rest, &path, "gone", Value::is_null).await.map(|_| ())
}
