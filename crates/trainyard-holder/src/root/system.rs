//! The parts of a root that the kernel makes: `/proc` without what reaches the host, and a `/dev`
//! with the harmless devices and those that were given.
//!
//! Must not know volumes.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};

use super::inside::Inside;
use super::mounting::{
    self, NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY, Setting, attach, file_system, memory, view,
};
use crate::protocol::{Refusal, RefusalKind};
use crate::refuse::OrRefuse;
use crate::sys;

/// Files of `/proc` that tell of, or reach, the whole machine: empty inside.
const HIDDEN_FILES: [&str; 5] = ["kcore", "keys", "latency_stats", "timer_list", "sched_debug"];
/// Folders likewise.
const HIDDEN_FOLDERS: [&str; 2] = ["acpi", "scsi"];
/// What can be seen but not set.
const READ_ONLY_PARTS: [&str; 6] = ["asound", "bus", "fs", "irq", "sys", "sysrq-trigger"];

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// What can be written to `/dev`, and what files in memory may hold together.
const DEV_BYTES: u64 = 4 << 20;

const FOLDER: Mode = Mode::from_raw_mode(0o755);

/// Mounts `/proc` of the current PID namespace.
pub(super) fn proc(inside: &Inside) -> Result<OwnedFd, Refusal> {
    let step = || "mounting /proc".to_owned();
    let attributes = NO_SUID | NO_DEVICES | NO_PROGRAMS;
    let (place, _) =
        inside.folder(Path::new("/proc"), FOLDER).or_refuse(RefusalKind::Mount, step)?;
    let proc = file_system("proc", &[], attributes).or_refuse(RefusalKind::Mount, step)?;
    attach(&proc, place).or_refuse(RefusalKind::Mount, step)?;
    cover_proc(inside)
        .or_refuse(RefusalKind::Mount, || "covering what /proc tells of the host".to_owned())?;
    Ok(proc)
}

fn cover_proc(inside: &Inside) -> io::Result<()> {
    let there = |name: &str| match inside.open(&Path::new("/proc").join(name)) {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    for name in HIDDEN_FILES {
        if let Some(place) = there(name)? {
            attach(view(Path::new("/dev/null"))?, place)?;
        }
    }
    let mut empty: Option<OwnedFd> = None;
    for name in HIDDEN_FOLDERS {
        if let Some(place) = there(name)? {
            let cover = match &empty {
                Some(empty) => mounting::view_of(empty)?,
                None => memory(Some(4096), 0o555, NO_SUID | NO_DEVICES | READ_ONLY)?,
            };
            attach(&cover, place)?;
            empty = Some(cover);
        }
    }
    for name in READ_ONLY_PARTS {
        if let Some(place) = there(name)? {
            let part = mounting::view_of(&place)?;
            sys::add_mount_attributes(&part, READ_ONLY, true)?;
            attach(part, place)?;
        }
    }
    Ok(())
}

/// The file systems that `/dev` consists of.
pub(super) struct Dev {
    pub(super) memory: OwnedFd,
    pub(super) terminals: OwnedFd,
}

impl Dev {
    /// Mounts a file that is there and nowhere else.
    pub(super) fn file(&self, place: OwnedFd, content: &str, mode: u32) -> io::Result<()> {
        const NAME: &str = ".file";
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&self.memory, NAME, flags, Mode::from_raw_mode(mode & 0o7777))?;
        std::fs::File::from(file).write_all(content.as_bytes())?;
        let file = openat(&self.memory, NAME, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let view = mounting::view_of(file)?;
        sys::add_mount_attributes(&view, NO_SUID | NO_DEVICES, false)?;
        attach(view, place)?;
        // The mount keeps it.
        Ok(unlinkat(&self.memory, NAME, AtFlags::empty())?)
    }
}

/// Makes `/dev`.
pub(super) fn dev(inside: &Inside, shm: &Path, devices: &[PathBuf]) -> Result<Dev, Refusal> {
    let dev = make_dev(inside, shm).or_refuse(RefusalKind::Mount, || "making /dev".to_owned())?;
    for device in devices {
        let step = || format!("giving the device {}", device.display());
        let given = view(device).and_then(|view| {
            let target = Path::new("/").join(device);
            attach(view, inside.file(&target)?)
        });
        given.or_refuse(RefusalKind::Mount, step)?;
    }
    Ok(dev)
}

fn make_dev(inside: &Inside, shm: &Path) -> io::Result<Dev> {
    let (place, _) = inside.folder(Path::new("/dev"), FOLDER)?;
    let dev = memory(Some(DEV_BYTES), 0o755, NO_SUID)?;
    attach(&dev, place)?;
    for name in DEVICES {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&dev, name, flags, Mode::from_raw_mode(0o666))?;
        let place = openat(&dev, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        attach(view(&Path::new("/dev").join(name))?, place)?;
    }
    for (name, to) in LINKS {
        symlinkat(to, &dev, name)?;
    }
    let folder = |name: &str| -> io::Result<_> {
        mkdirat(&dev, name, FOLDER)?;
        Ok(openat(&dev, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
    };
    let place = folder("shm")?;
    attach(view(shm)?, place)?;
    let terminals = terminals()?;
    attach(&terminals, folder("pts")?)?;
    Ok(Dev { memory: dev, terminals })
}

/// A set of terminals of the container's own.
fn terminals() -> io::Result<OwnedFd> {
    let attributes = NO_SUID | NO_PROGRAMS;
    let settings = |group: bool| {
        let mut settings = vec![
            Setting::Text("ptmxmode", "0666".to_owned()),
            Setting::Text("mode", "0620".to_owned()),
        ];
        // The group `tty`.
        settings.extend(group.then(|| Setting::Text("gid", "5".to_owned())));
        settings
    };
    // In a user namespace that group is not there to be given.
    file_system("devpts", &settings(true), attributes)
        .or_else(|_| file_system("devpts", &settings(false), attributes))
}
