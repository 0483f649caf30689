//! What this machine is and has: processors, memory and disk that this process may use, and the names
//! a Node shows. Read once at the start; must not know how it is shared.

use std::fs;
use std::path::Path;

use super::cgroup;
use super::error::NodeError;

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Thousandths of a core that this process may use.
    pub(crate) cpu_millis: u64,
    /// Bytes of memory that it may use.
    pub(crate) memory: u64,
    /// Processes and threads that it can have in all.
    pub(crate) pids: u64,
    /// Bytes of the file system that holds the state folder.
    pub(crate) disk: u64,
    /// The operating system's name for this machine.
    pub(crate) id: String,
    pub(crate) system_uuid: String,
    pub(crate) boot_id: String,
    pub(crate) kernel: String,
    pub(crate) os_image: String,
    /// As Kubernetes names it: `amd64`, `arm64`.
    pub(crate) architecture: &'static str,
}

impl Machine {
    /// Reads the machine below `root`, which is `/` except in tests; `state` is the state folder.
    pub(crate) fn read(root: &Path, state: &Path) -> Result<Self, NodeError> {
        let bounds = cgroup::bounds(root);
        let cpu_millis = processors(root)?.saturating_mul(1000);
        let memory = memory_line(root, "MemTotal:")?;
        let id = word(root, "etc/machine-id");
        let system_uuid = Some(word(root, "sys/class/dmi/id/product_uuid"))
            .filter(|uuid| !uuid.is_empty())
            .unwrap_or_else(|| id.clone());
        Ok(Self {
            cpu_millis: bounds.cpu_millis.map_or(cpu_millis, |bound| bound.min(cpu_millis)),
            memory: bounds.memory.map_or(memory, |bound| bound.min(memory)),
            pids: pids(root),
            disk: disk(state)?.total,
            id,
            system_uuid,
            boot_id: word(root, "proc/sys/kernel/random/boot_id"),
            kernel: word(root, "proc/sys/kernel/osrelease"),
            os_image: os_image(root),
            architecture: architecture(std::env::consts::ARCH),
        })
    }
}

/// A file system's size and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Disk {
    pub(super) total: u64,
    pub(super) free: u64,
    pub(super) files: u64,
    pub(super) files_free: u64,
}

pub(super) fn disk(state: &Path) -> Result<Disk, NodeError> {
    let found = rustix::fs::statvfs(state).map_err(|error| NodeError::Machine {
        what: "the size of the disk",
        path: state.to_path_buf(),
        reason: error.to_string(),
    })?;
    Ok(Disk {
        total: found.f_blocks.saturating_mul(found.f_frsize),
        free: found.f_bavail.saturating_mul(found.f_frsize),
        files: found.f_files,
        files_free: found.f_favail,
    })
}

/// Bytes named by a line of `/proc/meminfo`.
pub(super) fn memory_line(root: &Path, label: &str) -> Result<u64, NodeError> {
    let path = root.join("proc/meminfo");
    let trouble = |reason: String| NodeError::Machine {
        what: "the size of the memory",
        path: path.clone(),
        reason,
    };
    let text = fs::read_to_string(&path).map_err(|error| trouble(error.to_string()))?;
    text.lines()
        .find_map(|line| line.strip_prefix(label)?.trim().strip_suffix("kB")?.trim().parse().ok())
        .map(|kib: u64| kib.saturating_mul(1024))
        .ok_or_else(|| trouble(format!("it has no line `{label} … kB`")))
}

/// Numbers for processes, or memory for threads, whichever end sooner. What cannot be read is what the
/// kernel begins with on small machines.
fn pids(root: &Path) -> u64 {
    let setting = |name: &str| word(root, &format!("proc/sys/kernel/{name}")).parse::<u64>().ok();
    let bounds = [setting("pid_max"), setting("threads-max")];
    bounds.into_iter().flatten().min().unwrap_or(32_768)
}

