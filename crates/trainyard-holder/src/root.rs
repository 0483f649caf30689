//! Composing a container's root: a scratch folder, the mounts that were asked for, `/proc` and
//! `/dev`, and then nothing else of the host.
//!
//! Runs in the container's own mount namespace. Must not know users, programs or networks.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use crate::protocol::{Mount, Refusal, RefusalKind};
use crate::refuse::{OrRefuse, refusal};
use crate::sys;

mod inside;
pub(crate) mod mounting;
mod system;

use inside::Inside;
use mounting::{NO_DEVICES, NO_SUID, READ_ONLY};

/// What a root is made of.
pub(crate) struct Plan<'a> {
    pub(crate) scratch: &'a Path,
    pub(crate) mounts: &'a [Mount],
    pub(crate) devices: &'a [PathBuf],
    /// The pod's shared memory.
    pub(crate) shm: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) read_only: bool,
    /// Set-uid programs need not work.
    pub(crate) no_suid: bool,
    pub(crate) overlay: Overlay,
}

/// What overlays can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlay {
    None,
    /// With root.
    Full,
    /// In a user namespace, where other attributes of files are used.
    Rootless,
}

const FOLDER: Mode = Mode::from_raw_mode(0o755);

/// Makes the root and moves this process into it. The caller is alone in its mount namespace.
pub(crate) fn enter(plan: &Plan<'_>) -> Result<(), Refusal> {
    let machine = RefusalKind::Machine;
    rustix::process::umask(Mode::empty());
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).or_refuse(machine, || "leaving the host's mounts".to_owned())?;

    let step = || format!("preparing the root {}", plan.scratch.display());
    let root = mounting::view(plan.scratch).or_refuse(machine, step)?;
    mounting::attach_at(&root, plan.scratch).or_refuse(machine, step)?;
    let inside = Inside::new(root);
    // What goes below these two would be covered by them.
    let (late, early): (Vec<&Mount>, Vec<&Mount>) =
        plan.mounts.iter().partition(|mount| below_system(mount.target()));
    for mount in early {
        apply(&inside, mount, plan)?;
    }
    system::proc(&inside)?;
    system::dev(&inside, plan.shm, plan.devices)?;
    for mount in late {
        apply(&inside, mount, plan)?;
    }
    inside
        .folder(plan.cwd, FOLDER)
        .or_refuse(machine, || format!("making the working directory {}", plan.cwd.display()))?;
    if plan.read_only {
        sys::add_mount_attributes(inside.root(), READ_ONLY, false).or_refuse(machine, step)?;
    }
    pivot(&inside).or_refuse(machine, || "entering the root".to_owned())
}

fn below_system(target: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|top| target != Path::new(top) && target.starts_with(top))
}

