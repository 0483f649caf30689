//! Composing a container's root: what it begins with, `/proc` and `/dev`, the mounts that were asked
//! for, and then nothing else of the host.
//!
//! Runs in the container's own mount namespace. Must not know users, programs or networks.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};

use crate::protocol::{Mount, Refusal, RefusalKind};
use crate::refuse::{OrRefuse, refusal};
use crate::{beneath, sys};

pub(crate) mod base;
mod inside;
pub(crate) mod mounting;
mod system;

use inside::Inside;
use mounting::{Layers, NO_DEVICES, NO_SUID, READ_ONLY};

/// What a root is made of.
pub(crate) struct Plan<'a> {
    pub(crate) scratch: &'a Path,
    /// A copy of `begins_with`.
    pub(crate) base: Option<&'a Path>,
    pub(crate) begins_with: &'a [Mount],
    pub(crate) mounts: &'a [Mount],
    pub(crate) devices: &'a [PathBuf],
    /// The pod's shared memory.
    pub(crate) shm: &'a Path,
    pub(crate) cwd: &'a Path,
    pub(crate) read_only: bool,
    pub(crate) manner: Manner,
}

/// How mounts are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Set-uid programs need not work.
    pub(crate) no_suid: bool,
    pub(crate) overlay: Overlay,
}

/// Owner and mode of a folder.
struct Top {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl Top {
    fn of(folder: &Path) -> io::Result<Self> {
        let data = std::fs::metadata(folder)?;
        Ok(Self { uid: data.uid(), gid: data.gid(), mode: data.mode() & 0o7777 })
    }

    fn give_to(&self, folder: &Path) -> io::Result<()> {
        let now = Self::of(folder)?;
        if (now.uid, now.gid) != (self.uid, self.gid) {
            std::os::unix::fs::chown(folder, Some(self.uid), Some(self.gid))?;
        }
        if now.mode != self.mode {
            std::fs::set_permissions(folder, Permissions::from_mode(self.mode))?;
        }
        Ok(())
    }
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
const SYSTEM: [&str; 2] = ["/dev", "/proc"];

/// Makes the root and moves this process into it; its file system of terminals. The caller is alone in
/// its mount namespace.
pub(crate) fn enter(plan: &Plan<'_>) -> Result<OwnedFd, Refusal> {
    let machine = RefusalKind::Machine;
    rustix::process::umask(Mode::empty());
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).or_refuse(machine, || "leaving the host's mounts".to_owned())?;

    let step = || format!("preparing the root {}", plan.scratch.display());
    let (root, has_base) = ground(plan).or_refuse(machine, step)?;
    mounting::attach_at(&root, plan.scratch).or_refuse(machine, step)?;
    let inside = Inside::new(root);
    for part in plan.begins_with.iter().filter(|part| !has_base || is_mount(part)) {
        apply(&inside, part, plan.manner)?;
    }
    let proc = system::proc(&inside)?;
    let dev = system::dev(&inside, plan.shm, plan.devices)?;
    for mount in plan.mounts {
        match mount {
            Mount::MemoryFile { target, content, mode } => {
                let place = mount_point(&inside, target, false)?;
                let step = || format!("writing {}", target.display());
                dev.file(place, content, *mode).or_refuse(RefusalKind::Mount, step)?;
            }
            // These two are always the holder's.
            _ if SYSTEM.iter().any(|system| mount.target() == Path::new(system)) => {}
            _ => apply(&inside, mount, plan.manner)?,
        }
    }
    for (path, own) in [("/proc", &proc), ("/dev", &dev.memory)] {
        uncovered(&inside, path, own)?;
    }
    inside
        .folder(plan.cwd, FOLDER)
        .or_refuse(machine, || format!("making the working directory {}", plan.cwd.display()))?;
    if plan.read_only {
        sys::add_mount_attributes(inside.root(), READ_ONLY, false).or_refuse(machine, step)?;
    }
    pivot(&inside).or_refuse(machine, || "entering the root".to_owned())?;
    Ok(dev.terminals)
}

/// Refuses a root in which something lies over what the holder itself relies on: the path of a mount may
/// lead there by a link in a volume.
fn uncovered(inside: &Inside, path: &str, own: &OwnedFd) -> Result<(), Refusal> {
    let step = || format!("looking for {path} in the root");
    let identity =
        |place: &OwnedFd| rustix::fs::fstat(place).map(|status| (status.st_dev, status.st_ino));
    let found = inside.open(Path::new(path)).or_refuse(RefusalKind::Mount, step)?;
    let is_own = identity(&found).or_refuse(RefusalKind::Mount, step)?
        == identity(own).or_refuse(RefusalKind::Mount, step)?;
    if is_own { Ok(()) } else { Err(refusal(RefusalKind::Mount, step(), "a mount lies over it")) }
}

/// Moves this process, alone in its mount namespace, into an empty root.
pub(crate) fn leave_host() -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let empty = mounting::memory(Some(4096), 0o555, NO_SUID | NO_DEVICES | READ_ONLY)?;
    // A folder that every machine has.
    mounting::attach_at(&empty, Path::new("/proc"))?;
    pivot(&Inside::new(empty))
}

