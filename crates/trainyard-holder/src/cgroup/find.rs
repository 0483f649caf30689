//! Which cgroups can be used here, and why not more.
//!
//! Version 1 by root, at an absolute path of each hierarchy; version 2 in a subtree that is ours.
//! Runs before any namespace is entered, so that processes have the numbers the hierarchies show.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Folders, Group, Version, made};
use crate::protocol::Limits;
use crate::refuse::words;

const NEEDED: [&str; 3] = ["memory", "cpu", "pids"];
const OURS: &str = "trainyard";

/// Finds or makes this yard's own group, in which those of the pods will lie, with limits for all of them
/// together. What an earlier yard of the same name left is removed.
pub(crate) fn find(yard: &str, limits: &Limits) -> Result<Group, String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("reading the mounts: {}", words(&error)))?;
    if let Some(folders) = version_one(&mounts) {
        return own(Version::One, &folders, yard, limits);
    }
    let Some(mount) = version_two(&mounts) else {
        return Err("no cgroup hierarchy with memory, cpu and pids is mounted".to_owned());
    };
    let place = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut tried = Vec::new();
    for base in bases(&mount, &place) {
        let all = Folders {
            memory: base.clone(),
            cpu: base.clone(),
            accounting: base.clone(),
            pids: base.clone(),
        };
        match delegate(&base).and_then(|()| own(Version::Two, &all, yard, limits)) {
            Ok(group) => return Ok(group),
            Err(reason) => tried.push(reason),
        }
    }
    Err(tried.join("; "))
}

fn own(version: Version, base: &Folders, yard: &str, limits: &Limits) -> Result<Group, String> {
    let attempt = || -> io::Result<Group> {
        let ours = Group { version, folders: base.join(OURS) };
        let group = Group { version, folders: ours.folders.join(yard) };
        // Not only what is in it: limits of its own may be in the way of new ones.
        group.remove();
        for one in [&ours, &group] {
            for folder in one.folders.distinct() {
                made(folder)?;
                // Counts what lies below, on kernels where that is not always so.
                drop(fs::write(folder.join("memory.use_hierarchy"), "1"));
            }
            if version == Version::Two {
                one.enable()?;
            }
        }
        group.limit(limits, false)?;
        // A hierarchy may be mounted so that folders can be made but nothing be set.
        group.entrances().map(|_| group)
    };
    let mut found = attempt();
    for _ in 0..20 {
        match &found {
            // A yard that ends now took away the folder of all yards just after it was found.
            Err(error) if error.kind() == io::ErrorKind::NotFound => found = attempt(),
            _ => break,
        }
    }
    found.map_err(|error| {
        Group { version, folders: base.join(OURS).join(yard) }.remove_yard();
        let reason = words(&error);
        match version {
            Version::One if !rustix::process::geteuid().is_root() => {
                format!("version 1 hierarchies can be used by root only ({reason})")
            }
            _ => reason,
        }
    })
}

impl Group {
    /// Removes this yard's group, and the folder of all yards when it was the last.
    pub(crate) fn remove_yard(&self) -> bool {
        let removed = self.remove();
        for folder in self.folders.distinct() {
            if let Some(ours) = folder.parent() {
                // Another yard may live in it.
                drop(fs::remove_dir(ours));
            }
        }
        removed
    }
}

/// Mount point, type and options of the file system of each mount.
fn parsed(mounts: &str) -> impl Iterator<Item = (PathBuf, &str, &str)> {
    mounts.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        let mut right = right.split(' ');
        let kind = right.next()?;
        Some((PathBuf::from(point), kind, right.nth(1)?))
    })
}

/// The hierarchies of version 1, when all that are needed are there.
fn version_one(mounts: &str) -> Option<Folders> {
    let of = |controller: &str| {
        let mut found = parsed(mounts).filter(|(_, kind, options)| {
            *kind == "cgroup" && options.split(',').any(|option| option == controller)
        });
        found.next().map(|(point, _, _)| point)
    };
    Some(Folders {
        memory: of("memory")?,
        cpu: of("cpu")?,
        accounting: of("cpuacct")?,
        pids: of("pids")?,
    })
}

