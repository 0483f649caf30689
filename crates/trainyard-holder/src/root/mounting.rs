//! Mounts as descriptors: views of folders, new file systems, and putting them in their place.
//!
//! Owns the calls of the kernel's mount interface. The host's paths are not told to the kernel where it
//! would show them to the container. Must not know what a root consists of.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use super::Overlay;
use crate::beneath;

pub(crate) const READ_ONLY: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY;
pub(crate) const NO_SUID: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID;
pub(crate) const NO_DEVICES: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NODEV;
pub(crate) const NO_PROGRAMS: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

/// A new view of a file or folder and all that is mounted below it, not yet anywhere.
pub(crate) fn view(source: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(CWD, source, flags)?)
}

/// A new view of what a descriptor stands for.
pub(crate) fn view_of(place: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(place, "", flags)?)
}

/// One setting of a new file system.
pub(crate) enum Setting<'a> {
    Flag(&'a str),
    Text(&'a str, String),
}

/// A new file system, not yet anywhere.
pub(crate) fn file_system(
    kind: &str,
    settings: &[Setting<'_>],
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for setting in settings {
        match setting {
            Setting::Flag(key) => fsconfig_set_flag(&context, *key)?,
            Setting::Text(key, value) => fsconfig_set_string(&context, *key, value.as_str())?,
        }
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A new file system in memory.
pub(crate) fn memory(
    size: Option<u64>,
    mode: u32,
    attributes: MountAttrFlags,
) -> io::Result<OwnedFd> {
    let mut settings = vec![Setting::Text("mode", format!("{:o}", mode & 0o7777))];
    if let Some(size) = size {
        // Zero would mean without bound.
        settings.push(Setting::Text("size", size.max(1).to_string()));
        settings.push(Setting::Text("nr_inodes", inodes(size).to_string()));
    }
    file_system("tmpfs", &settings, attributes)
}

/// How many files it may have: empty ones take memory of the kernel's that their size does not count.
fn inodes(size: u64) -> u64 {
    const PAGE: u64 = 4096;
    const LEAST: u64 = 16_384;
    (size / PAGE).max(LEAST)
}

/// Puts a mount in its place.
pub(crate) fn attach(mount: impl AsFd, place: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", flags)?)
}

/// Puts a mount at a path of the current root.
pub(crate) fn attach_at(mount: impl AsFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(mount, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Where the changes of an overlay go.
pub(crate) struct Layers {
    pub(crate) upper: PathBuf,
    work: PathBuf,
}

impl Layers {
    /// Makes them in a folder. What is there of a start that failed is removed: whatever it holds is
    /// of no use, and the kernel does not take it twice.
    pub(crate) fn in_folder(folder: &Path) -> io::Result<Self> {
        let made = |name: &str| {
            let path = folder.join(name);
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    crate::sweep::sweep(&path)?;
                    std::fs::create_dir(&path)?;
                }
                other => other?,
            }
            Ok::<_, io::Error>(path)
        };
        Ok(Self { upper: made("upper")?, work: made("work")? })
    }

    /// Takes them away again.
    pub(crate) fn remove(&self) -> io::Result<()> {
        crate::sweep::sweep(&self.work)?;
        crate::sweep::sweep(&self.upper)
    }
}

/// An overlay over `lower`, not yet anywhere. Its folders are named by descriptors: the kernel shows their
/// names, as it was told them, to everybody who sees the mount.
pub(crate) fn overlay(lower: &Path, layers: &Layers, kind: Overlay) -> io::Result<OwnedFd> {
    let opened = |path: &Path| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty())
    };
    // Open until it is made: older kernels look the names up only then.
    let folders = [opened(lower)?, opened(&layers.upper)?, opened(&layers.work)?];
    let [lower, upper, work] = folders
        .each_ref()
        .map(|folder| beneath::by_descriptor(folder).to_string_lossy().into_owned());
    let mut settings = vec![
        Setting::Text("lowerdir", lower),
        Setting::Text("upperdir", upper),
        Setting::Text("workdir", work),
        // The changes end with the container. Without this its end would wait until the whole disk
        // they are on has been written out.
        Setting::Flag("volatile"),
    ];
    if kind == Overlay::Rootless {
        settings.push(Setting::Flag("userxattr"));
    }
    file_system("overlay", &settings, NO_DEVICES)
}
