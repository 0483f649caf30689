//! `volumeMounts` of a container: which path of this machine appears where in its root.
//!
//! Must not know how volumes are made, nor how a mount is.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, VolumeMount};
use trainyard_holder::protocol::Mount;

use crate::env::{Environment, expand};
use crate::volumes::{VolumeError, Volumes};

impl Volumes {
    /// The mounts of a container, parents before what lies below them.
    pub(crate) fn mounts(
        &self,
        container: &Container,
        env: &Environment,
    ) -> Result<Vec<Mount>, VolumeError> {
        let mut mounts = Vec::new();
        for wanted in container.volume_mounts.iter().flatten() {
            let entry = self.entries.get(&wanted.name).ok_or_else(|| VolumeError::Missing {
                volume: wanted.name.clone(),
                container: container.name.clone(),
            })?;
            let target = target(&wanted.mount_path, &container.name)?;
            let read_only = entry.read_only || wanted.read_only.unwrap_or(false);
            let depth = target.components().count();
            let part = part(wanted, env)?;
            let (name, place) = (wanted.name.clone(), entry.path.clone());
            mounts.push((depth, Mount::Volume { name, place, part, target, read_only }));
        }
        // Stable: of two on the same path the later one lies on top, as written.
        mounts.sort_by_key(|(depth, _)| *depth);
        Ok(mounts.into_iter().map(|(_, mount)| mount).collect())
    }
}

/// The part of a volume that is wanted; empty if it is the whole. The holder finds or makes it when it
/// mounts it: what is there now says nothing about what will be there then.
fn part(wanted: &VolumeMount, env: &Environment) -> Result<PathBuf, VolumeError> {
    let expression = wanted.sub_path_expr.as_deref().filter(|e| !e.is_empty());
    let inside = match expression {
        Some(expression) => expanded(expression, env)?,
        None => wanted.sub_path.clone().unwrap_or_default(),
    };
    if inside.starts_with('/') {
        let text = format!("error SubPath `{inside}` must not be an absolute path");
        return Err(VolumeError::Mount(text));
    }
    if inside.split('/').any(|part| part == "..") {
        let text = format!("unable to provision SubPath `{inside}`: must not contain '..'");
        return Err(VolumeError::Mount(text));
    }
    Ok(inside.split('/').filter(|part| !matches!(*part, "" | ".")).collect())
}

fn expanded(expression: &str, env: &Environment) -> Result<String, VolumeError> {
    let mut missing = BTreeSet::new();
    let path = expand(expression, |name| {
        let value = env.declared(name).unwrap_or_default();
        if value.is_empty() {
            missing.insert(name.to_owned());
        }
        value.to_owned()
    });
    if missing.is_empty() {
        return Ok(path);
    }
    let names: Vec<String> = missing.into_iter().collect();
    Err(VolumeError::Mount(format!("missing value for {}", names.join(", "))))
}

/// A place in the container's root, without `..`: that is taken as at the root, where up is nowhere.
fn target(mount_path: &str, container: &str) -> Result<PathBuf, VolumeError> {
    let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
    for component in Path::new(mount_path).components() {
        match component {
            Component::Normal(part) => parts.push(part),
            Component::ParentDir => {
                parts.pop();
            }
            _ => {}
        }
    }
    if parts.is_empty() || mount_path.contains('\0') {
        return Err(VolumeError::Mount(format!(
            "mountPath {mount_path:?} of container {container:?} cannot be used: name a folder below the root"
        )));
    }
    let mut target = PathBuf::from("/");
    target.extend(parts);
    Ok(target)
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
