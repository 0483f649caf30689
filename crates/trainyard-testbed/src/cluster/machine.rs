//! What of the machine each node offers to pods. Pure but for one look at the machine.

use anyhow::{Context as _, Result};

/// What a node keeps from its pods, so that all nodes together offer no more than the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Whole cpus.
    pub(super) reserved_cpus: usize,
    /// Memory in KiB.
    pub(super) reserved_memory_kib: u64,
}

impl Share {
    /// Each of `nodes` offers this many cpus, or an even share of them, and an even share of memory.
    pub(super) fn of_this_machine(nodes: usize, offered_cpus: Option<usize>) -> Result<Self> {
        let cpus = std::thread::available_parallelism().context("counting cpus")?.get();
        let info = std::fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
        let memory = memory_kib(&info).context("/proc/meminfo has no MemTotal")?;
        Ok(Self::of(cpus, memory, nodes, offered_cpus))
    }

    fn of(cpus: usize, memory_kib: u64, nodes: usize, offered_cpus: Option<usize>) -> Self {
        let nodes = nodes.max(1);
        let offered = offered_cpus.unwrap_or(cpus / nodes).max(1);
        let share = memory_kib / u64::try_from(nodes).unwrap_or(1);
        Self {
            reserved_cpus: cpus.saturating_sub(offered),
            reserved_memory_kib: memory_kib - share,
        }
    }
}

fn memory_kib(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_the_machine() {
        let share =
            |reserved_cpus, reserved_memory_kib| Share { reserved_cpus, reserved_memory_kib };
        assert_eq!(Share::of(2, 1000, 2, None), share(1, 500));
        assert_eq!(Share::of(8, 1000, 2, None), share(4, 500));
        assert_eq!(Share::of(8, 1000, 2, Some(1)), share(7, 500));
        assert_eq!(Share::of(8, 1000, 1, None), share(0, 0));
        assert_eq!(Share::of(1, 900, 3, None), share(0, 600), "a node offers one cpu at least");
    }

    #[test]
    fn memory_is_read_from_the_kernel_s_table() {
        assert_eq!(memory_kib("MemFree: 1 kB\nMemTotal:       24684112 kB\n"), Some(24_684_112));
        assert_eq!(memory_kib("MemFree: 1 kB\n"), None);
    }
}
