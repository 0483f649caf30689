//! What is wrong with a service.

use std::collections::HashSet;

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{has_address, is_external, is_headless};
use crate::kinds::{
    json::{items, number, text},
    metadata, naming,
    pods::{probes, spec::address},
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Checks a service.
pub(super) fn validate(service: &Value) -> Vec<FieldError> {
    let spec = &service["spec"];
    let mut errors = Vec::new();
    if items(spec, "ports").is_empty() && !is_headless(spec) && has_address(spec) {
        errors.push(FieldError::required("spec.ports", ""));
    }
    errors.extend(by_type(spec));
    errors.extend(ports(spec));
    errors.extend(metadata::labels(&spec["selector"], "spec.selector"));
    errors.extend(word(spec, "sessionAffinity", &["ClientIP", "None"]));
    let affinity = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if let Some(seconds) = affinity.as_i64().filter(|seconds| !(1..=86_400).contains(seconds)) {
        let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        let words = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(path, seconds, words));
    }
    errors.extend(cluster_addresses(spec));
    for (at, external) in items(spec, "externalIPs").iter().enumerate() {
        errors.extend(address(external, &format!("spec.externalIPs[{at}]")));
    }
    errors.extend(word(spec, "type", &TYPES));
    errors.extend(taken_ports(spec));
    errors.extend(traffic(spec));
    errors
}

fn word(spec: &Value, key: &str, allowed: &[&str]) -> Option<FieldError> {
    let path = format!("spec.{key}");
    let word = text(spec, key);
    if word.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    (!allowed.contains(&word)).then(|| FieldError::not_supported(path, word, allowed))
}

fn by_type(spec: &Value) -> Vec<FieldError> {
    let kind = text(spec, "type");
    let mut errors = Vec::new();
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let words = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", words));
        }
        "ExternalName" => {
            for key in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if spec.get(key).is_some() {
                    let words = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(format!("spec.{key}"), words));
                }
            }
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                errors.push(FieldError::required("spec.externalName", ""));
            } else {
                let faults = naming::subdomain(name).into_iter();
                errors.extend(
                    faults.map(|fault| FieldError::invalid("spec.externalName", name, fault)),
                );
            }
        }
        _ => {}
    }
    errors
}

fn ports(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    let ports = items(spec, "ports");
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        let name = text(port, "name");
        let name_path = format!("{path}.name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(&name_path, ""));
        } else if !name.is_empty() {
            let faults = naming::label(name).into_iter();
            errors.extend(faults.map(|fault| FieldError::invalid(&name_path, name, fault)));
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&name_path, name));
            }
        }
        let number = number(port, "port");
        let faults = naming::port(number).into_iter();
        errors
            .extend(faults.map(|fault| FieldError::invalid(format!("{path}.port"), number, fault)));
        let protocol = text(port, "protocol");
        if !PROTOCOLS.contains(&protocol) {
            let path = format!("{path}.protocol");
            errors.push(FieldError::not_supported(path, protocol, &PROTOCOLS));
        }
        errors.extend(probes::port(&port["targetPort"], &format!("{path}.targetPort")));
    }
    errors
}

fn cluster_addresses(spec: &Value) -> Vec<FieldError> {
    if !has_address(spec) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let path = "spec.clusterIPs";
    let (one, all) = (text(spec, "clusterIP"), items(spec, "clusterIPs"));
    if one.is_empty() {
        if !all.is_empty() {
            let words = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(path, json!(all), words));
        }
    } else if all.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if all.first().is_some_and(|first| first != one) {
        errors.push(FieldError::invalid(path, json!(all), "first value must match `clusterIP`"));
    }
    for (at, family) in items(spec, "ipFamilies").iter().enumerate() {
        let family = family.as_str().unwrap_or_default();
        if !matches!(family, "IPv4" | "IPv6") {
            let path = format!("spec.ipFamilies[{at}]");
            errors.push(FieldError::not_supported(path, family, &["IPv4", "IPv6"]));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let policy = text(spec, "ipFamilyPolicy");
    if !policy.is_empty() && !policies.contains(&policy) {
        errors.push(FieldError::not_supported("spec.ipFamilyPolicy", policy, &policies));
    }
    for (at, value) in all.iter().enumerate() {
        if at == 0 && value == "None" {
            continue;
        }
        errors.extend(address(value, &format!("{path}[{at}]")));
    }
    if all.len() > 2 {
        errors.push(FieldError::invalid(path, json!(all), "may only hold up to 2 values"));
    }
    errors
}

fn taken_ports(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = items(spec, "ports");
    let node_port = |port: &Value| number(port, "nodePort");
    if text(spec, "type") == "ClusterIP" {
        for (at, _) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
            let words = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(format!("spec.ports[{at}].nodePort"), words));
        }
    }
    let mut outer = HashSet::new();
    for (at, port) in ports.iter().enumerate().filter(|(_, port)| node_port(port) != 0) {
        if !outer.insert((text(port, "protocol"), node_port(port))) {
            let path = format!("spec.ports[{at}].nodePort");
            errors.push(FieldError::duplicate(path, node_port(port)));
        }
    }
    let mut inner = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), number(port, "port"));
        if !inner.insert((protocol, number)) {
            // The real server shows its own form of the port.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            let mut error = FieldError::duplicate(format!("spec.ports[{at}]"), "");
            error.value = None;
            error.detail = shown;
            errors.push(error);
        }
    }
    errors
}

fn traffic(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_balanced = text(spec, "type") == "LoadBalancer";
    if !is_balanced && spec.get("allocateLoadBalancerNodePorts").is_some() {
        let path = "spec.allocateLoadBalancerNodePorts";
        errors.push(FieldError::forbidden(path, "may only be used when `type` is 'LoadBalancer'"));
    }
    let path = "spec.externalTrafficPolicy";
    let policy = text(spec, "externalTrafficPolicy");
    if !is_external(spec) && !policy.is_empty() {
        let words = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(path, policy, words));
    } else if is_external(spec) && !matches!(policy, "Cluster" | "Local") {
        errors.push(FieldError::not_supported(path, policy, &["Cluster", "Local"]));
    }
    let policy = text(spec, "internalTrafficPolicy");
    if !policy.is_empty() && !matches!(policy, "Cluster" | "Local") {
        let path = "spec.internalTrafficPolicy";
        errors.push(FieldError::not_supported(path, policy, &["Cluster", "Local"]));
    }
    errors
}

/// Addresses once given stay.
pub(super) fn addresses_stay(new: &Value, old: &Value) -> Vec<FieldError> {
    if !has_address(new) || !has_address(old) || (is_headless(new) && is_headless(old)) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let (now, before) = (items(new, "clusterIPs"), items(old, "clusterIPs"));
    if now.is_empty() && !before.is_empty() {
        let words = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid("spec.clusterIPs[0]", Value::Null, words));
    }
    for (at, (one, other)) in now.iter().zip(before).enumerate() {
        if one != other {
            let path = format!("spec.clusterIPs[{at}]");
            errors.push(FieldError::invalid(path, json!(now), "may not change once set"));
        }
    }
    if is_headless(new) == is_headless(old)
        && items(new, "ipFamilies").iter().zip(items(old, "ipFamilies")).any(|(a, b)| a != b)
    {
        let families = new["ipFamilies"].clone();
        errors.push(FieldError::invalid("spec.ipFamilies[0]", families, "may not change once set"));
    }
    errors
}
