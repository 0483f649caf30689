//! The demonstration: a real control plane, the operator and this machine as its nodes, as a user runs
//! them, and a job that really trains from submission to success.
//!
//! Must not check anything a test should check.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::process::Command;

use crate::kubectl::Kubectl;
use crate::node::{Agent, AgentOptions, Stage};

/// Name of the job, as its manifest says.
const JOB: &str = "tfjob/digits";
/// The first time, an environment with TensorFlow is made.
const PATIENCE: Duration = Duration::from_mins(15);

/// Shows a job from submission to success; `say` is given what a person would see.
pub async fn run(binary: &Path, say: impl Fn(&str)) -> Result<()> {
    say("starting etcd, kube-apiserver, kube-controller-manager and kube-scheduler");
    say("$ trainyard manifests | kubectl apply -f -\n$ trainyard operator");
    let stage = Stage::start(binary).await?;
    say("$ trainyard node --nodes alder,birch --allow-requirements");
    // Kept for a look afterwards, until the next demonstration.
    let kept = workspace().join("target/demo");
    if kept.exists() {
        std::fs::remove_dir_all(&kept).context("removing what the last demonstration left")?;
    }
    std::fs::create_dir_all(&kept)?;
    let flags = vec!["--allow-requirements".to_owned()];
    let options = AgentOptions { flags, state: Some(kept), ..AgentOptions::default() };
    let agent = Agent::start(&stage, options).await?;
    let kubectl = stage.kubectl.clone().with_patience(PATIENCE);
    show(&kubectl, &["get", "nodes", "-L", "trainyard.dev/sandbox,trainyard.dev/network"], &say)
        .await?;
    let claim = claim().to_string();
    kubectl.run_with_input(&["apply", "-f", "-"], &claim).await?.stdout_of_success()?;
    let script = format!("--from-file={}", example("parameter_server.py").display());
    show(&kubectl, &["create", "configmap", "digits", &script], &say).await?;
    let manifest = example("parameter-server.yaml").display().to_string();
    show(&kubectl, &["apply", "-f", &manifest], &say).await?;
    say("(the first time, an environment with TensorFlow is made: about a minute)");
    let running = ["wait", "--for=condition=Running", JOB, "--timeout=900s"];
    show(&kubectl, &running, &say).await?;
    show(&kubectl, &["get", "tfjob,pod", "-o", "wide"], &say).await?;
    say("$ kubectl logs -f digits-chief-0");
    follow(&stage).await?;
    let wait = ["wait", "--for=condition=Succeeded", JOB, "--timeout=120s"];
    show(&kubectl, &wait, &say).await?;
    let model = agent.state.join("claims/default/model");
    say(&format!("the model, its checkpoints: {}", model.display()));
    say(&format!("every replica's log: {}", agent.state.join("logs").display()));
    agent.stop().await?;
    say("done: the node has ended every process, the control plane ends now");
    Ok(())
}

async fn show(kubectl: &Kubectl, words: &[&str], say: &impl Fn(&str)) -> Result<()> {
    say(&format!("$ kubectl {}", words.join(" ")));
    let text = kubectl.run(words).await?.stdout_of_success()?;
    say(text.trim_end());
    Ok(())
}

/// The chief's log on our own standard output, until it ends.
async fn follow(stage: &Stage) -> Result<()> {
    let status = Command::new(stage.kubectl.program())
        .args(["logs", "-f", "digits-chief-0", "--kubeconfig"])
        .arg(stage.kubectl.kubeconfig())
        .stdin(Stdio::null())
        .status()
        .await
        .context("following the chief's log")?;
    ensure!(status.success(), "`kubectl logs` ended with {status}");
    Ok(())
}

/// A volume that this machine does not have, as manifests name them: a local directory stands in.
fn claim() -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "model"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                "storageClassName": "", "nfs": {"server": "files.example.com", "path": "/model"},
            },
        },
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "model", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": "model",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]})
}

/// A file of the example, relative to where the developer stands where that is possible.
fn example(name: &str) -> PathBuf {
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new(""));
    let file = workspace.join("examples/digits").join(name);
    let here = std::env::current_dir().unwrap_or_default();
    file.strip_prefix(&here).map_or(file.clone(), Path::to_path_buf)
}

fn workspace() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own)
}
