//! Limits and accounts of pods and containers: their folders in the cgroup hierarchies, version 1 or
//! 2.
//!
//! Owns every file name of cgroups. Must not know namespaces or processes.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::protocol::{Cgroups, Limits};

mod find;

pub(crate) use find::find;

/// The two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Where a group lies in each hierarchy; in version 2 they are all the same folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folders {
    memory: PathBuf,
    cpu: PathBuf,
    accounting: PathBuf,
    pids: PathBuf,
}

impl Folders {
    fn join(&self, name: &str) -> Self {
        Self {
            memory: self.memory.join(name),
            cpu: self.cpu.join(name),
            accounting: self.accounting.join(name),
            pids: self.pids.join(name),
        }
    }

    /// Each once.
    fn distinct(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = vec![&self.memory, &self.cpu, &self.accounting, &self.pids];
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    version: Version,
    folders: Folders,
}

/// Ways into a group.
#[derive(Debug, Default)]
pub(crate) struct Entrances {
    /// They take whoever writes `0` to them into the group.
    pub(crate) files: Vec<OwnedFd>,
    /// A child can be forked into the group of this folder.
    pub(crate) folder: Option<OwnedFd>,
}

impl Entrances {
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        self.files.iter().chain(&self.folder)
    }
}

/// What a group uses now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cpu_usec: u64,
    pub(crate) memory: u64,
    pub(crate) pids: u64,
}

/// The longest share of time is handed out anew this often.
const PERIOD_USEC: u64 = 100_000;

impl Group {
    pub(crate) fn kind(&self) -> Cgroups {
        match self.version {
            Version::One => Cgroups::V1,
            Version::Two => Cgroups::V2,
        }
    }

    /// Makes a group in this one. `leaf`: it will have processes, and no groups of its own.
    pub(crate) fn child(&self, name: &str, limits: &Limits, leaf: bool) -> io::Result<Self> {
        let child = Self { version: self.version, folders: self.folders.join(name) };
        let made = (|| {
            for folder in child.folders.distinct() {
                made(folder)?;
            }
            if child.version == Version::Two && !leaf {
                child.enable()?;
            }
            child.limit(limits, leaf)
        })();
        if let Err(error) = made {
            child.remove();
            return Err(error);
        }
        Ok(child)
    }

    /// Version 2: groups below get the controllers.
    fn enable(&self) -> io::Result<()> {
        fs::write(self.folders.memory.join("cgroup.subtree_control"), "+memory +cpu +pids")
    }

    fn limit(&self, limits: &Limits, leaf: bool) -> io::Result<()> {
        let Folders { memory, cpu, pids, .. } = &self.folders;
        let set = |folder: &Path, file: &str, value: String| {
            let path = folder.join(file);
            fs::write(&path, &value).map_err(|error| {
                let words = crate::refuse::words(&error);
                io::Error::new(error.kind(), format!("{} = {value}: {words}", path.display()))
            })
        };
        if let Some(bytes) = limits.memory {
            let files = match self.version {
                Version::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
                Version::Two => ("memory.max", "memory.swap.max", 0),
            };
            set(memory, files.0, bytes.to_string())?;
            // Not there when the kernel does not count swap.
            drop(fs::write(memory.join(files.1), files.2.to_string()));
        }
        if self.version == Version::Two && leaf {
            // All of a container goes, as a kubelet has it; older kernels do not know.
            drop(fs::write(memory.join("memory.oom.group"), "1"));
        }
        if let Some(millis) = limits.cpu_millis {
            let quota = (millis * (PERIOD_USEC / 1000)).max(1000);
            match self.version {
                Version::One => {
                    set(cpu, "cpu.cfs_period_us", PERIOD_USEC.to_string())?;
                    set(cpu, "cpu.cfs_quota_us", quota.to_string())?;
                }
                Version::Two => set(cpu, "cpu.max", format!("{quota} {PERIOD_USEC}"))?,
            }
        }
        if let Some(millis) = limits.cpu_request_millis {
            let shares = (millis * 1024 / 1000).clamp(2, 262_144);
            match self.version {
                Version::One => set(cpu, "cpu.shares", shares.to_string())?,
                Version::Two => {
                    let weight = 1 + (shares - 2) * 9999 / 262_142;
                    set(cpu, "cpu.weight", weight.to_string())?;
                }
            }
        }
        if let Some(most) = limits.pids {
            set(pids, "pids.max", most.to_string())?;
        }
        Ok(())
    }

    /// The ways into it.
    pub(crate) fn entrances(&self) -> io::Result<Entrances> {
        let open = |folder: &Path| {
            // Moving one thread, oneself, is a hundred times quicker than moving a process, for
            // which the kernel stops all forks. Version 2 has no such way, but another one.
            let file = match self.version {
                Version::One => "tasks",
                Version::Two => "cgroup.procs",
            };
            let file = fs::OpenOptions::new().write(true).open(folder.join(file))?;
            Ok(OwnedFd::from(file))
        };
        let files = self.folders.distinct().into_iter().map(open).collect::<io::Result<_>>()?;
        let folder = match self.version {
            Version::One => None,
            Version::Two => Some(OwnedFd::from(fs::File::open(&self.folders.memory)?)),
        };
        Ok(Entrances { files, folder })
    }

