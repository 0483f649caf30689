//! Claims and volumes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::check;
use crate::controllers::ground::{Ground, Place, delete, look, until};
use crate::harness::{Case, cases};

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLAIMS: &str = "persistentvolumeclaims";

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "claims": get_a_directory,
        of_classes_this_machine_lacks,
        take_static_volumes,
        ask_for_a_volume_by_name,
        may_come_before_their_volume,
        may_wait_for_a_consumer,
        in_use_stay,
        of_one_pod,
        of_no_class,
        lose_their_volume,
    )
}

fn claim(name: &str, more: &Value) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        claim["spec"][key] = value.clone();
    }
    claim
}

async fn volume(ground: &Ground, name: &str, class: &str, more: &Value) -> Result<String> {
    let name = ground.unique(name);
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"},
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": class,
            "hostPath": {"path": "/tmp/of-the-tests"}},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        volume["spec"][key] = value.clone();
    }
    ground.cluster().send(Method::POST, VOLUMES, Some(&volume)).await?;
    Ok(name)
}

async fn until_bound(place: &Place, name: &str) -> Result<Value> {
    let bound = |claim: &Value| claim["status"]["phase"] == "Bound";
    place.until(&format!("{CLAIMS}/{name}"), "bound", bound).await
}

fn phase(wanted: &'static str) -> impl Fn(&Value) -> bool {
    move |object| object["status"]["phase"] == wanted
}

/// The volume of a claim, and the folder behind it.
async fn behind(ground: &Ground, claim: &Value) -> Result<(String, PathBuf)> {
    let name = claim["spec"]["volumeName"].as_str().context("no volume")?;
    let path = format!("{VOLUMES}/{name}");
    let volume = look(&ground.cluster(), &path).await?;
    let folder = volume["spec"]["hostPath"]["path"].as_str().context("no folder")?;
    ensure!(Path::new(folder).starts_with(&ground.claims), "{folder}");
    Ok((path, folder.into()))
}

async fn get_a_directory(ground: &Ground) -> Result<()> {
    let place = ground.place("directory").await?;
    place.make(CLAIMS, &claim("data", &json!({}))).await?;
    let bound = until_bound(&place, "data").await?;
    check::fields(
        "the claim",
        &bound,
        &[
            ("/spec/storageClassName", json!("standard")),
            ("/status/capacity/storage", json!("1Gi")),
            ("/status/accessModes", json!(["ReadWriteOnce"])),
            ("/metadata/annotations/pv.kubernetes.io~1bind-completed", json!("yes")),
        ],
    )?;
    let (path, folder) = behind(ground, &bound).await?;
    let volume = until(&ground.cluster(), &path, "bound", phase("Bound")).await?;
    check::equal("its claim", &volume["spec"]["claimRef"]["name"], "data")?;
    let message = place.until_event("data", "ProvisioningSucceeded").await?;
    check::contains("the event", &message, &["Successfully provisioned volume pvc-"])?;
    std::fs::write(folder.join("model"), "weights")?;
    place.delete(&format!("{CLAIMS}/data"), &json!({})).await?;
    place.until_gone(&format!("{CLAIMS}/data")).await?;
    until(&ground.cluster(), &path, "gone", Value::is_null).await?;
    ensure!(!folder.exists(), "{} is left", folder.display());
    Ok(())
}

async fn of_classes_this_machine_lacks(ground: &Ground) -> Result<()> {
    let place = ground.place("azure").await?;
    let spec = json!({"storageClassName": "azurefile", "accessModes": ["ReadWriteMany"]});
    place.make(CLAIMS, &claim("data", &spec)).await?;
    let bound = until_bound(&place, "data").await?;
    let (path, folder) = behind(ground, &bound).await?;
    ensure!(folder.is_dir(), "{}", folder.display());
    let message = place.until_event("data", "ProvisionedLocally").await?;
    check::contains("the event", &message, &["\"azurefile\"", &folder.display().to_string()])?;
    let volume = look(&ground.cluster(), &path).await?;
    check::equal("its class", &volume["spec"]["storageClassName"], "azurefile")
}

async fn take_static_volumes(ground: &Ground) -> Result<()> {
    let place = ground.place("static").await?;
    let class = place.name.clone();
    let large = volume(ground, "large", &class, &json!({"capacity": {"storage": "50Gi"}})).await?;
    let fits = volume(ground, "fits", &class, &json!({})).await?;
    let small = volume(ground, "small", &class, &json!({"capacity": {"storage": "1Mi"}})).await?;
    let rest = ground.cluster();
    for name in [&large, &fits, &small] {
        until(&rest, &format!("{VOLUMES}/{name}"), "available", phase("Available")).await?;
    }
    place.make(CLAIMS, &claim("data", &json!({"storageClassName": class}))).await?;
    let bound = until_bound(&place, "data").await?;
    check::equal("the volume", &bound["spec"]["volumeName"], &*fits)?;
    check::equal("its size", &bound["status"]["capacity"]["storage"], "5Gi")?;
    place.delete(&format!("{CLAIMS}/data"), &json!({})).await?;
    let path = format!("{VOLUMES}/{fits}");
    until(&rest, &path, "released", phase("Released")).await?;
    // Whoever comes next does not get what another left behind.
    place.make(CLAIMS, &claim("next", &json!({"storageClassName": class}))).await?;
    let bound = until_bound(&place, "next").await?;
    check::equal("the volume", &bound["spec"]["volumeName"], &*large)?;
    delete(&rest, &path, &json!({})).await?;
    until(&rest, &path, "gone", Value::is_null).await?;
    // A volume in use stays until its claim is gone.
    let path = format!("{VOLUMES}/{large}");
    delete(&rest, &path, &json!({})).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ensure!(!look(&rest, &path).await?.is_null(), "a volume in use is gone");
    place.delete(&format!("{CLAIMS}/next"), &json!({})).await?;
    until(&rest, &path, "gone", Value::is_null).await.map(|_| ())
}

