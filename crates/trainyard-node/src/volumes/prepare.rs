//! Making a pod's volumes, each by its kind.
//!
//! Only those that a container mounts: what nobody uses can fail nobody. Must not know how files are
//! written or where claims lie; that is in the files beside this one.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, Pod, Volume};
use trainyard_api::quantity;

use crate::env::Facts;
use crate::objects::Objects;
use crate::volumes::claims::{self, Wanted};
use crate::volumes::ownership::{self, Grant};
use crate::volumes::payload::{self, Payload};
use crate::volumes::projected::{self, DEFAULT_MODE, Readers};
use crate::volumes::tokens::TokenFile;
use crate::volumes::{
    Entry, Folders, TokenInVolume, VolumeError, Volumes, empty_dir, host_path, kinds, write,
};

/// Makes every volume that a container of the pod mounts.
pub(crate) async fn prepare<O: Objects>(
    pod: &Pod,
    facts: &Facts,
    objects: &O,
    folders: &Folders,
) -> Result<Volumes, VolumeError> {
    let mut preparation = Preparation {
        pod,
        facts,
        objects,
        folders,
        readers: Readers { user: projected::common_user(pod), group: group(pod)? },
        is_root: rustix::process::geteuid().is_root(),
        volumes: Volumes::default(),
    };
    let used = preparation.used()?;
    let all = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    for volume in all.filter(|v| used.contains(v.name.as_str())) {
        preparation.one(volume).await?;
    }
    Ok(preparation.volumes)
}

fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.iter().flat_map(|s| s.init_containers.iter().flatten().chain(&s.containers))
}

fn group(pod: &Pod) -> Result<Option<u32>, VolumeError> {
    let context = pod.spec.as_ref().and_then(|s| s.security_context.as_ref());
    let group = context.and_then(|c| c.fs_group);
    let wrong =
        |g: i64| VolumeError::Mount(format!("fsGroup {g} is no group: use 0 to 2147483647"));
    group.map(|g| u32::try_from(g).map_err(|_| wrong(g))).transpose()
}

struct Preparation<'a, O> {
    pod: &'a Pod,
    facts: &'a Facts,
    objects: &'a O,
    folders: &'a Folders,
    readers: Readers,
    is_root: bool,
    volumes: Volumes,
}