/// The lowest mount of a root, and whether what it begins with is there already.
fn ground(plan: &Plan<'_>) -> io::Result<(OwnedFd, bool)> {
    if let Some(base) = plan.base
        && let Some(root) = layered(base, plan)?
    {
        return Ok((root, true));
    }
    Ok((mounting::view(plan.scratch)?, false))
}

/// A base with what is written kept in the scratch folder; none where that cannot be used so.
fn layered(base: &Path, plan: &Plan<'_>) -> io::Result<Option<OwnedFd>> {
    if plan.manner.overlay == Overlay::None {
        return Ok(None);
    }
    let layers = Layers::in_folder(plan.scratch)?;
    Top::of(plan.scratch)?.give_to(&layers.upper)?;
    match mounting::overlay(base, &layers, plan.manner.overlay) {
        Ok(root) => Ok(Some(root)),
        // Some file systems cannot be the upper one.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            layers.remove()?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_mount(part: &Mount) -> bool {
    matches!(
        part,
        Mount::Bind { .. } | Mount::Volume { .. } | Mount::Overlay { .. } | Mount::Tmpfs { .. }
    )
}

/// The old root is put over the new one, and taken away from there.
fn pivot(inside: &Inside) -> io::Result<()> {
    fchdir(inside.root())?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

fn apply(inside: &Inside, mount: &Mount, manner: Manner) -> Result<(), Refusal> {
    match mount {
        Mount::Bind { source, target, read_only } => {
            bind(inside, source, target, *read_only, manner.no_suid)
        }
        Mount::Volume { name, place, part, target, read_only } => {
            let step = || format!("mounting the volume {name:?} at {}", target.display());
            let found = beneath::real(place).or_refuse(RefusalKind::Mount, step)?;
            let found =
                if part.as_os_str().is_empty() { found } else { part_of(name, found, part)? };
            let view = mounting::view_of(found).or_refuse(RefusalKind::Mount, step)?;
            attach_view(inside, view, target, rights(place, *read_only, manner.no_suid), step)
        }
        Mount::Overlay { lower, target, changes } => {
            overlay(inside, lower, target, changes, manner)
        }
        Mount::Tmpfs { target, size, mode } => {
            let kind = RefusalKind::Mount;
            let step = || format!("mounting memory at {}", target.display());
            let (place, _) = inside.folder(target, FOLDER).or_refuse(kind, step)?;
            let memory =
                mounting::memory(*size, *mode, NO_SUID | NO_DEVICES).or_refuse(kind, step)?;
            mounting::attach(memory, place).or_refuse(kind, step)
        }
        _ => place(inside, mount),
    }
}

/// Makes what is no mount.
fn place(inside: &Inside, part: &Mount) -> Result<(), Refusal> {
    let kind = RefusalKind::Mount;
    match part {
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
        Mount::File { target, content, mode } => file(inside, target, content.as_bytes(), *mode)
            .or_refuse(kind, || format!("writing {}", target.display())),
        Mount::Copy { source, target, .. } => {
            let step = || format!("copying {} to {}", source.display(), target.display());
            copy(inside, source, target).or_refuse(kind, step)
        }
        Mount::MemoryFile { target, .. } => Err(refusal(
            RefusalKind::BadRequest,
            format!("writing {}", target.display()),
            "a file in memory is no part of what roots begin with",
        )),
        Mount::Bind { .. } | Mount::Volume { .. } | Mount::Overlay { .. } | Mount::Tmpfs { .. } => {
            Ok(())
        }
    }
}

/// A part of a volume, made where it is missing. Why it cannot be had is not told to the pod: it could
/// learn about this machine by it.
fn part_of(name: &str, volume: OwnedFd, part: &Path) -> Result<OwnedFd, Refusal> {
    beneath::open_or_make(volume, part).map_err(|_| {
        let step = format!("failed to prepare subPath for volumeMount {name:?}");
        refusal(RefusalKind::Part, step, "it is not inside the volume, or cannot be made there")
    })
}

/// Where something can be mounted; made as what will be there is.
fn mount_point(inside: &Inside, target: &Path, is_folder: bool) -> Result<OwnedFd, Refusal> {
    let place = if is_folder {
        inside.folder(target, FOLDER).map(|(folder, _)| folder)
    } else {
        inside.file(target)
    };
    place.or_refuse(RefusalKind::Mount, || format!("making the mount point {}", target.display()))
}

fn bind(
    inside: &Inside,
    source: &Path,
    target: &Path,
    read_only: bool,
    no_suid: bool,
) -> Result<(), Refusal> {
    let step = || format!("mounting {} at {}", source.display(), target.display());
    let view = mounting::view(source).or_refuse(RefusalKind::Mount, step)?;
    attach_view(inside, view, target, rights(source, read_only, no_suid), step)
}

/// The attributes of a view of a file or folder of the host.
fn rights(source: &Path, read_only: bool, no_suid: bool) -> MountAttrFlags {
    let mut attributes = if no_suid { NO_SUID } else { MountAttrFlags::empty() };
    if read_only {
        attributes |= READ_ONLY;
    }
    // Devices are given by name, or by one who mounts the host's folder of them.
    if !source.starts_with("/dev") {
        attributes |= NO_DEVICES;
    }
    attributes
}

fn attach_view(
    inside: &Inside,
    view: OwnedFd,
    target: &Path,
    attributes: MountAttrFlags,
    step: impl Fn() -> String,
) -> Result<(), Refusal> {
    let kind = RefusalKind::Mount;
    let status = rustix::fs::fstat(&view).or_refuse(kind, &step)?;
    let is_folder = FileType::from_raw_mode(status.st_mode).is_dir();
    let place = mount_point(inside, target, is_folder)?;
    sys::add_mount_attributes(&view, attributes, true).or_refuse(kind, &step)?;
    mounting::attach(view, place).or_refuse(kind, step)
}

fn overlay(
    inside: &Inside,
    lower: &Path,
    target: &Path,
    changes: &Path,
    manner: Manner,
) -> Result<(), Refusal> {
    let kind = RefusalKind::Mount;
    if manner.overlay == Overlay::None {
        return bind(inside, lower, target, true, manner.no_suid);
    }
    let step = || format!("mounting {} at {}", lower.display(), target.display());
    let layers = Layers::in_folder(changes)
        .or_refuse(kind, || format!("making a folder in {}", changes.display()))?;
    // The topmost folder has the mode that the lower one has, so that it looks like it.
    if let Ok(status) = std::fs::metadata(lower) {
        std::fs::set_permissions(&layers.upper, status.permissions()).or_refuse(kind, step)?;
    }
    match mounting::overlay(lower, &layers, manner.overlay) {
        Ok(mount) => {
            let place = mount_point(inside, target, true)?;
            mounting::attach(mount, place).or_refuse(kind, step)
        }
        // Some file systems cannot be the lower or upper one.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            bind(inside, lower, target, true, manner.no_suid)
        }
        Err(error) => Err(refusal(kind, step(), crate::refuse::words(&error))),
    }
}

fn copy(inside: &Inside, source: &Path, target: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(source)?.mode() & 0o777;
    file(inside, target, &std::fs::read(source)?, mode)
}

fn file(inside: &Inside, target: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let (parent, name) = inside.parent(target)?;
    // A pipe in its place would never be opened by anybody else.
    let flags = OFlags::CREATE
        | OFlags::TRUNC
        | OFlags::WRONLY
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let file = rustix::fs::openat(&parent, name, flags, mode)?;
    std::fs::File::from(file).write_all(content)
}

/// Which overlays can be mounted here, tried with folders in memory.
pub(crate) fn overlays(rootless: bool) -> Overlay {
    let wanted = if rootless { Overlay::Rootless } else { Overlay::Full };
    let attempt = || -> io::Result<()> {
        // The folders must be reachable by path: they stand, for a moment, over one that is
        // there nearly always and that a holder does not use.
        let place = if Path::new("/mnt").is_dir() { Path::new("/mnt") } else { Path::new("/tmp") };
        let memory = mounting::memory(None, 0o755, NO_DEVICES)?;
        mounting::attach_at(&memory, place)?;
        let tried = (|| {
            std::fs::create_dir(place.join("lower"))?;
            let layers = Layers::in_folder(place)?;
            mounting::overlay(&place.join("lower"), &layers, wanted).map(drop)
        })();
        unmount(place, UnmountFlags::DETACH)?;
        tried
    };
    if attempt().is_ok() { wanted } else { Overlay::None }
}

/// A `/proc` of the current PID namespace that is mounted nowhere.
pub(crate) fn detached_proc() -> io::Result<OwnedFd> {
    mounting::file_system("proc", &[], NO_SUID | NO_DEVICES | mounting::NO_PROGRAMS)
}

/// Mounts memory on a folder of the current root.
pub(crate) fn mount_memory(folder: &Path, size: Option<u64>, mode: u32) -> io::Result<()> {
    mounting::attach_at(mounting::memory(size, mode, NO_SUID | NO_DEVICES)?.as_fd(), folder)
}

/// Takes away what is mounted on a folder.
pub(crate) fn unmount_memory(folder: &Path) -> io::Result<()> {
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
pub(crate) fn follow_host_mounts() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}
