//! What is read of services and pods to say where a service's traffic goes. Two views that are equal
//! give the same endpoints.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use crate::controllers::view::{HasMeta, Meta, null_is_empty};

/// A service as it is served.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServedService {
    metadata: Meta,
    spec: ServiceSpec,
}

impl HasMeta for ServedService {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceSpec {
    r#type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    selector: Option<BTreeMap<String, String>>,
    #[serde(deserialize_with = "null_is_empty")]
    ports: Vec<ServicePort>,
    publish_not_ready_addresses: bool,
    #[serde(deserialize_with = "null_is_empty")]
    ip_families: Vec<String>,
}

/// A port of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ServicePort {
    pub(super) name: String,
    pub(super) protocol: String,
    pub(super) app_protocol: Option<String>,
    pub(super) target_port: Target,
    pub(super) port: u16,
}

/// Where a service's port leads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Target {
    Number(u16),
    Name(String),
}

impl Default for Target {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// A service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    /// `None` where others say what the endpoints are.
    pub(super) selector: Option<BTreeMap<String, String>>,
    pub(super) ports: Vec<ServicePort>,
    pub(super) headless: bool,
    pub(super) publishes_not_ready: bool,
    /// Whether IPv6 is wanted, by preference.
    pub(super) families: Vec<bool>,
}

impl From<ServedService> for Service {
    fn from(served: ServedService) -> Self {
        let ServedService { metadata, spec } = served;
        let external = spec.r#type == "ExternalName";
        let headless = spec.cluster_ip.is_empty() || spec.cluster_ip == "None";
        let mut families: Vec<bool> =
            spec.ip_families.iter().map(|family| family == "IPv6").collect();
        if families.is_empty() {
            families.push(spec.cluster_ip.parse().is_ok_and(|ip: IpAddr| ip.is_ipv6()));
        }
        let mut ports = spec.ports;
        for port in &mut ports {
            if port.protocol.is_empty() {
                "TCP".clone_into(&mut port.protocol);
            }
            if port.target_port == Target::default() {
                port.target_port = Target::Number(port.port);
            }
        }
        Self {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            selector: spec.selector.filter(|_| !external),
            ports,
            headless,
            publishes_not_ready: spec.publish_not_ready_addresses,
            families,
        }
    }
}

impl Service {
    /// Whether it sends traffic to pods with these labels.
    pub(super) fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let Some(selector) = &self.selector else { return false };
        selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// A pod as it is served.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServedPod {
    metadata: Meta,
    spec: PodSpec,
    status: PodStatus,
}

impl HasMeta for ServedPod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: String,
    hostname: String,
    subdomain: String,
    #[serde(deserialize_with = "null_is_empty")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "null_is_empty")]
    init_containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    #[serde(deserialize_with = "null_is_empty")]
    ports: Vec<ContainerPort>,
    restart_policy: String,
}

/// A port of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerPort {
    pub(super) name: String,
    pub(super) protocol: String,
    #[serde(rename = "containerPort")]
    pub(super) number: u16,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodStatus {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(deserialize_with = "null_is_empty", rename = "podIPs")]
    pod_ips: Vec<PodIp>,
    #[serde(deserialize_with = "null_is_empty")]
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodIp {
    ip: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) node: String,
    pub(super) hostname: String,
    pub(super) subdomain: String,
    /// Its named ports.
    pub(super) ports: Vec<ContainerPort>,
    /// Empty for a pod that has none yet, or has ended.
    pub(super) addresses: Vec<IpAddr>,
    pub(super) ready: bool,
    pub(super) terminating: bool,
}

impl From<ServedPod> for Pod {
    fn from(served: ServedPod) -> Self {
        let ServedPod { metadata, spec, status } = served;
        let ended = matches!(&*status.phase, "Succeeded" | "Failed");
        let mut addresses: Vec<IpAddr> =
            status.pod_ips.iter().filter_map(|ip| ip.ip.parse().ok()).collect();
        if addresses.is_empty() {
            addresses.extend(status.pod_ip.parse::<IpAddr>().ok());
        }
        if ended {
            addresses.clear();
        }
        let sidecars = spec.init_containers.into_iter().filter(|c| c.restart_policy == "Always");
        let ports =
            spec.containers.into_iter().chain(sidecars).flat_map(|container| container.ports);
        let named = ports.filter(|port| !port.name.is_empty()).map(|mut port| {
            if port.protocol.is_empty() {
                "TCP".clone_into(&mut port.protocol);
            }
            port
        });
        let ready = status.conditions.iter().any(|c| c.r#type == "Ready" && c.status == "True");
        let terminating = metadata.is_deleting();
        Self {
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            node: spec.node_name,
            hostname: spec.hostname,
            subdomain: spec.subdomain,
            ports: named.collect(),
            addresses,
            ready,
            terminating,
        }
    }
}

impl Pod {
    /// Its first address of a family.
    pub(super) fn address(&self, six: bool) -> Option<IpAddr> {
        self.addresses.iter().find(|address| address.is_ipv6() == six).copied()
    }

    /// The name that a service gives it.
    pub(super) fn hostname_in(&self, service: &Service) -> Option<&str> {
        let named = !self.hostname.is_empty()
            && self.subdomain == service.name
            && self.namespace == service.namespace;
        named.then_some(&*self.hostname)
    }

    /// Where a service's port leads here.
    pub(super) fn port(&self, port: &ServicePort) -> Option<u16> {
        match &port.target_port {
            Target::Number(number) => Some(*number),
            Target::Name(name) => self
                .ports
                .iter()
                .find(|there| there.name == *name && there.protocol == port.protocol)
                .map(|there| there.number),
        }
    }
}
