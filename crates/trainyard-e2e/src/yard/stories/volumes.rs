//! Claims, volumes, and files from objects, as pods see them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Story;
use super::pods::{last_row, pod, run};
use crate::check::{contains, equal};
use crate::harness::cases;
use crate::yard::bed::Bed;

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/volumes":
        of_the_default_class, "get pvc (default class)", "`Bound` to a directory of this machine; pods share it";
        of_a_class_elsewhere, "get pvc (`azurefile`)", "bound to a local directory, and an event says so";
        static_volume, "get pv,pvc (static)", "claim and volume find each other";
        files_of_objects, "create configmap, secret; used in a pod", "files and variables of a pod";
    ]
}

fn claim(class: Option<&str>) -> Value {
    let mut claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "model"},
        "spec": {
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    if let Some(class) = class {
        claim["spec"]["storageClassName"] = class.into();
    }
    claim
}

/// A pod that has the claim at `/model`.
fn user(name: &str, script: &str) -> Value {
    let mut pod = pod(name, script);
    pod["spec"]["volumes"] =
        json!([{"name": "model", "persistentVolumeClaim": {"claimName": "model"}}]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "model", "mountPath": "/model"}]);
    pod
}

async fn bound(bed: &Bed, ns: &str) -> Result<String> {
    let words = ["-n", ns, "get", "pvc", "model"];
    let table = bed.until(&words, "binding", |table| table.contains("Bound")).await?;
    let row = last_row(&table);
    ensure!(row[..2] == ["model", "Bound"] && row[3..5] == ["1Gi", "RWX"], "{table}");
    Ok(table)
}

async fn of_the_default_class(bed: &Bed, ns: &str) -> Result<()> {
    bed.feed(&["-n", ns, "create", "-f", "-"], &claim(None).to_string()).await?;
    run(bed, ns, &user("writer", "echo weights > /model/file; sleep 600")).await?;
    bound(bed, ns).await?;
    run(bed, ns, &user("reader", "sleep 600")).await?;
    let words = ["-n", ns, "exec", "reader", "--", "cat", "/model/file"];
    bed.until(&words, "what another wrote", |told| told == "weights\n").await?;
    let told = bed.ok(&["-n", ns, "describe", "pvc", "model"]).await?;
    contains("describe", &told, &["Used By:", "reader", "writer"])
}

async fn of_a_class_elsewhere(bed: &Bed, ns: &str) -> Result<()> {
    bed.feed(&["-n", ns, "create", "-f", "-"], &claim(Some("azurefile")).to_string()).await?;
    run(bed, ns, &user("writer", "touch /model/file; sleep 600")).await?;
    let table = bound(bed, ns).await?;
    contains("its class", &table, &["azurefile"])?;
    let words = ["-n", ns, "events", "--for", "pvc/model"];
    bed.until(&words, "a word about it", |told| told.contains("azurefile")).await.map(drop)
}

async fn static_volume(bed: &Bed, ns: &str) -> Result<()> {
    let name = format!("{ns}-files");
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
            "storageClassName": ns, "nfs": {"server": "files.example.com", "path": "/model"},
        },
    });
    bed.feed(&["create", "-f", "-"], &volume.to_string()).await?;
    bed.feed(&["-n", ns, "create", "-f", "-"], &claim(Some(ns)).to_string()).await?;
    let table = bound(bed, ns).await?;
    equal("volume", last_row(&table)[2], name.as_str())?;
    let table = bed.ok(&["get", "pv", &name]).await?;
    let claim = format!("{ns}/model");
    contains("get pv", &table, &["RWX", "Retain", "Bound", &claim])?;
    bed.ok(&["-n", ns, "delete", "pvc", "model"]).await?;
    let words = ["get", "pv", &name];
    bed.until(&words, "a release", |table| table.contains("Released")).await?;
    bed.ok(&["delete", "pv", &name]).await.map(drop)
}

async fn files_of_objects(bed: &Bed, ns: &str) -> Result<()> {
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"},
            "data": {"train.sh": "echo trained with $LEVEL and $(cat /secret/password)\n"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
            "stringData": {"password": "swordfish"}},
    ]});
    let told = bed.feed(&["-n", ns, "create", "-f", "-"], &objects.to_string()).await?;
    equal("create", told.as_str(), "configmap/code created\nsecret/key created\n")?;
    let mut object = pod("p", "sh /code/train.sh; sleep 600");
    object["spec"]["volumes"] = json!([
        {"name": "code", "configMap": {"name": "code"}},
        {"name": "secret", "secret": {"secretName": "key"}},
    ]);
    object["spec"]["containers"][0]["volumeMounts"] = json!([
        {"name": "code", "mountPath": "/code"}, {"name": "secret", "mountPath": "/secret"},
    ]);
    object["spec"]["containers"][0]["env"] = json!([{"name": "LEVEL", "valueFrom": {"secretKeyRef": {"name": "key", "key": "password"}}}]);
    run(bed, ns, &object).await?;
    let words = ["-n", ns, "logs", "p"];
    let wanted = "trained with swordfish and swordfish\n";
    bed.until(&words, "its words", |log| log == wanted).await.map(drop)
}
