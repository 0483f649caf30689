//! Puts the operator's manifests into a control plane, as a person would: what the built binary
//! prints goes through kubectl.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::process::Command;
use trainyard_api::crd;
use trainyard_api::volcano::{self, names};

use crate::control_plane::ControlPlane;
use crate::harness::product;
use crate::kubectl::Kubectl;

/// Installs namespace, CRDs, roles and bindings, then starts the garbage collector, which would
/// otherwise learn of the new kind half a minute late.
pub(crate) async fn install(plane: &mut ControlPlane) -> Result<()> {
    install_with(plane, &[]).await
}

/// The same with Volcano Jobs and the gang scheduler.
pub(crate) async fn install_all(plane: &mut ControlPlane) -> Result<()> {
    install_with(plane, &["--volcano", "--scheduler"]).await
}

async fn install_with(plane: &mut ControlPlane, flags: &[&str]) -> Result<()> {
    apply(plane, &product().await?, flags).await?;
    plane.start_controller_manager()
}

/// The same as [`install_all`] as this binary prints it, and no garbage collector.
pub(crate) async fn install_all_of(plane: &ControlPlane, binary: &Path) -> Result<()> {
    apply(plane, binary, &["--volcano", "--scheduler"]).await
}

async fn apply(plane: &ControlPlane, binary: &Path, flags: &[&str]) -> Result<()> {
    let manifests = printed(binary, &[&["manifests"], flags].concat()).await?;
    let applied = plane.kubectl().run_with_input(&["apply", "-f", "-"], &manifests).await?;
    applied.stdout_of_success()?;
    established(plane).await
}

/// Installs definitions from a file of somebody else's, over ours of the same name.
pub(crate) async fn install_definitions(plane: &ControlPlane, file: &Path) -> Result<()> {
    let definitions = std::fs::read_to_string(file)
        .with_context(|| format!("reading the definitions in {}", file.display()))?;
    // By the server: large ones would not fit into the annotation that kubectl keeps.
    let words = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    let applied = plane.kubectl().run_with_input(&words, &definitions).await?;
    applied.stdout_of_success()?;
    established(plane).await
}

/// Installs the account of nodes and its rights, as this binary prints them.
pub(crate) async fn install_node(kubectl: &Kubectl, binary: &Path) -> Result<()> {
    let manifests = printed(binary, &["manifests", "--node"]).await?;
    let applied = kubectl.run_with_input(&["apply", "-f", "-"], &manifests).await?;
    applied.stdout_of_success().map(drop)
}

/// What nodes with accounts of their own need.
pub(crate) async fn install_node_group(kubectl: &Kubectl, binary: &Path) -> Result<()> {
    let manifests = printed(binary, &["manifests", "--node-group"]).await?;
    let applied = kubectl.run_with_input(&["apply", "-f", "-"], &manifests).await?;
    applied.stdout_of_success().map(drop)
}

/// Replaces the CRDs of jobs by such as accept everything, so that objects get past validation.
pub(super) async fn install_without_rules(plane: &ControlPlane) -> Result<()> {
    let kubectl = plane.kubectl();
    for definition in definitions_without_rules()? {
        let definition = definition.to_string();
        let replaced = kubectl.run_with_input(&["replace", "-f", "-"], &definition).await?;
        replaced.stdout_of_success()?;
    }
    takes_everything(&kubectl, "kubeflow.org/v1", "TFJob").await?;
    takes_everything(&kubectl, names::API_VERSION, names::KIND).await
}

async fn takes_everything(kubectl: &Kubectl, api_version: &str, kind: &str) -> Result<()> {
    let invalid = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "Probe-Of-The-Rules", "namespace": "default"}, "spec": 7,
    });
    // The new schema takes a moment to take effect.
    for _ in 0..200 {
        let words = ["create", "--dry-run=server", "--validate=false", "-f", "-"];
        // The name alone stays invalid: when it is the only complaint left, the rules are gone.
        let answer = kubectl.run_with_input(&words, &invalid.to_string()).await?;
        if !answer.stderr.contains("spec") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("the API server still applies the rules of the CRD of {kind}")
}

/// The definitions of TFJob and of Volcano's Job, taking everything.
pub(crate) fn definitions_without_rules() -> Result<[Value; 2]> {
    Ok([without_rules(crd::tfjob_crd())?, without_rules(volcano::crd::job_crd())?])
}

fn without_rules(mut definition: Value) -> Result<Value> {
    let versions = definition["spec"]["versions"].as_array_mut();
    for version in versions.context("the CRD has versions")? {
        version["schema"]["openAPIV3Schema"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        // The scale subresource checks the fields that it is made of.
        version["subresources"] = json!({"status": {}});
    }
    Ok(definition)
}

/// kubectl's own `wait` gives up on a definition whose status has not been written yet.
async fn established(plane: &ControlPlane) -> Result<()> {
    let words = ["wait", "--for=condition=Established", "--timeout=30s", "crd", "--all"];
    let mut answer = plane.kubectl().run(&words).await?;
    for _ in 0..20 {
        if answer.success() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        answer = plane.kubectl().run(&words).await?;
    }
    answer.stdout_of_success()?;
    Ok(())
}

/// What the binary prints when it is given these words.
async fn printed(binary: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(binary);
    command.args(words).stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let words = words.join(" ");
    let output = command.output().await.with_context(|| format!("running `trainyard {words}`"))?;
    let manifests = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success() && !manifests.trim().is_empty(),
        "`trainyard {words}` ended with {} and printed {} bytes",
        output.status,
        manifests.len()
    );
    Ok(manifests)
}

/// The rules of every role that is bound to an account, as the API server has them.
pub(super) async fn rules(kubectl: &Kubectl, user: &str) -> Result<Vec<Value>> {
    let words = ["get", "clusterroles,roles", "--all-namespaces", "-o", "json"];
    let listed = kubectl.run(&words).await?.stdout_of_success()?;
    let bindings = ["get", "clusterrolebindings,rolebindings", "--all-namespaces", "-o", "json"];
    let bindings = kubectl.run(&bindings).await?.stdout_of_success()?;
    Ok(rules_of(user, &serde_json::from_str(&listed)?, &serde_json::from_str(&bindings)?))
}

fn rules_of(user: &str, roles: &Value, bindings: &Value) -> Vec<Value> {
    let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    let is_user = |subject: &Value| {
        let word = |key: &str| subject[key].as_str().unwrap_or_default().to_owned();
        user == format!("system:serviceaccount:{}:{}", word("namespace"), word("name"))
    };
    let mut found = Vec::new();
    for binding in items(bindings) {
        let subjects = binding["subjects"].as_array().cloned().unwrap_or_default();
        if !subjects.iter().any(is_user) {
            continue;
        }
        for role in items(roles) {
            let same = role["kind"] == binding["roleRef"]["kind"]
                && role["metadata"]["name"] == binding["roleRef"]["name"];
            if same {
                found.extend(role["rules"].as_array().cloned().unwrap_or_default());
            }
        }
    }
    found
}