impl<'a, O: Objects> Preparation<'a, O> {
    /// Names of the volumes that containers mount; says what of their mounts cannot be had here.
    fn used(&mut self) -> Result<BTreeSet<&'a str>, VolumeError> {
        let mut used = BTreeSet::new();
        for container in containers(self.pod) {
            if let Some(device) = container.volume_devices.iter().flatten().next() {
                return Err(VolumeError::Unsupported {
                    volume: device.name.clone(),
                    source_kind: "volumeDevices (block)".to_owned(),
                    instead: "use volumeMounts with a claim of volumeMode Filesystem",
                });
            }
            for mount in container.volume_mounts.iter().flatten() {
                used.insert(mount.name.as_str());
                let propagation = mount.mount_propagation.as_deref().unwrap_or("None");
                if propagation != "None" {
                    self.volumes.notices.push(format!(
                        "container {:?} asks for mountPropagation {propagation} at {}: mounts made later are not passed on here",
                        container.name, mount.mount_path
                    ));
                }
            }
        }
        Ok(used)
    }

    async fn one(&mut self, volume: &Volume) -> Result<(), VolumeError> {
        let name = volume.name.as_str();
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(VolumeError::set_up(name, "the name of a volume must be a DNS label"));
        }
        if let Some(source) = &volume.empty_dir {
            return self.empty_dir(name, source).await;
        }
        if let Some(source) = &volume.host_path {
            let kind = source.type_.as_deref().unwrap_or_default();
            let checked = host_path::checked(&source.path, kind, &self.folders.written);
            let path = checked.map_err(|e| VolumeError::set_up(name, e))?;
            self.is_written(name, &path);
            self.volumes.entries.insert(name.to_owned(), Entry { path, ..Entry::default() });
            return Ok(());
        }
        if let Some(source) = &volume.persistent_volume_claim {
            let read_only = source.read_only.unwrap_or(false);
            return self.claim(name, &source.claim_name, read_only, None).await;
        }
        if volume.ephemeral.is_some() {
            let pod = self.pod.metadata.name.as_deref().unwrap_or_default();
            return self.claim(name, &format!("{pod}-{name}"), false, Some(self.pod)).await;
        }
        let (payload, tokens) = self.files(volume).await?;
        let path = self.folder(name)?;
        write::payload(&path, &payload).map_err(|e| VolumeError::set_up(name, e))?;
        self.keep_tokens(name, &path, &payload, tokens);
        self.give(name, &path, true).await?;
        let entry = Entry { path, read_only: true, ..Entry::default() };
        self.volumes.entries.insert(name.to_owned(), entry);
        Ok(())
    }

    /// What a volume that is made of files holds.
    async fn files(&self, volume: &Volume) -> Result<(Payload, Vec<TokenFile>), VolumeError> {
        let name = volume.name.as_str();
        let failed = |e: &dyn std::fmt::Display| VolumeError::set_up(name, e.to_string());
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        let files = if let Some(source) = &volume.config_map {
            let optional = source.optional.unwrap_or(false);
            let found = self.objects.config_map(namespace, &source.name).await;
            let found = found.map_err(|e| failed(&e))?;
            if found.is_none() && !optional {
                return Err(failed(&format!("configmap {:?} not found", source.name)));
            }
            let items = source.items.as_deref().unwrap_or_default();
            let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
            payload::of_config_map(found.as_ref(), items, mode, optional)
        } else if let Some(source) = &volume.secret {
            let optional = source.optional.unwrap_or(false);
            let wanted = source.secret_name.as_deref().unwrap_or_default();
            let found = self.objects.secret(namespace, wanted).await.map_err(|e| failed(&e))?;
            if found.is_none() && !optional {
                return Err(failed(&format!("secret {wanted:?} not found")));
            }
            let items = source.items.as_deref().unwrap_or_default();
            let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
            payload::of_secret(found.as_ref(), items, mode, optional)
        } else if let Some(source) = &volume.downward_api {
            let items = source.items.as_deref().unwrap_or_default();
            let mode = source.default_mode.unwrap_or(DEFAULT_MODE);
            payload::of_fields(items, mode, self.pod, self.facts)
        } else if let Some(source) = &volume.projected {
            let collected =
                projected::collect(source, self.pod, self.facts, self.readers, self.objects).await;
            return collected.map(|p| (p.payload, p.tokens)).map_err(|e| failed(&e));
        } else {
            let source_kind = kinds::of_volume(volume);
            let (volume, instead) = (name.to_owned(), kinds::INSTEAD);
            return Err(VolumeError::Unsupported { volume, source_kind, instead });
        };
        files.map(|payload| (payload, Vec::new())).map_err(|e| failed(&e))
    }

    async fn empty_dir(
        &mut self,
        name: &str,
        source: &EmptyDirVolumeSource,
    ) -> Result<(), VolumeError> {
        let failed = |e: String| VolumeError::set_up(name, e);
        let limit = source.size_limit.as_ref().map(|q| quantity::parse(&q.0)).transpose();
        let limit = limit.map_err(|e| failed(format!("sizeLimit: {e}")))?;
        let medium = source.medium.as_deref().unwrap_or_default();
        let in_memory = match medium {
            "" => false,
            "Memory" => true,
            huge if huge.starts_with("HugePages") => {
                let text =
                    format!("medium {huge} is not available on this node: use medium Memory");
                return Err(failed(text));
            }
            other => return Err(failed(format!("unknown storage medium {other:?}"))),
        };
        let path = self.folder(name)?;
        write::folder(&path, 0o777).map_err(|e| failed(format!("{}: {e}", path.display())))?;
        let mut entry = Entry { path, in_memory, ..Entry::default() };
        if in_memory {
            entry.memory_size = empty_dir::memory_size(self.pod, &self.facts.allocatable, limit);
            if let Some(group) = self.readers.group {
                self.volumes.notices.push(format!(
                    "fsGroup {group} is not set on the memory-backed volume {name:?}: everyone in the pod can write to it"
                ));
            }
        } else {
            entry.counted = true;
            entry.limit = limit.filter(|l| *l > quantity::Quantity::ZERO);
            self.give(name, &entry.path, false).await?;
        }
        self.volumes.entries.insert(name.to_owned(), entry);
        Ok(())
    }

    async fn claim(
        &mut self,
        name: &str,
        claim: &str,
        read_only: bool,
        only_for: Option<&Pod>,
    ) -> Result<(), VolumeError> {
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        // A claim that ends with the pod is kept where the pod's own things are.
        let folder = match only_for {
            Some(_) => self.folder(name)?,
            None => self.folders.claims.join(segment(name, namespace)?).join(segment(name, claim)?),
        };
        let cluster = self.folders.cluster.as_deref();
        let written = &self.folders.written;
        let wanted = Wanted { namespace, claim, only_for, folder: &folder, cluster, written };
        let backing = Box::pin(claims::backing(wanted, self.objects)).await?;
        let read_only = read_only || backing.read_only;
        if backing.owned {
            self.give(name, &backing.path, read_only).await?;
        }
        if !read_only {
            self.is_written(name, &backing.path);
        }
        self.volumes.notices.extend(backing.notice);
        let entry = Entry { path: backing.path, read_only, ..Entry::default() };
        self.volumes.entries.insert(name.to_owned(), entry);
        Ok(())
    }

    /// Notes that a folder of the machine is written to, if a container of the pod may.
    fn is_written(&self, volume: &str, path: &Path) {
        let mut mounts = containers(self.pod).flat_map(|c| c.volume_mounts.iter().flatten());
        if mounts.any(|mount| mount.name == volume && mount.read_only != Some(true)) {
            self.folders.written.add(path);
        }
    }

    /// The place of a volume in the pod's own folder, with all links of the way there resolved.
    fn folder(&self, name: &str) -> Result<PathBuf, VolumeError> {
        let all = self.folders.ephemeral.join("volumes");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&all);
        made.and_then(|()| fs::canonicalize(&all))
            .map(|all| all.join(name))
            .map_err(|e| VolumeError::set_up(name, format!("making {}: {e}", all.display())))
    }

    fn keep_tokens(&mut self, volume: &str, root: &Path, payload: &Payload, found: Vec<TokenFile>) {
        let mut kept = self.volumes.tokens();
        for mut token in found {
            let file = token.path.to_str().and_then(|path| payload.get(path));
            let Some(file) = file else { continue };
            token.path = root.join(&token.path);
            // As the group's right is set on the whole volume, so it is set on the new file.
            let group = self.readers.group.filter(|_| self.is_root);
            let mode = if group.is_some() { file.mode | 0o440 } else { file.mode };
            let volume = volume.to_owned();
            kept.push(TokenInVolume { volume, token, mode, owner: file.owner, group });
        }
    }

    /// Gives a volume to the pod's group, if it has one.
    async fn give(&mut self, name: &str, path: &Path, read_only: bool) -> Result<(), VolumeError> {
        let Some(group) = self.readers.group else { return Ok(()) };
        if !self.is_root {
            let notice = format!(
                "fsGroup {group} cannot be set on volumes without root: their files belong to the user who runs the node"
            );
            if !self.volumes.notices.contains(&notice) {
                self.volumes.notices.push(notice);
            }
            return Ok(());
        }
        let context = self.pod.spec.as_ref().and_then(|s| s.security_context.as_ref());
        let policy = context.and_then(|c| c.fs_group_change_policy.as_deref());
        let only_on_mismatch = policy == Some("OnRootMismatch");
        let grant = Grant { group, read_only, only_on_mismatch };
        let place = path.to_owned();
        // A large volume takes long.
        let given = tokio::task::spawn_blocking(move || ownership::give(&place, grant)).await;
        let given = given.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        given.map_err(|e| {
            VolumeError::set_up(
                name,
                format!("applying fsGroup {group} to {}: {e}", path.display()),
            )
        })
    }
}

/// A name that is one step of a path.
fn segment<'n>(volume: &str, name: &'n str) -> Result<&'n str, VolumeError> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
        return Err(VolumeError::set_up(volume, format!("{name:?} names no claim")));
    }
    Ok(name)
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
