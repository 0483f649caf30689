//! Checks on what a pod takes of its machine: namespaces, ports, volumes, probes of other hosts.

use std::collections::BTreeSet;

use serde_json::Value;

use super::words::{Subject, Violation, containers, counted, quoted};
use crate::kinds::json::{items, number, text};

pub(super) fn namespaces(subject: Subject<'_>) -> Option<Violation> {
    let keys = ["hostNetwork", "hostPID", "hostIPC"];
    let shared = keys.into_iter().filter(|key| subject.spec[key].as_bool() == Some(true));
    let shared: Vec<String> = shared.map(|key| format!("{key}=true")).collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

pub(super) fn paths(subject: Subject<'_>) -> Option<Violation> {
    let volumes = items(subject.spec, "volumes").iter();
    let names: Vec<&str> = volumes
        .filter(|volume| volume["hostPath"].is_object())
        .map(|volume| text(volume, "name"))
        .collect();
    let word = counted("volume", "volumes", names.len());
    let detail = || format!("{word} {}", quoted(&names));
    (!names.is_empty()).then(|| Violation::new("hostPath volumes", detail()))
}

pub(super) fn ports(subject: Subject<'_>) -> Option<Violation> {
    let taken = |container: &Value| -> Vec<i64> {
        let ports = items(container, "ports").iter().map(|port| number(port, "hostPort"));
        ports.filter(|port| *port != 0).collect()
    };
    let names = subject.named(|container| !taken(container).is_empty());
    // Sorted as texts, as Kubernetes does.
    let ports: BTreeSet<String> =
        subject.containers().flat_map(taken).map(|port| port.to_string()).collect();
    let detail = || {
        let uses = counted("uses", "use", names.len());
        let word = counted("hostPort", "hostPorts", ports.len());
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        format!("{} {uses} {word} {}", containers(&names), ports.join(", "))
    };
    (!names.is_empty()).then(|| Violation::new("hostPort", detail()))
}

pub(super) fn probes(subject: Subject<'_>) -> Option<Violation> {
    let names: BTreeSet<&str> =
        subject.named(|one| !asked_hosts(one).is_empty()).into_iter().collect();
    let names: Vec<&str> = names.into_iter().collect();
    let hosts: BTreeSet<&str> = subject.containers().flat_map(asked_hosts).collect();
    let detail = || {
        let uses = counted("uses", "use", names.len());
        let word = counted("probe or lifecycle host", "probe or lifecycle hosts", hosts.len());
        format!("{} {uses} {word} {}", containers(&names), quoted(&hosts))
    };
    (!names.is_empty()).then(|| Violation::new("probe or lifecycle host", detail()))
}

/// The hosts that probes and handlers of a container name.
fn asked_hosts(container: &Value) -> Vec<&str> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|key| &container[key]);
    let handlers = ["postStart", "preStop"].map(|key| &container["lifecycle"][key]);
    let asked = probes.into_iter().chain(handlers);
    let hosts = asked.flat_map(|ask| ["httpGet", "tcpSocket"].map(|way| text(&ask[way], "host")));
    hosts.filter(|host| !host.is_empty()).collect()
}

/// Sources of volumes that reach nothing but what the API holds and what drivers give.
const SOURCES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn volumes(subject: Subject<'_>) -> Option<Violation> {
    let mut names = Vec::new();
    let mut sources = BTreeSet::new();
    for volume in items(subject.spec, "volumes") {
        let allowed = members_of(volume).any(|key| SOURCES.contains(&key));
        if !allowed {
            names.push(text(volume, "name"));
            sources.insert(members_of(volume).next().unwrap_or("unknown"));
        }
    }
    let detail = || {
        let (word, uses) =
            (counted("volume", "volumes", names.len()), counted("uses", "use", names.len()));
        let kinds = counted("restricted volume type", "restricted volume types", sources.len());
        format!("{word} {} {uses} {kinds} {}", quoted(&names), quoted(&sources))
    };
    (!names.is_empty()).then(|| Violation::new("restricted volume types", detail()))
}

/// The members of a volume that are objects, of which one is its source.
fn members_of(volume: &Value) -> impl Iterator<Item = &str> {
    let members = volume.as_object().into_iter().flatten();
    members.filter(|(_, value)| value.is_object()).map(|(key, _)| key.as_str())
}

/// The names that a pod may set.
pub(super) fn sysctls(subject: Subject<'_>, allowed: &[&[&str]]) -> Option<Violation> {
    let set = items(&subject.spec["securityContext"], "sysctls").iter();
    let names = set.map(|sysctl| text(sysctl, "name"));
    let names: Vec<&str> =
        names.filter(|name| !allowed.iter().any(|names| names.contains(name))).collect();
    (!names.is_empty()).then(|| Violation::new("forbidden sysctls", names.join(", ")))
}

/// The names that were allowed from the beginning, then what came with 1.27, 1.29 and 1.32.
pub(super) const SYSCTLS: [&[&str]; 4] = [
    &[
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ],
    &["net.ipv4.ip_local_reserved_ports"],
    &[
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
    ],
    &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"],
];