fn version_two(mounts: &str) -> Option<PathBuf> {
    parsed(mounts).find(|(_, kind, _)| *kind == "cgroup2").map(|(point, _, _)| point)
}

/// Where a subtree may be ours: root takes the top; everybody the group they are in.
fn bases(mount: &Path, place: &str) -> Vec<PathBuf> {
    let own = place
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .map(|path| mount.join(path.trim_start_matches('/')));
    let top = rustix::process::geteuid().is_root().then(|| mount.to_owned());
    let mut bases: Vec<_> = top.into_iter().chain(own).collect();
    bases.dedup();
    bases
}

/// Lets groups be made in `base` that have the controllers.
fn delegate(base: &Path) -> Result<(), String> {
    let at = base.display();
    let read = |file: &str| fs::read_to_string(base.join(file)).unwrap_or_default();
    let has = |text: &str, name: &str| text.split_ascii_whitespace().any(|word| word == name);
    let controllers = read("cgroup.controllers");
    let missing: Vec<_> = NEEDED.into_iter().filter(|name| !has(&controllers, name)).collect();
    if !missing.is_empty() {
        return Err(format!("{at} has no controller {}", missing.join(", ")));
    }
    let control = base.join("cgroup.subtree_control");
    if NEEDED.iter().all(|name| has(&read("cgroup.subtree_control"), name)) {
        return Ok(());
    }
    let enable = || fs::write(&control, "+memory +cpu +pids");
    let error = match enable() {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let advice = "start it by `systemd-run --user --scope -p Delegate=yes`";
    if error.raw_os_error() != Some(libc::EBUSY) {
        return Err(format!("{at} is not ours to divide ({}): {advice}", words(&error)));
    }
    // A group with groups below must have no processes of its own; ours can make room.
    let ours = [
        std::process::id(),
        rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs()),
    ];
    let inside: Vec<u32> = read("cgroup.procs").lines().filter_map(|l| l.parse().ok()).collect();
    if inside.iter().any(|pid| !ours.contains(pid)) {
        return Err(format!("{at} holds other processes: {advice}"));
    }
    let leaf = base.join("trainyard-agent");
    let moved = made(&leaf).and_then(|()| {
        inside.iter().try_for_each(|pid| fs::write(leaf.join("cgroup.procs"), pid.to_string()))
    });
    moved.and_then(|()| enable()).map_err(|error| format!("dividing {at}: {}", words(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 20 0:22 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
26 25 0:23 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw
27 25 0:24 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct
28 25 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
29 25 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
";

    #[test]
    fn hierarchies_are_found_among_the_mounts() {
        let one = version_one(HYBRID).unwrap();
        assert_eq!(one.accounting, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
        assert_eq!(one.memory, Path::new("/sys/fs/cgroup/memory"));
        let without: String =
            HYBRID.lines().filter(|line| !line.contains("memory")).collect::<Vec<_>>().join("\n");
        assert_eq!(version_one(&without), None);
        assert_eq!(version_two(&without).unwrap(), Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(version_two("nonsense"), None);
    }

    #[test]
    fn a_subtree_without_the_controllers_says_so() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("cgroup.controllers"), "cpuset memory\n").unwrap();
        assert!(delegate(base.path()).unwrap_err().contains("no controller cpu, pids"));
        fs::write(base.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        delegate(base.path()).unwrap();
        let written = fs::read_to_string(base.path().join("cgroup.subtree_control")).unwrap();
        assert_eq!(written, "+memory +cpu +pids");
    }

    #[test]
    fn ones_own_group_is_below_the_mount() {
        let bases = bases(Path::new("/sys/fs/cgroup"), "1:name=x:/a\n0::/user.slice/b.scope\n");
        assert_eq!(bases.last().unwrap(), Path::new("/sys/fs/cgroup/user.slice/b.scope"));
    }
}