    /// What it uses; none where it cannot be read.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let Folders { memory, pids, .. } = &self.folders;
        let cpu_usec = self.cpu_usec()?;
        let (now, cache) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::Two => ("memory.current", "inactive_file"),
        };
        let cache = field(&memory.join("memory.stat"), cache).unwrap_or(0);
        Some(Usage {
            cpu_usec,
            memory: number(&memory.join(now))?.saturating_sub(cache),
            pids: number(&pids.join("pids.current"))?,
        })
    }

    /// Processor time since it was made.
    pub(crate) fn cpu_usec(&self) -> Option<u64> {
        match self.version {
            Version::One => {
                number(&self.folders.accounting.join("cpuacct.usage")).map(|nanos| nanos / 1000)
            }
            Version::Two => field(&self.folders.cpu.join("cpu.stat"), "usage_usec"),
        }
    }

    /// The most memory it ever held, pages of files included.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        number(&self.folders.memory.join(match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        }))
    }

    /// How many of its processes the kernel killed for want of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        field(&self.folders.memory.join(file), "oom_kill").unwrap_or(0)
    }

    /// Kills whoever is left in it; they are gone a moment later.
    pub(crate) fn kill(&self) {
        for folder in self.folders.distinct() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for pid in text.lines().filter_map(|line| line.parse().ok()).filter(|&pid| pid > 0) {
                drop(crate::sys::kill(pid, libc::SIGKILL));
            }
        }
    }

    /// Removes it and all groups in it. False: something is still in it; to be tried again.
    pub(crate) fn remove(&self) -> bool {
        let removed: Vec<bool> = self.folders.distinct().into_iter().map(removed).collect();
        removed.into_iter().all(|removed| removed)
    }
}

fn made(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let words = crate::refuse::words(&error);
            Err(io::Error::new(error.kind(), format!("{}: {words}", folder.display())))
        }
        _ => Ok(()),
    }
}

fn removed(folder: &Path) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            removed(&entry.path());
        }
    }
    match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after a key in a file of lines `key number`.
fn field(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(version: Version, base: &Path) -> Group {
        let folders = match version {
            Version::One => Folders {
                memory: base.join("memory"),
                cpu: base.join("cpu"),
                accounting: base.join("cpu"),
                pids: base.join("pids"),
            },
            Version::Two => Folders {
                memory: base.to_owned(),
                cpu: base.to_owned(),
                accounting: base.to_owned(),
                pids: base.to_owned(),
            },
        };
        for folder in folders.distinct() {
            fs::create_dir_all(folder).unwrap();
        }
        Group { version, folders }
    }

    const LIMITS: Limits = Limits {
        memory: Some(1 << 20),
        cpu_millis: Some(1500),
        cpu_request_millis: Some(500),
        pids: Some(9),
    };

    #[test]
    fn limits_are_written_as_each_version_reads_them() {
        let base = tempfile::tempdir().unwrap();
        let two = group(Version::Two, base.path()).child("a", &LIMITS, true).unwrap();
        let read = |group: &Group, file: &str| {
            fs::read_to_string(group.folders.memory.join(file)).unwrap()
        };
        assert_eq!(read(&two, "memory.max"), "1048576");
        assert_eq!(read(&two, "memory.swap.max"), "0");
        assert_eq!(read(&two, "cpu.max"), "150000 100000");
        assert_eq!(read(&two, "cpu.weight"), "20");
        assert_eq!(read(&two, "pids.max"), "9");
        let base = tempfile::tempdir().unwrap();
        let one = group(Version::One, base.path()).child("a", &LIMITS, true).unwrap();
        assert_eq!(read(&one, "memory.limit_in_bytes"), "1048576");
        assert_eq!(fs::read_to_string(base.path().join("cpu/a/cpu.shares")).unwrap(), "512");
        assert_eq!(
            fs::read_to_string(base.path().join("cpu/a/cpu.cfs_quota_us")).unwrap(),
            "150000"
        );
        assert_eq!(one.folders.distinct().len(), 3);
    }

    #[test]
    fn accounts_are_read_from_each_version() {
        let base = tempfile::tempdir().unwrap();
        let two = group(Version::Two, base.path());
        assert_eq!((two.usage(), two.oom_kills()), (None, 0));
        for (file, text) in [
            ("cpu.stat", "usage_usec 77\nuser_usec 50\n"),
            ("memory.current", "5000\n"),
            ("memory.stat", "anon 1\ninactive_file 1000\n"),
            ("pids.current", "3\n"),
            ("memory.events", "oom 2\noom_kill 1\n"),
            ("memory.peak", "6000\n"),
        ] {
            fs::write(base.path().join(file), text).unwrap();
        }
        assert_eq!(two.usage(), Some(Usage { cpu_usec: 77, memory: 4000, pids: 3 }));
        assert_eq!((two.oom_kills(), two.peak_memory()), (1, Some(6000)));
    }

    /// A real hierarchy of version 2, though without limits, if root has one here.
    #[test]
    fn a_child_is_forked_into_its_group() {
        let base = Path::new("/sys/fs/cgroup/unified");
        let base = if base.exists() { base } else { Path::new("/sys/fs/cgroup") };
        let folder = base.join(format!("trainyard-test-{}", std::process::id()));
        if !rustix::process::geteuid().is_root() || !base.join("cgroup.procs").exists() {
            return;
        }
        if fs::create_dir(&folder).is_err() {
            return;
        }
        let (reader, writer) = std::io::pipe().unwrap();
        let group = fs::File::open(&folder).unwrap();
        // The tests have threads: the child only reads and ends.
        let pid = crate::sys::fork_into_group(&group, || {
            let mut byte = [0];
            rustix::io::read(&reader, &mut byte).map_or(1, |_| 7)
        })
        .unwrap();
        let place = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
        rustix::io::write(&writer, b"x").unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let options = rustix::process::WaitOptions::empty();
        let (_, status) = rustix::process::waitpid(Some(pid), options).unwrap().unwrap();
        fs::remove_dir(&folder).unwrap();
        let own = format!("0::/{}", folder.file_name().unwrap().to_str().unwrap());
        assert!(place.lines().any(|line| line == own), "{place}");
        assert_eq!(status.exit_status(), Some(7));
    }
}
