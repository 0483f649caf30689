//! What is not done on a node is said, or refused in words; never passed over.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::Shared;
use super::look::{Gate, verdict};
use super::objects::{hindered, make, said};
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage, exit_code};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["unsupported":
        hooks,
        sidecar,
        never_pull,
        refresh,
    ]
}

/// The pod runs without them, and says so.
async fn hooks(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "hooks").await?, Gate::new()?);
    let hook = |name: &str| json!({"exec": {"command": ["touch", format!("/gate/{name}")]}});
    let mut more = gate.spec();
    more["containers"][0]["lifecycle"] =
        json!({"postStart": hook("post-start"), "preStop": hook("pre-stop")});
    more["terminationGracePeriodSeconds"] = json!(2);
    pods.shell("hooked", "touch /gate/up; exec sleep 600", more).await?;
    gate.until("up").await?;
    let event = pods.until_event("hooked", "FailedPostStartHook: ").await?;
    contains("postStart", &event, &["postStart hook of container main", "not run on this node"])?;
    let event = pods.until_event("hooked", "FailedPreStopHook: ").await?;
    contains("preStop", &event, &["preStop hook of container main", "SIGTERM at once"])?;
    pods.delete("hooked", None).await?;
    pods.until_gone("hooked").await?;
    ensure!(!gate.has("post-start") && !gate.has("pre-stop"), "a hook was run after all");
    Ok(())
}

async fn sidecar(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "sidecar").await?;
    let helper = json!({"name": "helper", "image": "test", "command": ["sleep", "600"],
        "restartPolicy": "Always"});
    pods.shell("pair", "true", json!({"initContainers": [helper]})).await?;
    let pod = pods.until_phase("pair", "Failed").await?;
    let (reason, message) = verdict(&pod);
    equal("reason", reason, "UnsupportedPod")?;
    let words = ["init container helper", "sidecars are not run", "ordinary container"];
    contains("message", message, &words)?;
    ensure!(exit_code(&pod, "main").is_none(), "it ran: {:?}", pod.status);
    let event = pods.until_event("pair", "FailedValidation: ").await?;
    contains("event", &event, &words)
}

/// An environment that is not there is not made against the pod's will.
async fn never_pull(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "never").await?;
    // No release has this number.
    let image = "tensorflow/tensorflow:2.999.0";
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": image,
        "imagePullPolicy": "Never", "command": ["true"]}]});
    pods.create("offline", spec).await?;
    let words = hindered(&pods, "offline", "main", "ErrImageNeverPull").await?;
    let expected = format!("Container image \"{image}\" is not present with pull policy of Never");
    equal("message", &words, &expected)?;
    pods.until_event("offline", &format!("ErrImageNeverPull: {expected}")).await?;
    pods.until_event("offline", "Failed: Error: ErrImageNeverPull").await?;
    pods.delete("offline", None).await?;
    pods.until_gone("offline").await
}

/// A container that runs keeps what it was given; the next pod gets what is there then.
async fn refresh(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "refresh").await?, Gate::new()?);
    let map = json!({"metadata": {"name": "settings"}, "data": {"rate": "first"}});
    make::<ConfigMap>(&pods, map).await?;
    let more = json!({
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}, gate.volume()],
        "containers": [{"volumeMounts": [
            {"name": "settings", "mountPath": "/settings"}, Gate::mount()]}],
    });
    let script = "touch /gate/up; until [ -e /gate/changed ]; do sleep 0.05; done; sleep 2; \
                  cat /settings/rate";
    pods.shell("before", script, more.clone()).await?;
    gate.until("up").await?;
    let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), &pods.namespace);
    let patch = Patch::Merge(json!({"data": {"rate": "second"}}));
    maps.patch("settings", &PatchParams::default(), &patch).await?;
    gate.open("changed")?;
    equal("before", said(&pods, "before").await?.as_str(), "first")?;
    pods.shell("after", "cat /settings/rate", more).await?;
    equal("after", said(&pods, "after").await?.as_str(), "second")
}
