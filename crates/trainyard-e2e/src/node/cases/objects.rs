//! What cases put beside their pods, and the short way to what a pod says. Knows no case.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use kube::api::{Api, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::node::{Pods, exit_code};

/// An object of the case's namespace.
pub(super) async fn make<K>(pods: &Pods<'_>, object: Value) -> Result<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).context("the case's object is malformed")?;
    let api: Api<K> = Api::namespaced(pods.stage.client.clone(), &pods.namespace);
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// What a shell script of a new pod prints; it must end well.
pub(super) async fn says(pods: &Pods<'_>, name: &str, script: &str, more: Value) -> Result<String> {
    pods.shell(name, script, more).await?;
    said(pods, name).await
}

/// What the container `main` of a pod printed; it must end well.
pub(super) async fn said(pods: &Pods<'_>, name: &str) -> Result<String> {
    let pod = ended(pods, name).await?;
    let log = pods.logs(&[name, "-c", "main"]).await?;
    let code = exit_code(&pod, "main");
    ensure!(phase(&pod) == "Succeeded", "{name} failed ({code:?}); it said:\n{log}");
    Ok(log)
}

/// The pod when it has ended, however.
pub(super) async fn ended(pods: &Pods<'_>, name: &str) -> Result<Pod> {
    pods.until(name, "ended", |pod| matches!(phase(pod), "Succeeded" | "Failed")).await
}

/// The pod once its phase is `Running`, with its address.
pub(super) async fn address(pods: &Pods<'_>, name: &str) -> Result<String> {
    let pod = pods.until_phase(name, "Running").await?;
    pod.status.and_then(|status| status.pod_ip).context("a pod runs without an address")
}

/// Waits until a container waits for this reason; gives what it says of it.
pub(super) async fn hindered(
    pods: &Pods<'_>,
    name: &str,
    container: &str,
    reason: &str,
) -> Result<String> {
    let told = |pod: &Pod| {
        let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
        let status = statuses.iter().find(|status| status.name == container)?;
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        (waiting.reason.as_deref() == Some(reason))
            .then(|| waiting.message.clone().unwrap_or_default())
    };
    let pod = pods.until(name, reason, |pod| told(pod).is_some()).await?;
    Ok(told(&pod).unwrap_or_default())
}

/// A pod's phase.
pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// A folder of this machine that whoever runs the agent may write.
pub(super) fn open_folder() -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    open_to_all(folder.path())?;
    Ok(folder)
}

/// Lets everybody write a folder.
pub(super) fn open_to_all(folder: &Path) -> Result<()> {
    Ok(std::fs::set_permissions(folder, Permissions::from_mode(0o777))?)
}

/// The value of `NAME=value` among lines.
pub(super) fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}
