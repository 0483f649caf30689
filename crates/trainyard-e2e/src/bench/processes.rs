//! What an agent, or a whole yard, and everything it started has used, read from `/proc`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::sample::round;

/// Clock ticks per second in `/proc`; fixed on Linux.
const TICKS: f64 = 100.0;

/// One process.
#[derive(Debug, Clone)]
struct Process {
    pid: u32,
    parent: u32,
    /// Its own and that of the children it waited for.
    cpu_s: f64,
}

/// Processor seconds of a process, of all that descend from it, and of those of them that have ended.
pub(super) fn cpu_s(root: u32) -> Result<f64> {
    Ok(descendants(root)?.iter().map(|process| process.cpu_s).sum())
}

/// How many that descend from a process were started with this word.
pub(super) fn running(root: u32, word: &str) -> Result<usize> {
    let said = |process: &&Process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|known| known == word.as_bytes())
    };
    Ok(descendants(root)?.iter().filter(said).count())
}

/// Processor seconds of children of this process that it has waited for.
pub(super) fn own_children_s() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    Ok(ticks(&stat, 13..15))
}

/// How many processes have wanted a processor in the last minute: numbers taken beside others' work
/// are worth less.
pub(super) fn load() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next().and_then(|number| number.parse().ok());
    first.context("/proc/loadavg cannot be read")
}

/// Memory of the agent's own processes, in megabytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memory {
    pub(super) rss: f64,
    pub(super) pss: f64,
    pub(super) processes: u32,
}

impl Memory {
    pub(super) fn shown(self) -> Value {
        let (rss, pss) = (round(self.rss), round(self.pss));
        json!({"rss_mb": rss, "pss_mb": pss, "processes": self.processes})
    }

    fn add(&mut self, other: Self) {
        self.rss += other.rss;
        self.pss += other.pss;
        self.processes += other.processes;
    }
}

/// The memory of an agent, of its holder, and of the processes that the holder keeps beside pods'
/// programs. The programs themselves are the pods' own.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memories {
    pub(super) agent: Memory,
    pub(super) holder: Memory,
    pub(super) beside_pods: Memory,
}

/// Takes the memory of an agent with this process id. Its holder is two processes, one the child of
/// the other.
pub(super) fn memories(agent: u32) -> Result<Memories> {
    let ours = program(agent).context("the agent has ended")?;
    let all = descendants(agent)?;
    let children = |of: &[u32]| -> Vec<u32> {
        all.iter().filter(|child| of.contains(&child.parent)).map(|child| child.pid).collect()
    };
    let outer = children(&[agent]);
    let inner = children(&outer);
    let mut memories = Memories::default();
    for process in &all {
        // What has executed another program is a pod's.
        if program(process.pid).as_ref() != Some(&ours) {
            continue;
        }
        // It may have ended meanwhile.
        let Ok(memory) = memory(process.pid) else { continue };
        let place = if process.pid == agent {
            &mut memories.agent
        } else if outer.contains(&process.pid) || inner.contains(&process.pid) {
            &mut memories.holder
        } else {
            &mut memories.beside_pods
        };
        place.add(memory);
    }
    Ok(memories)
}

fn memory(pid: u32) -> Result<Memory> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let mb = |key: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(key));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        number.map(|kilobytes| kilobytes / 1024.0).with_context(|| format!("no {key} of {pid}"))
    };
    Ok(Memory { rss: mb("Rss:")?, pss: mb("Pss:")?, processes: 1 })
}

/// The program as it was started; forks keep it.
fn program(pid: u32) -> Option<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    line.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
}

/// A process and all that descend from it.
fn descendants(root: u32) -> Result<Vec<Process>> {
    let all = all()?;
    let mut kept = BTreeSet::from([root]);
    loop {
        let more: Vec<u32> = all
            .values()
            .filter(|process| kept.contains(&process.parent) && !kept.contains(&process.pid))
            .map(|process| process.pid)
            .collect();
        if more.is_empty() {
            break;
        }
        kept.extend(more);
    }
    Ok(kept.iter().filter_map(|pid| all.get(pid).cloned()).collect())
}

fn all() -> Result<BTreeMap<u32, Process>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some(parent) = fields(&stat).get(1).and_then(|parent| parent.parse().ok()) else {
            continue;
        };
        all.insert(pid, Process { pid, parent, cpu_s: ticks(&stat, 11..15) });
    }
    Ok(all)
}

/// The fields after the name, which stands in parentheses and may hold anything.
fn fields(stat: &str) -> Vec<&str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect()
}

fn ticks(stat: &str, which: std::ops::Range<usize>) -> f64 {
    let fields = fields(stat);
    let fields = fields.get(which).unwrap_or_default();
    fields.iter().filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / TICKS
}