/// How many processors this process may run on.
fn processors(root: &Path) -> Result<u64, NodeError> {
    let path = root.join("proc/self/status");
    let trouble =
        |reason: String| NodeError::Machine { what: "the processors", path: path.clone(), reason };
    let text = fs::read_to_string(&path).map_err(|error| trouble(error.to_string()))?;
    text.lines()
        .find_map(|line| count_list(line.strip_prefix("Cpus_allowed_list:")?.trim()))
        .filter(|count| *count > 0)
        .ok_or_else(|| trouble("it has no usable line `Cpus_allowed_list: …`".to_owned()))
}

/// How many numbers a list such as `0-3,8` names.
fn count_list(text: &str) -> Option<u64> {
    text.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

fn word(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn os_image(root: &Path) -> String {
    let text = word(root, "etc/os-release");
    text.lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(|| "Linux".to_owned(), |name| name.trim().trim_matches('"').to_owned())
}

fn architecture(rust: &'static str) -> &'static str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn example() -> Machine {
        Machine {
            cpu_millis: 8000,
            memory: 16 << 30,
            pids: 32_768,
            disk: 100 << 30,
            id: "0123456789abcdef0123456789abcdef".to_owned(),
            system_uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            boot_id: "5b1f".to_owned(),
            kernel: "6.18.44".to_owned(),
            os_image: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            architecture: "amd64",
        }
    }

    fn fake(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMORY: (&str, &str) =
        ("proc/meminfo", "MemTotal:       24689300 kB\nMemFree:  100 kB\nMemAvailable:  500 kB\n");
    const STATUS: (&str, &str) =
        ("proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8,10-11\n");

    #[test]
    fn the_whole_machine_where_nothing_bounds_it() {
        let root = fake(&[
            MEMORY,
            STATUS,
            ("etc/machine-id", "abc\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("proc/sys/kernel/pid_max", "4194304\n"),
            ("proc/sys/kernel/threads-max", "192730\n"),
            ("proc/sys/kernel/random/boot_id", "boot\n"),
            ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"),
        ]);
        let machine = Machine::read(root.path(), root.path()).unwrap();
        assert_eq!(machine.cpu_millis, 7000);
        assert_eq!(machine.memory, 24_689_300 * 1024);
        assert!(machine.disk > 0);
        assert_eq!(machine.pids, 192_730);
        assert_eq!((machine.id.as_str(), machine.system_uuid.as_str()), ("abc", "abc"));
        assert_eq!((machine.kernel.as_str(), machine.boot_id.as_str()), ("6.1.0", "boot"));
        assert_eq!(machine.os_image, "Debian GNU/Linux 12");
    }

    #[test]
    fn the_cgroup_bounds_it_but_never_enlarges_it() {
        let root = fake(&[
            MEMORY,
            STATUS,
            ("proc/self/cgroup", "0::/box\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n"),
            ("cg/box/memory.max", "1073741824\n"),
            ("cg/box/cpu.max", "900000 100000\n"),
        ]);
        let machine = Machine::read(root.path(), root.path()).unwrap();
        assert_eq!((machine.cpu_millis, machine.memory), (7000, 1 << 30));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let root = fake(&[MEMORY]);
        let error = Machine::read(root.path(), root.path()).unwrap_err();
        assert!(error.to_string().contains("proc/self/status"), "{error}");
        let root = fake(&[STATUS, ("proc/meminfo", "MemTotal: lots\n")]);
        let error = Machine::read(root.path(), root.path()).unwrap_err();
        assert!(error.to_string().contains("it has no line `MemTotal:"), "{error}");
        let root = fake(&[STATUS, MEMORY]);
        let error = Machine::read(root.path(), Path::new("/no/such/folder")).unwrap_err();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }

    #[test]
    fn lists_of_processors() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-1", Some(2)),
            ("0,2-3", Some(3)),
            ("", None),
            ("3-1", None),
            ("x", None),
        ] {
            assert_eq!(count_list(list), count, "{list:?}");
        }
    }

    #[test]
    fn this_machine_can_be_read() {
        let machine = Machine::read(Path::new("/"), Path::new("/")).unwrap();
        assert!(machine.cpu_millis >= 1 && machine.memory > 1 << 20, "{machine:?}");
    }
}
