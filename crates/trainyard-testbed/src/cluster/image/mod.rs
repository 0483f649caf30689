//! Images without a registry, as archives that containerd imports. Kept in the user's cache. What is in an image
//! is in the files beside.

mod archive;
mod busybox;
mod program;
mod tar;
mod tensorflow;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::control_plane::cache_root;
use archive::Archive;

/// Debian's busybox with the C library, so that dynamic programs of this machine run beside it too.
pub const BUSYBOX: &str = "local/busybox:1";
/// Debian's Python with TensorFlow as pip installs it, under the name of the image that it stands in for.
pub const TENSORFLOW: &str = "tensorflow/tensorflow:2.21.0";

/// An archive with [`BUSYBOX`].
pub async fn busybox() -> Result<PathBuf> {
    busybox::archive().await
}

/// An archive with [`TENSORFLOW`]; the first time takes more than a minute.
pub async fn tensorflow() -> Result<PathBuf> {
    tensorflow::archive().await
}

/// An archive with an image of this name that holds one program as `deploy/Dockerfile` does, under the program's
/// file name, and the dynamic libraries it is linked to.
pub async fn of_program(binary: &Path, name: &str) -> Result<PathBuf> {
    program::archive(binary, name).await
}

/// An archive with the program that keeps a pod's namespaces.
pub(super) async fn pause(program: &Path) -> Result<PathBuf> {
    let settings = archive::Settings {
        entrypoint: vec!["/pause".to_owned()],
        user: "65535:65535".to_owned(),
        ..archive::Settings::default()
    };
    let path = folder()?.join("pause.tar");
    let program = program.to_owned();
    in_background(move || {
        let mut archive = Archive::create(&path)?;
        archive.file("pause", &program)?;
        archive.finish(super::configuration::PAUSE, &settings)?;
        Ok(path)
    })
    .await
}

/// Where archives are kept.
fn folder() -> Result<PathBuf> {
    let folder = cache_root()?.join("images");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Reads and writes files where they hold up nobody.
async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

/// The name as containerd keeps it: the kubelet asks for `docker.io/library/x` when a pod says `x`.
fn full_name(name: &str) -> String {
    let (first, rest) = name.split_once('/').unwrap_or(("", name));
    if first.contains(['.', ':']) || first == "localhost" {
        name.to_owned()
    } else if first.is_empty() {
        format!("docker.io/library/{rest}")
    } else {
        format!("docker.io/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_container_tools_do() {
        assert_eq!(full_name("trainyard:0.1.0"), "docker.io/library/trainyard:0.1.0");
        assert_eq!(full_name("local/busybox:1"), "docker.io/local/busybox:1");
        assert_eq!(full_name("quay.test/a/b:1"), "quay.test/a/b:1");
    }
}
