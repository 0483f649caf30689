//! The specification of a pod as a whole: checks.
//!
//! Owns the order in which the parts are looked at. Must not look at other objects.

use serde_json::Value;
use trainyard_schema::FieldError;

use super::{
    containers::{self, identity, one_of},
    scheduling, volumes,
};
use crate::kinds::{
    json::{items, number, text},
    metadata, naming,
};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/// Checks a specification; `is_pod` when it is not only a template's.
pub(crate) fn validate(spec: &Value, path: &str, is_pod: bool) -> Vec<FieldError> {
    let (names, mut errors) = volumes::validate(spec, path);
    errors.extend(containers::validate(spec, &names, path));
    if spec["hostNetwork"].as_bool() == Some(true) {
        errors.extend(host_ports(spec, path, is_pod));
    }
    errors.extend(one_of(spec, "restartPolicy", &RESTART_POLICIES, path));
    errors.extend(one_of(spec, "dnsPolicy", &DNS_POLICIES, path));
    errors.extend(metadata::labels(&spec["nodeSelector"], &format!("{path}.nodeSelector")));
    errors.extend(security(&spec["securityContext"], &format!("{path}.securityContext")));
    errors.extend(scheduling::affinity(&spec["affinity"], &format!("{path}.affinity")));
    errors.extend(dns(spec, path));
    errors.extend(gates(spec, path));
    errors.extend(scheduling::spread(spec, path));
    errors.extend(names_of_others(spec, path));
    errors.extend(numbers(spec, path));
    errors.extend(scheduling::tolerations(&spec["tolerations"], &format!("{path}.tolerations")));
    errors.extend(aliases(spec, path));
    for key in ["priorityClassName", "runtimeClassName"] {
        errors.extend(named(spec, key, path, naming::subdomain));
    }
    let policy = text(spec, "preemptionPolicy");
    let policies = ["PreemptLowerPriority", "Never"];
    if !policy.is_empty() && !policies.contains(&policy) {
        let path = format!("{path}.preemptionPolicy");
        errors.push(FieldError::not_supported(path, policy, &policies));
    }
    errors
}

fn host_ports(spec: &Value, path: &str, is_pod: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, container) in items(spec, "containers").iter().enumerate() {
        for (port_at, port) in items(container, "ports").iter().enumerate() {
            let (outer, inner) = (number(port, "hostPort"), number(port, "containerPort"));
            if (is_pod || outer != 0) && outer != inner {
                let path = format!("{path}.containers[{at}].ports[{port_at}].hostPort");
                let words = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(path, outer, words));
            }
        }
    }
    errors
}

fn security(context: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["fsGroup", "runAsUser", "runAsGroup"] {
        errors.extend(identity(context, key, path));
    }
    for (at, group) in items(context, "supplementalGroups").iter().enumerate() {
        let group = group.as_i64().unwrap_or_default();
        let faults = naming::in_range(group, 0, i64::from(i32::MAX)).into_iter();
        let path = format!("{path}.supplementalGroups[{at}]");
        errors.extend(faults.map(|fault| FieldError::invalid(&path, group, fault)));
    }
    errors
}

fn dns(spec: &Value, path: &str) -> Vec<FieldError> {
    let config = &spec["dnsConfig"];
    let path = format!("{path}.dnsConfig");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            let words = "must provide `dnsConfig` when `dnsPolicy` is None";
            return vec![FieldError::required(path, words)];
        }
        if items(config, "nameservers").is_empty() {
            let words = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return vec![FieldError::required(format!("{path}.nameservers"), words)];
        }
    }
    let mut errors = Vec::new();
    let servers = items(config, "nameservers");
    if servers.len() > 3 {
        let words = "must not have more than 3 nameservers";
        let path = format!("{path}.nameservers");
        errors.push(FieldError::invalid(path, config["nameservers"].clone(), words));
    }
    for (at, server) in servers.iter().enumerate() {
        errors.extend(address(server, &format!("{path}.nameservers[{at}]")));
    }
    errors
}

/// An address of the network.
pub(crate) fn address(value: &Value, path: &str) -> Option<FieldError> {
    let text = value.as_str().unwrap_or_default();
    let words = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    text.parse::<std::net::IpAddr>().is_err().then(|| FieldError::invalid(path, text, words))
}

fn gates(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (at, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let path = format!("{path}.schedulingGates[{at}]");
        let name = text(gate, "name");
        let faults = naming::qualified(name).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&path, name, fault)));
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(path, name));
        }
        seen.push(name);
    }
    errors
}

fn named(spec: &Value, key: &str, path: &str, check: fn(&str) -> Vec<String>) -> Vec<FieldError> {
    let name = text(spec, key);
    if name.is_empty() {
        return Vec::new();
    }
    let path = format!("{path}.{key}");
    check(name).into_iter().map(|fault| FieldError::invalid(&path, name, fault)).collect()
}

fn names_of_others(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = named(spec, "serviceAccountName", path, naming::subdomain);
    errors.extend(named(spec, "nodeName", path, naming::subdomain));
    errors
}

fn numbers(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64() {
        let path = format!("{path}.activeDeadlineSeconds");
        let faults = naming::in_range(seconds, 1, i64::from(i32::MAX)).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(&path, seconds, fault)));
    }
    for key in ["hostname", "subdomain"] {
        errors.extend(named(spec, key, path, naming::label));
    }
    errors
}

fn aliases(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, alias) in items(spec, "hostAliases").iter().enumerate() {
        let path = format!("{path}.hostAliases[{at}]");
        errors.extend(address(&alias["ip"], &format!("{path}.ip")));
        for (name_at, name) in items(alias, "hostnames").iter().enumerate() {
            let path = format!("{path}.hostnames[{name_at}]");
            let name = name.as_str().unwrap_or_default();
            let faults = naming::subdomain(name).into_iter();
            errors.extend(faults.map(|fault| FieldError::invalid(&path, name, fault)));
        }
    }
    errors
}
