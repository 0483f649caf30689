//! What is done inside a node's namespaces before its programs start: mounts and network, as the text of a shell
//! script, for that is what they are. Pure.

use std::path::Path;

use super::addresses::{self, DNS};
use super::folder::Folder;

/// Settings of the whole machine that a kubelet would change: it finds files that already have its values, and the
/// machine keeps its own.
const SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// Mounts of a node's own: `/run` is new, what its programs keep below `/var` is in the cluster's folder.
pub(super) fn mounts(folder: &Folder, index: usize) -> String {
    let all = quoted(folder.path());
    let node = folder.node(index);
    let own = |part: &str| quoted(&node.join(part));
    let mut lines = vec![
        "set -e".to_owned(),
        format!("echo {} > /proc/sys/kernel/hostname", addresses::name(index)),
        "mount -t tmpfs tmpfs /run".to_owned(),
        "mkdir -p /run/lock /run/netns /run/cluster /run/var-lib/upper /run/var-lib/work".to_owned(),
        // The mount points below are made in memory, not on the machine.
        format!("mount --rbind {all} /run/cluster"),
        "mount -t overlay overlay -o lowerdir=/var/lib,upperdir=/run/var-lib/upper,workdir=/run/var-lib/work \
         /var/lib"
            .to_owned(),
        "mkdir -p /var/lib/kubelet /var/lib/cni".to_owned(),
    ];
    if folder.path().starts_with("/var/lib") {
        lines.push(format!("mkdir -p {all}; mount --rbind /run/cluster {all}"));
    }
    for (part, place) in
        [("kubelet", "/var/lib/kubelet"), ("cni", "/var/lib/cni"), ("pods", "/var/log")]
    {
        lines.push(format!("mount --bind {} {place}", own(part)));
    }
    for (setting, value) in SETTINGS {
        let file = own(&format!("sysctl/{}", setting.replace('/', ".")));
        lines.push(format!("echo {value} > {file}; mount --bind {file} /proc/sys/{setting}"));
    }
    // Volumes that are mounted later are to be seen in containers.
    lines.push("mount --make-rshared /".to_owned());
    lines.push(String::new());
    lines.join("\n")
}

/// A node's network: node 0 has a bridge with its own address and the name server's, the others are plugged into it.
pub(super) fn network(index: usize, nodes: usize) -> String {
    let address = addresses::node(index);
    let mut lines = vec!["set -e".to_owned(), "ip link set lo up".to_owned()];
    let device = if index == 0 { "nodes" } else { "eth0" };
    if index == 0 {
        lines.push(format!("ip link add {device} type bridge"));
        lines.push(format!("ip address add {DNS}/32 dev {device}"));
    }
    lines.push(format!("ip address add {address}/24 dev {device}"));
    lines.push(format!("ip link set {device} up"));
    // Programs look for their own address at the default route; it leads nowhere.
    let way = if index == 0 { String::new() } else { format!("via {} ", addresses::node(0)) };
    lines.push(format!("ip route add default {way}dev {device}"));
    for other in (0..nodes).filter(|other| *other != index) {
        let (pods, gateway) = (addresses::pods(other), addresses::node(other));
        lines.push(format!("ip route add {pods} via {gateway} dev {device} onlink"));
    }
    lines.push("echo 1 > /proc/sys/net/ipv4/ip_forward".to_owned());
    // Without it, a pod that calls a Service whose pod is on its own bridge gets the answer from a stranger.
    lines.push(
        "if [ -e /proc/sys/net/bridge ]; then echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables; fi"
            .to_owned(),
    );
    lines.push(String::new());
    lines.join("\n")
}

/// In node 0's network: a cable to another node, whose first process is `process`.
pub(super) fn cable(index: usize, process: u32) -> String {
    format!(
        "ip link delete cable{index} 2>/dev/null || true\nset -e\n\
         ip link add cable{index} type veth peer name eth0 netns {process}\n\
         ip link set cable{index} master nodes up\n"
    )
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }

    #[test]
    fn every_node_knows_the_way_to_the_pods_of_the_others() {
        let script = network(1, 3);
        assert!(script.contains("ip address add 10.89.0.2/24 dev eth0\n"), "{script}");
        for way in ["10.90.0.0/24 via 10.89.0.1", "10.90.2.0/24 via 10.89.0.3"] {
            assert!(script.contains(&format!("ip route add {way} dev eth0 onlink\n")), "{script}");
        }
        assert!(!script.contains("10.90.1.0/24") && !script.contains("bridge\n"), "{script}");
        let first = network(0, 1);
        assert!(first.contains("ip link add nodes type bridge\n"), "{first}");
        assert!(first.contains("ip route add default dev nodes\n"), "{first}");
    }
}
