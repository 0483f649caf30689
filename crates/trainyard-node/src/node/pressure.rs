//! Whether memory, disk or process ids run short on this machine: the Node's pressure conditions.
//!
//! Memory is short below 100 MiB, process ids below a tenth, as for a kubelet. The disk is short below
//! 1 GiB (a tenth on small ones) or a twentieth of its files: a kubelet's tenth of the whole disk would
//! shut out many ordinary workstations.

use std::fs;
use std::path::Path;

use super::error::NodeError;
use super::machine::{Disk, disk, memory_line};

const LEAST_MEMORY: u64 = 100 << 20;
const LEAST_DISK: u64 = 1 << 30;

/// What is short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub(crate) memory: bool,
    pub(crate) disk: bool,
    pub(crate) pids: bool,
}

impl Pressure {
    /// Looks below `root`, which is `/` except in tests; `state` is the state folder.
    pub(crate) fn measure(root: &Path, state: &Path) -> Result<Self, NodeError> {
        Ok(Self {
            memory: memory_line(root, "MemAvailable:")? < LEAST_MEMORY,
            disk: disk_short(disk(state)?),
            pids: pids_short(root),
        })
    }
}

fn disk_short(disk: Disk) -> bool {
    disk.free < LEAST_DISK.min(disk.total / 10)
        // Some file systems count no files.
        || (disk.files > 0 && disk.files_free < disk.files / 20)
}

/// The last figure but one of `/proc/loadavg` is `runnable/all` threads.
fn pids_short(root: &Path) -> bool {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let most: Option<u64> = read("proc/sys/kernel/pid_max").trim().parse().ok();
    let used: Option<u64> = read("proc/loadavg")
        .split(' ')
        .nth(3)
        .and_then(|figure| figure.split_once('/')?.1.parse().ok());
    most.zip(used).is_some_and(|(most, used)| most.saturating_sub(used) < most / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(available_kib: u64, threads: u64) -> Pressure {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: String| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", format!("MemTotal: 9 kB\nMemAvailable: {available_kib} kB\n"));
        write("proc/loadavg", format!("0.1 0.2 0.3 2/{threads} 4711\n"));
        write("proc/sys/kernel/pid_max", "32768\n".to_owned());
        Pressure { disk: false, ..Pressure::measure(root.path(), root.path()).unwrap() }
    }

    #[test]
    fn memory_and_pids() {
        assert_eq!(measured(1 << 20, 400), Pressure::default());
        assert!(measured(99 << 10, 400).memory);
        assert!(!measured(100 << 10, 400).memory);
        assert!(measured(1 << 20, 30_000).pids);
    }

    #[test]
    fn disks() {
        let gib = 1_u64 << 30;
        let plain = Disk { total: 100 * gib, free: 2 * gib, files: 1000, files_free: 900 };
        for (disk, short) in [
            (plain, false),
            (Disk { free: gib - 1, ..plain }, true),
            (Disk { total: gib, free: gib / 8, ..plain }, false),
            (Disk { total: gib, free: gib / 11, ..plain }, true),
            (Disk { files_free: 49, ..plain }, true),
            (Disk { files: 0, files_free: 0, ..plain }, false),
        ] {
            assert_eq!(disk_short(disk), short, "{disk:?}");
        }
    }
}
