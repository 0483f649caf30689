//! The root a container sees: its image's views, the pod's own files, its volumes. Pure: says what is
//! to be mounted, in order; the holder does it.

use std::path::{Path, PathBuf};

use trainyard_holder::protocol::{Mount, User};
use trainyard_image::{Image, SystemView, View, ViewMode, system_views};

/// Files of the pod that every container of it sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PodFiles {
    /// `/etc/hosts`.
    pub(crate) hosts: PathBuf,
    /// `/etc/resolv.conf`.
    pub(crate) resolv: PathBuf,
    /// `/etc/hostname`.
    pub(crate) hostname: PathBuf,
}

/// Everything that is mounted, parents before children.
pub(crate) fn mounts(
    image: &Image,
    user: &User,
    files: &PodFiles,
    termination: (&Path, &Path),
    changes: &Path,
    volumes: Vec<Mount>,
) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for (number, view) in image.root.iter().enumerate() {
        match view {
            View::System => mounts.extend(system_views(user.uid, user.gid).into_iter().map(system)),
            View::Directory { source, target, mode } => {
                mounts.push(directory(source, target, *mode, &changes.join(number.to_string())));
            }
        }
    }
    for (source, target) in [
        (&files.hosts, "/etc/hosts"),
        (&files.resolv, "/etc/resolv.conf"),
        (&files.hostname, "/etc/hostname"),
    ] {
        mounts.push(Mount::Bind {
            source: source.clone(),
            target: target.into(),
            read_only: false,
        });
    }
    mounts.extend(volumes);
    let (source, target) = termination;
    mounts.push(Mount::Bind {
        source: source.to_owned(),
        target: target.to_owned(),
        read_only: false,
    });
    mounts
}

fn directory(source: &Path, target: &Path, mode: ViewMode, changes: &Path) -> Mount {
    let (source, target) = (source.to_owned(), target.to_owned());
    match mode {
        ViewMode::ReadOnly => Mount::Bind { source, target, read_only: true },
        ViewMode::Writable => Mount::Bind { source, target, read_only: false },
        ViewMode::PrivateCopy => {
            Mount::Overlay { lower: source, target, changes: changes.to_owned() }
        }
    }
}

fn system(view: SystemView) -> Mount {
    match view {
        SystemView::Bind { source, target } => Mount::Bind { source, target, read_only: true },
        SystemView::Symlink { target, to } => Mount::Symlink { target, to },
        SystemView::Directory { target, mode } => Mount::Directory { target, mode },
        SystemView::File { target, content, mode } => Mount::File { target, content, mode },
    }
}

/// Folders that overlays need to exist beforehand.
pub(crate) fn overlay_folders(mounts: &[Mount]) -> impl Iterator<Item = &Path> {
    mounts.iter().filter_map(|mount| match mount {
        Mount::Overlay { changes, .. } => Some(changes.as_path()),
        _ => None,
    })
}
