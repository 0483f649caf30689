//! An agent that is known as a kubelet is, `system:node:NAME` in the group of nodes, held by the API
//! server's own limits for them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::freed;
use super::objects::{make, says};
use crate::check::equal;
use crate::control_plane::Identity;
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage};
use crate::suite::install;

const NODE: &str = "spruce";

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(3),
        cases!["kubelet":
            runs_pods_with_a_kubelets_rights,
        ],
    )
}

/// A kubeconfig of the node. An administrator asks in its name, which the API server judges as it would
/// judge the node's certificate.
fn kubeconfig(stage: &Stage) -> Result<PathBuf> {
    let plane = stage.plane.lock().map_err(|_| anyhow::anyhow!("a case panicked"))?;
    let text = fs::read(plane.kubeconfig(Identity::Admin))?;
    let mut config: Value = serde_json::from_slice(&text)?;
    let user = config["users"][0]["user"].as_object_mut().context("no user")?;
    user.insert("as".to_owned(), json!(format!("system:node:{NODE}")));
    user.insert("as-groups".to_owned(), json!(["system:nodes"]));
    let path = stage.ground.path().join("node.kubeconfig");
    fs::write(&path, config.to_string())?;
    Ok(path)
}

async fn runs_pods_with_a_kubelets_rights(stage: &Stage) -> Result<()> {
    install::install_node_group(&stage.kubectl, &stage.binary).await?;
    let kubeconfig = Some(kubeconfig(stage)?);
    let nodes = vec![NODE.to_owned()];
    let options = AgentOptions { nodes, kubeconfig, ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    let pods = Pods::open(stage, "kubelet").await?;
    let named = |name: &str| json!({"metadata": {"name": name}, "data": {}});
    let mut secret = named("s");
    secret["stringData"] = json!({"word": "secret"});
    make::<Secret>(&pods, secret).await?;
    let mut map = named("m");
    map["data"] = json!({"word": "map"});
    make::<ConfigMap>(&pods, map).await?;
    let more = json!({
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "volumes": [{"name": "s", "secret": {"secretName": "s"}}],
        "containers": [{
            "env": [{"name": "M", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "word"}}}],
            "volumeMounts": [{"name": "s", "mountPath": "/s"}],
        }],
    });
    let script = "cat /s/word; echo; echo $M; \
        test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token";
    let text = says(&pods, "reads", script, more).await?;
    equal("what it read", text.as_str(), "secret\nmap\ntoken\n")?;
    freed::claims(stage, &agent).await?;
    ensure!(!agent.log_text().contains("forbidden"), "{}", agent.log_text());
    agent.stop().await
}
