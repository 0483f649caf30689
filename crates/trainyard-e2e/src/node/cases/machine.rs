//! What agents have on this machine outside their own folders: processes, namespaces, control groups,
//! mounts, network links. Found from outside, as anybody could; knows no case.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// What is there before an agent and must be the same after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Host {
    mounts: BTreeSet<String>,
    links: BTreeSet<String>,
    routes: String,
}

impl Host {
    pub(super) fn look() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        // Cases mount folders too, under this name.
        let mounts = mounts.lines().filter(|line| !line.contains(" trainyard-test "));
        let mounts = mounts.map(str::to_owned).collect();
        Ok(Self { mounts, links: names_in("/sys/class/net"), routes: routes()? })
    }

    /// An error that names what has come or gone.
    pub(super) fn is_as_before(&self) -> Result<()> {
        let now = Self::look()?;
        let differ = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.symmetric_difference(other).cloned().collect::<Vec<_>>()
        };
        let (mounts, links) = (differ(&self.mounts, &now.mounts), differ(&self.links, &now.links));
        ensure!(mounts.is_empty() && links.is_empty(), "came or went: {mounts:?} {links:?}");
        ensure!(self.routes == now.routes, "routes were {}\nand are {}", self.routes, now.routes);
        Ok(())
    }
}

fn routes() -> Result<String> {
    Ok(fs::read_to_string("/proc/net/route")?)
}

fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A process of this machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: u32,
    parent: u32,
    /// With its number this names it for ever.
    started: String,
}

/// All processes that have not ended.
pub(super) fn processes() -> Vec<Process> {
    let numbers = names_in("/proc").into_iter().filter_map(|name| name.parse().ok());
    numbers.filter_map(process).collect()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    if matches!(fields.first()?, &("Z" | "X")) {
        return None;
    }
    let started = (*fields.get(19)?).to_owned();
    Some(Process { pid, parent: fields.get(1)?.parse().ok()?, started })
}

/// Those that descend from this one, nearest first, and of brothers the oldest.
pub(super) fn descendants(of: u32) -> Vec<Process> {
    let mut children: BTreeMap<u32, Vec<Process>> = BTreeMap::new();
    let mut all = processes();
    all.sort_by_key(|process| process.started.parse::<u64>().unwrap_or_default());
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<Process> = Vec::new();
    let mut next = std::collections::VecDeque::from([of]);
    while let Some(pid) = next.pop_front() {
        let below = children.remove(&pid).unwrap_or_default();
        next.extend(below.iter().map(|process| process.pid));
        found.extend(below);
    }
    found
}

/// Processes whose environment has this variable.
pub(super) fn with_variable(variable: &str) -> Vec<u32> {
    let has = |process: &Process| {
        let all = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    processes().iter().filter(|process| has(process)).map(|process| process.pid).collect()
}

/// Open descriptors of a process.
pub(super) fn descriptors(pid: u32) -> usize {
    names_in(&format!("/proc/{pid}/fd")).len()
}

/// All that was ever seen of some agents, to be looked for when they are gone.
#[derive(Debug, Default)]
pub(super) struct Traces {
    processes: BTreeSet<Process>,
    namespaces: BTreeSet<String>,
    groups: BTreeSet<PathBuf>,
}

impl Traces {
    /// Remembers what an agent has now.
    pub(super) fn look(&mut self, agent: u32) {
        let own = namespaces(std::process::id());
        let found = descendants(agent);
        for process in found.iter().map(|process| process.pid).chain([agent]) {
            self.namespaces.extend(namespaces(process).difference(&own).cloned());
            self.groups.extend(groups(process));
        }
        self.processes.extend(found.into_iter().chain(process(agent)));
    }

    /// How many processes, namespaces and control groups were seen.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.processes.len(), self.namespaces.len(), self.groups.len())
    }

    /// What of it is still there.
    pub(super) fn left(&self) -> Vec<String> {
        let alive: BTreeSet<Process> = processes().into_iter().collect();
        let mut left: Vec<String> = Vec::new();
        for process in self.processes.intersection(&alive) {
            let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            left.push(format!("process {}: {line}", process.pid));
        }
        let parents: BTreeMap<u32, u32> = alive.iter().map(|p| (p.pid, p.parent)).collect();
        let held: BTreeSet<String> = alive
            .iter()
            .filter(|process| !is_of_other_tests(process.pid, &parents))
            .flat_map(|process| namespaces(process.pid))
            .collect();
        left.extend(self.namespaces.intersection(&held).map(|name| format!("namespace {name}")));
        let groups = self.groups.iter().filter(|group| group.exists());
        left.extend(groups.map(|group| format!("control group {}", group.display())));
        left
    }

    /// Waits until nothing of it is there.
    pub(super) async fn are_gone(&self, within: Duration) -> Result<Duration> {
        let started = Instant::now();
        loop {
            let left = self.left();
            if left.is_empty() {
                return Ok(started.elapsed());
            }
            if started.elapsed() > within {
                bail!("left after {within:?}:\n{}", left.join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Other tests that run on this machine meanwhile: the numbers of namespaces that are gone are given to
/// theirs at once.
fn is_of_other_tests(mut pid: u32, parents: &BTreeMap<u32, u32>) -> bool {
    while pid > 1 && pid != std::process::id() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if ["xtask", "cargo", "it-"].iter().any(|runner| name.starts_with(runner)) {
            return true;
        }
        pid = parents.get(&pid).copied().unwrap_or(0);
    }
    false
}

/// Namespaces that a process lives in or holds open.
fn namespaces(pid: u32) -> BTreeSet<String> {
    let links = |folder: &str| {
        let entries = fs::read_dir(format!("/proc/{pid}/{folder}")).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .map(|link| link.to_string_lossy().into_owned())
            .filter(|link| is_namespace(link))
            .collect::<Vec<_>>()
    };
    links("ns").into_iter().chain(links("fd")).collect()
}

fn is_namespace(link: &str) -> bool {
    ["net:[", "mnt:[", "pid:[", "uts:[", "ipc:[", "user:["]
        .iter()
        .any(|kind| link.starts_with(kind))
}

/// Folders of the control groups of an agent that a process is in, one for each hierarchy.
pub(super) fn groups(pid: u32) -> Vec<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in text.lines() {
        let Some(path) = line.splitn(3, ':').nth(2) else { continue };
        // What an agent makes lies under its name, whatever that is.
        let Some((above, rest)) = path.split_once("/trainyard/") else { continue };
        let yard = rest.split('/').next().unwrap_or_default();
        let below = format!("{}/trainyard/{yard}", above.trim_start_matches('/'));
        let below = below.trim_start_matches('/');
        let hierarchies = names_in("/sys/fs/cgroup");
        let all = hierarchies.iter().map(|name| Path::new("/sys/fs/cgroup").join(name));
        found.extend(all.chain([PathBuf::from("/sys/fs/cgroup")]).map(|at| at.join(below)));
    }
    found.retain(|folder| folder.is_dir());
    found
}

/// Everything below a folder.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = vec![folder.to_owned()];
    while let Some(folder) = next.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                next.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}
