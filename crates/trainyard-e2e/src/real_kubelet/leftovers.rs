//! What this machine has of a cluster, and what a cluster could change of it. One that has been stopped leaves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;

/// The cluster's folder, mounts of it, control groups whose names begin like this, processes in them or with the
/// folder in their words: what ends with a node's namespaces and what does not.
pub(super) fn leftovers(folder: &Path, group: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if folder.exists() {
        found.push(folder.display().to_string());
    }
    let of_folder = folder.display().to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    found.extend(mounts.lines().filter(|line| line.contains(&of_folder)).map(str::to_owned));
    // One hierarchy, or several.
    for hierarchy in fs::read_dir("/sys/fs/cgroup")?.flatten() {
        let below = fs::read_dir(hierarchy.path()).into_iter().flatten().flatten();
        let places = std::iter::once(hierarchy.path()).chain(below.map(|entry| entry.path()));
        let of_cluster = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(group))
        };
        found.extend(places.filter(|path| of_cluster(path)).map(|path| path.display().to_string()));
    }
    let own = std::process::id().to_string();
    for process in fs::read_dir("/proc")?.flatten().filter(|process| *process.file_name() != *own) {
        let read = |file: &str| fs::read(process.path().join(file)).unwrap_or_default();
        let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        if String::from_utf8_lossy(&read("cgroup")).contains(group) || words.contains(&of_folder) {
            found.push(format!("process {} ({words})", process.file_name().display()));
        }
    }
    Ok(found)
}

/// Settings of the machine, and of its own network, that kubelets, kube-proxies and the nodes' networks would change
/// if they were not kept from it.
const SETTINGS: [&str; 16] = [
    "kernel/hostname",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "net/bridge/bridge-nf-call-ip6tables",
    "net/bridge/bridge-nf-call-iptables",
    "net/ipv4/conf/all/forwarding",
    "net/ipv4/conf/all/route_localnet",
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_tcp_timeout_close_wait",
    "net/netfilter/nf_conntrack_tcp_timeout_established",
];

/// The machine's own network links, and its settings where it has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    links: BTreeSet<String>,
    settings: BTreeMap<&'static str, String>,
}

impl Surroundings {
    /// As they are now.
    pub(super) fn now() -> Result<Self> {
        let name = |link: fs::DirEntry| link.file_name().to_string_lossy().into_owned();
        let links = fs::read_dir("/sys/class/net")?.flatten().map(name).collect();
        let value = |name| fs::read_to_string(Path::new("/proc/sys").join(name));
        let settings = SETTINGS.into_iter().filter_map(|name| Some((name, value(name).ok()?)));
        Ok(Self { links, settings: settings.collect() })
    }

    /// Links that have come or gone since, and settings with other values.
    pub(super) fn changes(&self, since: &Self) -> Vec<String> {
        let links = self.links.symmetric_difference(&since.links);
        let mut changes: Vec<_> = links.map(|link| format!("the link {link}")).collect();
        for (name, before) in &since.settings {
            let now = self.settings.get(name).map_or("nothing", |now| now.trim());
            if now != before.trim() {
                changes.push(format!("{name} is {now}, not {}", before.trim()));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_a_process_that_works_with_it_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("cluster-of-a-test");
        let found = || leftovers(&folder, "no-such-group-").unwrap();
        assert_eq!(found(), Vec::<String>::new());
        fs::create_dir(&folder).unwrap();
        let fifo = folder.join("never");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let mut reader = std::process::Command::new("cat").arg(&fifo).spawn().unwrap();
        // It has no words of its own before it has become that program.
        let is_there = || found().iter().any(|line| line.contains("(cat "));
        let seen = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_there()
        });
        reader.kill().unwrap();
        reader.wait().unwrap();
        assert!(seen, "{:?}", found());
        assert_eq!(found(), [folder.display().to_string()]);
    }

    #[test]
    fn a_new_link_and_a_changed_setting_are_found() {
        let now = Surroundings::now().unwrap();
        assert!(now.links.contains("lo") && now.settings.contains_key("vm/overcommit_memory"));
        assert_eq!(now.changes(&now), Vec::<String>::new());
        let mut before = now.clone();
        before.links.remove("lo");
        before.settings.insert("vm/overcommit_memory", "7\n".to_owned());
        let value = now.settings["vm/overcommit_memory"].trim();
        let wanted = ["the link lo".to_owned(), format!("vm/overcommit_memory is {value}, not 7")];
        assert_eq!(now.changes(&before), wanted);
        // A module that was loaded meanwhile brings settings along.
        before.settings.clear();
        assert_eq!(now.changes(&before), wanted[..1]);
    }
}
