//! Volumes of a job: claims that are there and that are made.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::seen::{Seen, terminating, text};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/volumes":
        a_claim_that_is_there_is_mounted,
        one_that_is_asked_for_is_made_and_kept,
    ]
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": wanted(),
    })
}

fn wanted() -> Value {
    json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
}

fn mounted_at(pod: &Value, path: &str) -> Option<String> {
    let mounts = pod["spec"]["containers"][0]["volumeMounts"].as_array()?;
    let mount = mounts.iter().find(|mount| mount["mountPath"] == path)?;
    let volumes = pod["spec"]["volumes"].as_array()?;
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"])?;
    Some(text(&volume["persistentVolumeClaim"]["claimName"]).to_owned())
}

async fn a_claim_that_is_there_is_mounted(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    scene.create(Resource::Claims, &claim("data")).await?;
    let volumes = json!([{"mountPath": "/data", "volumeClaimName": "data"}]);
    let first = json!([{"name": "first", "image": "example.com/first:1"}]);
    let workers = task("w", 2).pod("initContainers", first);
    scene.submit(vcjob("a").task(workers).spec("volumes", volumes)).await?;
    let seen = scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    equal("mounted", mounted_at(seen.pod("a-w-1"), "/data").as_deref(), Some("data"))?;
    let first = &seen.pod("a-w-1")["spec"]["initContainers"][0]["volumeMounts"];
    let has_it = |mounts: &Value| {
        mounts.as_array().into_iter().flatten().any(|mount| mount["mountPath"] == "/data")
    };
    equal("not in init containers", has_it(first), false)?;
    let what = "it is recorded";
    scene
        .wait_until(what, |seen| {
            seen.vc("a").status()["controlledResources"]["volume-pvc-data"] == "data"
        })
        .await
        .map(drop)
}

async fn one_that_is_asked_for_is_made_and_kept(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let volumes = json!([{"mountPath": "/data", "volumeClaim": wanted()}]);
    let seen = scene.run(vcjob("a").task(task("w", 1)).spec("volumes", volumes), 1).await?;
    let name = mounted_at(seen.pod("a-w-0"), "/data").context("a claim")?;
    ensure!(name.starts_with("a-pvc-"), "the claim is called {name}");
    let made = seen.object(Resource::Claims, &name);
    equal("asks", &made["spec"]["resources"]["requests"]["storage"], "1Gi")?;
    equal("owner", &made["metadata"]["ownerReferences"][0]["name"], "a")?;
    scene.command("a", "RestartJob").await?;
    scene.successors(&seen, &["a-w-0"]).await?;
    let again = scene.runs("a", 1).await?;
    equal("the same claim", mounted_at(again.pod("a-w-0"), "/data"), Some(name))?;
    equal("only one", again.names(Resource::Claims).len(), 1)?;
    scene.delete_job("a").await?;
    // Where nobody takes the protection of claims in use away it is only told to go.
    let is_told = |seen: &Seen| seen.all(Resource::Claims).all(|(_, claim)| terminating(claim));
    scene.wait_until("it goes with the job", is_told).await.map(drop)
}
