//! The ground a control plane stands on: its folders and its ports. Knows nothing of Kubernetes.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// Below the range from which the kernel takes the ports of outgoing connections: a server that is
/// stopped for a while finds its port free when it comes back.
const PORTS: Range<u16> = 20_000..32_000;
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "trainyard-etcd-";

/// `N` different free ports on loopback.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    // Two control planes that start together should not try the same ports first.
    let random = RandomState::new().hash_one(std::process::id());
    let width = PORTS.end - PORTS.start;
    let offset = u16::try_from(random % u64::from(width)).unwrap_or_default();
    let mut ports = [0; N];
    let mut found = 0;
    for step in 0..width {
        if found == N {
            break;
        }
        let port = PORTS.start + (offset + step) % width;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            ports[found] = port;
            found += 1;
        }
    }
    if found < N {
        bail!("no {N} free ports on loopback between {} and {}", PORTS.start, PORTS.end);
    }
    Ok(ports)
}

/// A folder for the database: in memory where the machine has that, else in `fallback`.
pub(super) fn database_dir(fallback: &Path) -> Result<(PathBuf, Option<TempDir>)> {
    let memory = Path::new(MEMORY);
    if memory.is_dir() {
        sweep(memory);
        let prefix = format!("{PREFIX}{}-", std::process::id());
        if let Ok(dir) = tempfile::Builder::new().prefix(&prefix).tempdir_in(memory) {
            return Ok((dir.path().to_owned(), Some(dir)));
        }
    }
    let dir = fallback.join("etcd");
    fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok((dir, None))
}

/// Removes what killed runs left behind: memory is dearer than disk.
fn sweep(memory: &Path) {
    let Ok(entries) = fs::read_dir(memory) else {
        return;
    };
    for entry in entries.flatten() {
        if let Some(pid) = owner(&entry.file_name().to_string_lossy())
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that made a database folder.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_and_outside_the_ephemeral_range() {
        let ports = free_ports::<3>().unwrap();
        assert!(ports[0] != ports[1] && ports[1] != ports[2] && ports[0] != ports[2]);
        assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
    }

    #[test]
    fn only_folders_of_dead_processes_are_swept() {
        let memory = tempfile::tempdir().unwrap();
        let mine = memory.path().join(format!("{PREFIX}{}-abc", std::process::id()));
        // No kernel hands out process ids this high.
        let dead = memory.path().join(format!("{PREFIX}4294967294-abc"));
        let foreign = memory.path().join("somebody-elses-4294967294-abc");
        for dir in [&mine, &dead, &foreign] {
            fs::create_dir(dir).unwrap();
        }
        sweep(memory.path());
        assert!(mine.exists() && foreign.exists() && !dead.exists());
    }
}