/// The old root is put over the new one, and taken away from there.
fn pivot(inside: &Inside) -> std::io::Result<()> {
    fchdir(inside.root())?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

fn apply(inside: &Inside, mount: &Mount, plan: &Plan<'_>) -> Result<(), Refusal> {
    let kind = RefusalKind::Mount;
    match mount {
        Mount::Bind { source, target, read_only } => {
            bind(inside, source, target, *read_only, plan.no_suid)
        }
        Mount::Overlay { lower, target, changes } => overlay(inside, lower, target, changes, plan),
        Mount::Tmpfs { target, size, mode } => {
            let step = || format!("mounting memory at {}", target.display());
            let (place, _) = inside.folder(target, FOLDER).or_refuse(kind, step)?;
            let memory =
                mounting::memory(*size, *mode, NO_SUID | NO_DEVICES).or_refuse(kind, step)?;
            mounting::attach(memory, place).or_refuse(kind, step)
        }
        Mount::Directory { target, mode } => {
            let step = || format!("making the folder {}", target.display());
            let mode = Mode::from_raw_mode(mode & 0o7777);
            inside.folder(target, mode).map(drop).or_refuse(kind, step)
        }
        Mount::Symlink { target, to } => {
            let step = || format!("making the link {}", target.display());
            let (parent, name) = inside.parent(target).or_refuse(kind, step)?;
            match rustix::fs::symlinkat(to, &parent, name) {
                // The same link is there already.
                Err(Errno::EXIST)
                    if rustix::fs::readlinkat(&parent, name, Vec::new())
                        .is_ok_and(|found| found.as_bytes() == to.as_os_str().as_bytes()) =>
                {
                    Ok(())
                }
                other => other.or_refuse(kind, step),
            }
        }
        Mount::File { target, content, mode } => file(inside, target, content, *mode)
            .or_refuse(kind, || format!("writing {}", target.display())),
    }
}

fn bind(
    inside: &Inside,
    source: &Path,
    target: &Path,
    read_only: bool,
    no_suid: bool,
) -> Result<(), Refusal> {
    let kind = RefusalKind::Mount;
    let step = || format!("mounting {} at {}", source.display(), target.display());
    let view = mounting::view(source).or_refuse(kind, step)?;
    let status = rustix::fs::fstat(&view).or_refuse(kind, step)?;
    let place = if FileType::from_raw_mode(status.st_mode).is_dir() {
        inside.folder(target, FOLDER).map(|(folder, _)| folder)
    } else {
        inside.file(target)
    };
    let place = place.or_refuse(kind, || format!("making the mount point {}", target.display()))?;
    let mut attributes = if no_suid { NO_SUID } else { rustix::mount::MountAttrFlags::empty() };
    if read_only {
        attributes |= READ_ONLY;
    }
    // Devices are given by name, or by one who mounts the host's folder of them.
    if !source.starts_with("/dev") {
        attributes |= NO_DEVICES;
    }
    sys::add_mount_attributes(&view, attributes, true).or_refuse(kind, step)?;
    mounting::attach(view, place).or_refuse(kind, step)
}

fn overlay(
    inside: &Inside,
    lower: &Path,
    target: &Path,
    changes: &Path,
    plan: &Plan<'_>,
) -> Result<(), Refusal> {
    let kind = RefusalKind::Mount;
    if plan.overlay == Overlay::None {
        return bind(inside, lower, target, true, plan.no_suid);
    }
    let step = || format!("mounting {} at {}", lower.display(), target.display());
    let made = |name: &str| -> Result<PathBuf, Refusal> {
        let path = changes.join(name);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(path),
        }
        .or_refuse(kind, || format!("making a folder in {}", changes.display()))
    };
    let (upper, work) = (made("upper")?, made("work")?);
    // The topmost folder has the mode that the lower one has, so that it looks like it.
    if let Ok(status) = std::fs::metadata(lower) {
        std::fs::set_permissions(&upper, status.permissions()).or_refuse(kind, step)?;
    }
    match mounting::overlay(lower, &upper, &work, plan.overlay) {
        Ok(mount) => {
            let (place, _) = inside
                .folder(target, FOLDER)
                .or_refuse(kind, || format!("making the mount point {}", target.display()))?;
            mounting::attach(mount, place).or_refuse(kind, step)
        }
        // Some file systems cannot be the lower or upper one.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            bind(inside, lower, target, true, plan.no_suid)
        }
        Err(error) => Err(refusal(kind, step(), crate::refuse::words(&error))),
    }
}

fn file(inside: &Inside, target: &Path, content: &str, mode: u32) -> std::io::Result<()> {
    let (parent, name) = inside.parent(target)?;
    let flags =
        OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let file = rustix::fs::openat(&parent, name, flags, mode)?;
    std::fs::File::from(file).write_all(content.as_bytes())
}

/// Which overlays can be mounted here, tried with folders in memory.
pub(crate) fn overlays(rootless: bool) -> Overlay {
    let wanted = if rootless { Overlay::Rootless } else { Overlay::Full };
    let attempt = || -> std::io::Result<()> {
        // The folders must be reachable by path: they stand, for a moment, over one that is
        // there nearly always and that a holder does not use.
        let place = if Path::new("/mnt").is_dir() { Path::new("/mnt") } else { Path::new("/tmp") };
        let memory = mounting::memory(None, 0o755, NO_DEVICES)?;
        mounting::attach_at(&memory, place)?;
        let tried = (|| {
            for name in ["lower", "upper", "work"] {
                std::fs::create_dir(place.join(name))?;
            }
            let (lower, upper) = (place.join("lower"), place.join("upper"));
            mounting::overlay(&lower, &upper, &place.join("work"), wanted).map(drop)
        })();
        unmount(place, UnmountFlags::DETACH)?;
        tried
    };
    if attempt().is_ok() { wanted } else { Overlay::None }
}

/// A `/proc` of the current PID namespace that is mounted nowhere.
pub(crate) fn detached_proc() -> std::io::Result<OwnedFd> {
    mounting::file_system("proc", &[], NO_SUID | NO_DEVICES | mounting::NO_PROGRAMS)
}

/// Mounts memory on a folder of the current root.
pub(crate) fn mount_memory(folder: &Path, size: Option<u64>, mode: u32) -> std::io::Result<()> {
    mounting::attach_at(mounting::memory(size, mode, NO_SUID | NO_DEVICES)?.as_fd(), folder)
}

/// Takes away what is mounted on a folder.
pub(crate) fn unmount_memory(folder: &Path) -> std::io::Result<()> {
    Ok(unmount(folder, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}

/// Takes away all that is mounted below a folder, the last first.
pub(crate) fn unmount_below(folder: &Path) {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().rev().filter_map(|line| line.split(' ').nth(4));
    for point in points.map(|point| PathBuf::from(point.replace("\\040", " "))) {
        if point.starts_with(folder) {
            // What cannot be unmounted vanishes with this mount namespace.
            drop(unmount_memory(&point));
        }
    }
}

/// Makes the mounts of this namespace follow the host's without the host seeing ours.
pub(crate) fn follow_host_mounts() -> std::io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}
