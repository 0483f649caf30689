//! Disk that is given back: data of claims that are gone, environments that nobody uses.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use super::Shared;
use super::look::{Gate, until};
use super::objects::{make, says};
use crate::check::equal;
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["freed":
        claims,
    ]
}

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(2),
        cases!["freed":
            environments,
        ],
    )
}

/// A claim and its volume, of a kind that no machine has.
async fn bound(pods: &Pods<'_>, claim: &str, volume: &str, policy: &str) -> Result<()> {
    let volume = format!("{}-{volume}", pods.namespace);
    let object = json!({"metadata": {"name": volume}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "",
        "persistentVolumeReclaimPolicy": policy,
        "claimRef": {"namespace": pods.namespace, "name": claim},
        "nfs": {"server": "192.0.2.9", "path": "/x"},
    }});
    let volumes: Api<PersistentVolume> = Api::all(pods.stage.client.clone());
    volumes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let object = json!({"metadata": {"name": claim}, "spec": {
        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": volume,
        "resources": {"requests": {"storage": "1Gi"}},
    }});
    make::<PersistentVolumeClaim>(pods, object).await.map(drop)
}

/// A pod's part with a claim, on a node of this agent: those of agents before it may still seem ready.
fn mounted(agent: &Agent, claim: &str) -> Value {
    json!({
        "nodeSelector": {"kubernetes.io/hostname": agent.nodes[0]},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}],
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    })
}

pub(super) async fn claims(stage: &Stage, agent: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "freed").await?, Gate::new()?);
    let all: Api<PersistentVolumeClaim> = Api::namespaced(stage.client.clone(), &pods.namespace);
    let folder =
        |claim: &str| agent.state.join("claims").join(&pods.namespace).join(claim).join("data");
    for (claim, policy) in [("short", "Delete"), ("long", "Retain"), ("again", "Delete")] {
        bound(&pods, claim, claim, policy).await?;
        let pod = format!("fills-{claim}");
        says(&pods, &pod, "echo weights > /v/data", mounted(agent, claim)).await?;
        ensure!(folder(claim).exists(), "{} is not there", folder(claim).display());
        pods.delete(&pod, None).await?;
        pods.until_gone(&pod).await?;
    }
    let claim = json!({"name": "v", "persistentVolumeClaim": {"claimName": "short"}});
    let more = json!({
        "nodeSelector": {"kubernetes.io/hostname": agent.nodes[0]},
        "volumes": [claim, gate.volume()],
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}, Gate::mount()]}],
    });
    let script = "touch /gate/up; until [ -e /gate/end ]; do sleep 0.05; done; cat /v/data";
    pods.shell("reads", script, more).await?;
    gate.until("up").await?;
    for claim in ["short", "long", "again"] {
        all.delete(claim, &DeleteParams::default()).await?;
    }
    let gone = async |claim: &str| Ok(all.get_opt(claim).await?.is_none());
    until("the claim's end", async || gone("again").await).await?;
    // One of the same name is another one.
    bound(&pods, "again", "another", "Delete").await?;
    let text = says(&pods, "looks", "ls /v; echo looked", mounted(agent, "again")).await?;
    equal("a new claim", text.as_str(), "looked\n")?;
    ensure!(folder("short").exists(), "the data of a claim in use is gone");
    gate.open("end")?;
    pods.until_phase("reads", "Succeeded").await?;
    equal("in use", pods.logs(&["reads"]).await?.as_str(), "weights\n")?;
    // A claim stays for pods that have ended, too.
    pods.delete("reads", None).await?;
    until("the end of both claims", async || Ok(gone("short").await? && gone("long").await?))
        .await?;
    until("the end of the data", async || Ok(!folder("short").exists())).await?;
    equal("retained", fs::read_to_string(folder("long"))?.as_str(), "weights\n")
}

/// Folders as an agent before this one left them, of which nobody knows more than their names.
async fn environments(stage: &Stage) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        // An agent of one's own would keep its environments where the user's are.
        return Ok(());
    }
    let home = stage.ground.path().join(format!("home-{}", stage.number()));
    let cache = home.join(".cache/trainyard/envs");
    let day = Duration::from_hours(24);
    let old = |name: &str, age: Duration| -> Result<PathBuf> {
        let folder = cache.join(name);
        fs::create_dir_all(folder.join("lib"))?;
        fs::create_dir_all(cache.join(".locks"))?;
        fs::write(folder.join("lib/module.py"), "pass")?;
        let used = File::create(cache.join(format!(".locks/{name}.use")))?;
        used.set_modified(SystemTime::now() - age)?;
        Ok(folder)
    };
    let (long, lately, used) =
        (old("long-ago", 8 * day)?, old("lately", 2 * day)?, old("used", 8 * day)?);
    let by_another = File::open(cache.join(".locks/used.use"))?;
    by_another.lock_shared()?;
    give(&home)?;
    let options = AgentOptions {
        nodes: vec!["rush".to_owned()],
        who: Who::User,
        flags: vec!["--keep-environments=7".to_owned()],
        state: Some(home),
        kubeconfig: None,
    };
    let agent = Agent::start(stage, options).await?;
    until("the end of the old one", async || Ok(!long.exists())).await?;
    ensure!(lately.join("lib/module.py").exists(), "one that was used lately is gone");
    ensure!(used.join("lib/module.py").exists(), "one that is used is gone");
    agent.stop().await
}

/// Gives a folder and all below it to the ordinary user.
fn give(folder: &std::path::Path) -> Result<()> {
    let mut command = std::process::Command::new("chown");
    let status = command.args(["-R", "65534:65534"]).arg(folder).status()?;
    ensure!(status.success(), "{} could not be given away", folder.display());
    Ok(())
}