async fn ask_for_a_volume_by_name(ground: &Ground) -> Result<()> {
    let place = ground.place("named").await?;
    let class = place.name.clone();
    let name = volume(ground, "named", &class, &json!({})).await?;
    let spec = |size: &str| {
        json!({"storageClassName": class, "volumeName": name,
            "resources": {"requests": {"storage": size}}})
    };
    place.make(CLAIMS, &claim("greedy", &spec("6Gi"))).await?;
    let message = place.until_event("greedy", "VolumeMismatch").await?;
    let wanted = format!("Cannot bind to requested volume \"{name}\": requested PV is too small");
    check::equal("the event", message, wanted)?;
    place.make(CLAIMS, &claim("modest", &spec("2Gi"))).await?;
    until_bound(&place, "modest").await?;
    place.make(CLAIMS, &claim("late", &spec("2Gi"))).await?;
    let message = place.until_event("late", "FailedBinding").await?;
    check::equal(
        "the event",
        message,
        format!("volume \"{name}\" already bound to a different claim."),
    )
}

/// People create both with one command, in any order.
async fn may_come_before_their_volume(ground: &Ground) -> Result<()> {
    let place = ground.place("early").await?;
    let class = place.name.clone();
    place.make(CLAIMS, &claim("data", &json!({"storageClassName": class}))).await?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let name = volume(ground, "late", &class, &json!({})).await?;
    let bound = until_bound(&place, "data").await?;
    check::equal("the volume", &bound["spec"]["volumeName"], &*name)
}

async fn may_wait_for_a_consumer(ground: &Ground) -> Result<()> {
    let place = ground.place("waits").await?;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": place.name}, "provisioner": "trainyard.dev/directory",
        "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete",
    });
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    ground.cluster().send(Method::POST, classes, Some(&class)).await?;
    place.make(CLAIMS, &claim("data", &json!({"storageClassName": place.name}))).await?;
    let message = place.until_event("data", "WaitForFirstConsumer").await?;
    let wanted = "waiting for first consumer to be created before binding";
    check::equal("the event", message, wanted)?;
    place.pod("a", &using("data")).await?;
    until_bound(&place, "data").await.map(|_| ())
}

fn using(claim: &str) -> Value {
    json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]})
}

async fn in_use_stay(ground: &Ground) -> Result<()> {
    let place = ground.place("used").await?;
    place.make(CLAIMS, &claim("data", &json!({}))).await?;
    let bound = until_bound(&place, "data").await?;
    let (_, folder) = behind(ground, &bound).await?;
    place.pod("a", &using("data")).await?;
    place.runs("a", "10.7.10.1", true).await?;
    place.delete(&format!("{CLAIMS}/data"), &json!({})).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ensure!(!place.look(&format!("{CLAIMS}/data")).await?.is_null(), "a claim in use is gone");
    ensure!(folder.is_dir(), "the folder of a claim in use is gone");
    place.change("pods/a/status", &json!({"status": {"phase": "Succeeded"}})).await?;
    place.until_gone(&format!("{CLAIMS}/data")).await
}

async fn of_one_pod(ground: &Ground) -> Result<()> {
    let place = ground.place("own").await?;
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let scratch = json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}});
    let uid = place.pod("a", &json!({"volumes": [scratch]})).await?;
    let bound = until_bound(&place, "a-scratch").await?;
    let owner = &bound["metadata"]["ownerReferences"][0];
    check::fields("the owner", owner, &[("/uid", json!(uid)), ("/controller", json!(true))])?;
    place.delete("pods/a", &json!({"gracePeriodSeconds": 0})).await?;
    place.until_gone(&format!("{CLAIMS}/a-scratch")).await
}

async fn of_no_class(ground: &Ground) -> Result<()> {
    let place = ground.place("classless").await?;
    place.make(CLAIMS, &claim("data", &json!({"storageClassName": ""}))).await?;
    let message = place.until_event("data", "FailedBinding").await?;
    let wanted = "no persistent volumes available for this claim and no storage class is set";
    check::equal("the event", message, wanted)?;
    let kept = json!({"claimRef": {"namespace": place.name, "name": "data"}});
    let name = volume(ground, "kept", "", &kept).await?;
    let bound = until_bound(&place, "data").await?;
    check::equal("the volume", &bound["spec"]["volumeName"], &*name)
}

async fn lose_their_volume(ground: &Ground) -> Result<()> {
    let place = ground.place("loses").await?;
    place.make(CLAIMS, &claim("data", &json!({}))).await?;
    let bound = until_bound(&place, "data").await?;
    let (path, _) = behind(ground, &bound).await?;
    let rest = ground.cluster();
    delete(&rest, &path, &json!({})).await?;
    let force = json!({"metadata": {"finalizers": []}});
    rest.send(Method::PATCH, &path, Some(&force)).await?;
    place.until(&format!("{CLAIMS}/data"), "lost", phase("Lost")).await?;
    let message = place.until_event("data", "ClaimLost").await?;
    let wanted = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
    check::equal("the event", message, wanted)
}
