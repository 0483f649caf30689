//! The demonstration: a real control plane, the operator as a user runs it, and a job from
//! submission to success.
//!
//! There is no node: the kubelet is played, so nothing trains. Must not check anything a test
//! should check.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::{
    control_plane::{ControlPlane, Identity, Options},
    kubectl::Kubectl,
    suite,
    world::{Clients, World},
};

/// Namespace of the job, as its manifest says.
const NAMESPACE: &str = "kubeflow";
/// Name of the job.
const JOB: &str = "mnist";

/// Shows a job from submission to success; `say` is given what a person would see.
pub async fn run(binary: &Path, say: impl Fn(&str)) -> Result<()> {
    say("starting etcd and kube-apiserver");
    let options = Options { controller_manager: false, audit: false, ..Options::default() };
    let mut plane = ControlPlane::start(options).await?;
    say("$ trainyard manifests | kubectl apply -f -");
    suite::install::install(&mut plane).await?;
    say("$ trainyard operator");
    let log = std::fs::File::create(plane.dir().join("operator.log"))?;
    let _operator = Command::new(binary)
        .args(["operator", "--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .env("KUBECONFIG", plane.kubeconfig(Identity::Operator))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("starting `trainyard operator`")?;
    let clients = Clients {
        user: plane.client(Identity::Admin)?,
        kubelet: plane.client(Identity::Kubelet)?,
        operator: plane.client(Identity::Operator)?,
    };
    let world = World::enter(&clients, NAMESPACE).await?;
    let kubectl = plane.kubectl();
    show(&kubectl, &["apply", "-f", &manifest().display().to_string()], &say).await?;
    let pod = format!("{JOB}-worker-0");
    {
        let _kubelets = world.kubelet.auto();
        world.wait_conditions(JOB, &["Created=True", "Running=True"]).await?;
    }
    show(&kubectl, &["get", "tfjob,pod,service", "-n", NAMESPACE], &say).await?;
    say("(the training ends well)");
    world.kubelet.exit(&pod, 0).await?;
    let job = format!("tfjob/{JOB}");
    let wait = ["wait", "--for=condition=Succeeded", &job, "-n", NAMESPACE, "--timeout=60s"];
    show(&kubectl, &wait, &say).await?;
    show(&kubectl, &["describe", "tfjobs", JOB, "-n", NAMESPACE], &say).await?;
    say("done: ending the control plane");
    Ok(())
}

async fn show(kubectl: &Kubectl, words: &[&str], say: &impl Fn(&str)) -> Result<()> {
    say(&format!("$ kubectl {}", words.join(" ")));
    let text = kubectl.run(words).await?.stdout_of_success()?;
    say(text.trim_end());
    Ok(())
}

/// The job's manifest, relative to where the developer stands where that is possible.
fn manifest() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds/mnist.yaml");
    let here = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(&here).map_or(folder.clone(), Path::to_path_buf)
}
