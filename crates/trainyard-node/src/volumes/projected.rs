//! Projected volumes: several sources in one folder, among them the service account's token.
//!
//! Says which files there are and which of them are tokens; must not write to a disk.

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{
    Pod, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use crate::env::Facts;
use crate::objects::{Objects, TokenAsk};
use crate::volumes::payload::{self, Payload};
use crate::volumes::tokens::TokenFile;

/// The mode of files where none is given.
pub(crate) const DEFAULT_MODE: i32 = 0o644;

/// Who the files of a volume are for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readers {
    /// The one user that all containers run as.
    pub(crate) user: Option<u32>,
    /// The pod's `fsGroup`.
    pub(crate) group: Option<u32>,
}

/// The one user that all containers of a pod run as, if they say so and it is one.
pub(crate) fn common_user(pod: &Pod) -> Option<u32> {
    let spec = pod.spec.as_ref()?;
    let of_pod = spec.security_context.as_ref().and_then(|s| s.run_as_user);
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let mut users = all.map(|c| c.security_context.as_ref().and_then(|s| s.run_as_user).or(of_pod));
    let first = users.next()??;
    users.all(|user| user == Some(first)).then(|| u32::try_from(first).ok()).flatten()
}

/// What a projected volume holds.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    pub(crate) payload: Payload,
    /// Tokens among it; their paths are relative to the volume.
    pub(crate) tokens: Vec<TokenFile>,
}

/// Collects what a projected volume holds; a later source replaces files of an earlier one.
pub(crate) async fn collect<O: Objects>(
    source: &ProjectedVolumeSource,
    pod: &Pod,
    facts: &Facts,
    readers: Readers,
    objects: &O,
) -> Result<Projection, String> {
    let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
    // Each asks the API server by itself; the answers need not wait for each other.
    let parts = source.sources.iter().flatten().map(async |part| {
        if let Some(wanted) = &part.service_account_token {
            token(wanted, pod, mode, readers, objects).await
        } else {
            let payload = files(part, pod, facts, mode, objects).await?;
            Ok(Projection { payload, tokens: Vec::new() })
        }
    });
    let mut projection = Projection::default();
    for part in try_join_all(parts).await? {
        let replaced = |token: &TokenFile| {
            token.path.to_str().is_some_and(|path| part.payload.contains_key(path))
        };
        projection.tokens.retain(|token| !replaced(token));
        projection.tokens.extend(part.tokens);
        projection.payload.extend(part.payload);
    }
    Ok(projection)
}

async fn files<O: Objects>(
    part: &VolumeProjection,
    pod: &Pod,
    facts: &Facts,
    mode: i32,
    objects: &O,
) -> Result<Payload, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(wanted) = &part.config_map {
        let optional = wanted.optional.unwrap_or(false);
        let found =
            objects.config_map(namespace, &wanted.name).await.map_err(|e| e.to_string())?;
        if found.is_none() && !optional {
            return Err(format!("configmap {:?} not found", wanted.name));
        }
        let items = wanted.items.as_deref().unwrap_or_default();
        payload::of_config_map(found.as_ref(), items, mode, optional)
    } else if let Some(wanted) = &part.secret {
        let optional = wanted.optional.unwrap_or(false);
        let found = objects.secret(namespace, &wanted.name).await.map_err(|e| e.to_string())?;
        if found.is_none() && !optional {
            return Err(format!("secret {:?} not found", wanted.name));
        }
        let items = wanted.items.as_deref().unwrap_or_default();
        payload::of_secret(found.as_ref(), items, mode, optional)
    } else if let Some(wanted) = &part.downward_api {
        payload::of_fields(wanted.items.as_deref().unwrap_or_default(), mode, pod, facts)
    } else if let Some(wanted) = &part.cluster_trust_bundle {
        if !wanted.optional.unwrap_or(false) {
            return Err("clusterTrustBundle cannot be projected by this node: give the certificates in a configMap instead".to_owned());
        }
        let mut empty = Payload::new();
        payload::add(&mut empty, &wanted.path, Vec::new(), mode, None).map(|()| empty)
    } else {
        return Err("a projected source is of a kind that this node does not know: use secret, configMap, downwardAPI or serviceAccountToken".to_owned());
    }
    .map_err(|e| e.to_string())
}

async fn token<O: Objects>(
    wanted: &ServiceAccountTokenProjection,
    pod: &Pod,
    mode: i32,
    readers: Readers,
    objects: &O,
) -> Result<Projection, String> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let account = pod.spec.as_ref().and_then(|s| s.service_account_name.clone());
    let account = account.filter(|a| !a.is_empty()).unwrap_or_else(|| "default".to_owned());
    let ask = TokenAsk {
        audience: wanted.audience.clone().filter(|a| !a.is_empty()),
        seconds: wanted.expiration_seconds.unwrap_or(3600),
        pod_name: text(&pod.metadata.name),
        pod_uid: text(&pod.metadata.uid),
    };
    let given = objects
        .token(&text(&pod.metadata.namespace), &account, &ask)
        .await
        .map_err(|e| format!("failed to fetch token: {e}"))?;
    // Where its readers are known, nobody else may read it; the group gets its right with the volume.
    let mode = if readers.user.is_some() || readers.group.is_some() { 0o600 } else { mode };
    let data = given.bearer.clone().into_bytes();
    let mut payload = Payload::new();
    payload::add(&mut payload, &wanted.path, data, mode, readers.user)
        .map_err(|e| e.to_string())?;
    let path = payload.keys().next().cloned().unwrap_or_default();
    let tokens = vec![TokenFile::new(path.into(), account, ask, &given)];
    Ok(Projection { payload, tokens })
}

#[cfg(test)]
#[path = "projected_tests.rs"]
mod tests;
