//! The older form of the same: one `Endpoints` object per service. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::desired::{HEADLESS, Port, TargetRef, label_patch};
use super::view::{Pod, Service};
use crate::controllers::view::null_is_empty;

/// More than these are cut off.
const CAPACITY: usize = 1000;
pub(super) const MANAGED_BY: (&str, &str) =
    ("endpoints.kubernetes.io/managed-by", "endpoint-controller");
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// Addresses that share their ports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Subset {
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<Address>,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    not_ready_addresses: Vec<Address>,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    ports: Vec<SubsetPort>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Address {
    ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
    target_ref: TargetRef,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SubsetPort {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    port: u16,
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_protocol: Option<String>,
}

/// An `Endpoints` object, as far as this controller writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Endpoints {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) subsets: Vec<Subset>,
    pub(super) cut: bool,
}

/// The endpoints of a service that selects these pods.
pub(super) fn desired<'a>(service: &Service, pods: impl Iterator<Item = &'a Pod>) -> Endpoints {
    let six = service.families.first().copied().unwrap_or(false);
    let mut found: Vec<(Vec<Port>, bool, IpAddr, &Pod)> = Vec::new();
    for pod in pods.filter(|pod| service.publishes_not_ready || !pod.terminating) {
        let Some(address) = pod.address(six) else { continue };
        let ports: Vec<Port> = service
            .ports
            .iter()
            .filter_map(|port| {
                Some(Port {
                    name: port.name.clone(),
                    protocol: port.protocol.clone(),
                    number: pod.port(port)?,
                    app_protocol: port.app_protocol.clone(),
                })
            })
            .collect();
        if ports.is_empty() && !(service.headless && service.ports.is_empty()) {
            continue;
        }
        found.push((ports, service.publishes_not_ready || pod.ready, address, pod));
    }
    // The ready ones first, so that they are the last to be cut off.
    found.sort_by(|one, other| (!one.1, one.2, &one.3.uid).cmp(&(!other.1, other.2, &other.3.uid)));
    let cut = found.len() > CAPACITY;
    found.truncate(CAPACITY);
    let mut subsets: BTreeMap<Vec<Port>, Subset> = BTreeMap::new();
    for (ports, ready, address, pod) in found {
        let subset = subsets.entry(ports).or_default();
        let list = if ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        list.push(Address {
            ip: address.to_string(),
            hostname: pod.hostname_in(service).map(str::to_owned),
            node_name: (!pod.node.is_empty()).then(|| pod.node.clone()),
            target_ref: TargetRef::to(pod),
        });
    }
    let with_ports = |(ports, mut subset): (Vec<Port>, Subset)| {
        subset.ports = ports
            .into_iter()
            .map(|Port { name, protocol, number, app_protocol }| SubsetPort {
                name,
                port: number,
                protocol,
                app_protocol,
            })
            .collect();
        subset.ports.sort();
        subset
    };
    let mut subsets: Vec<Subset> = subsets.into_iter().map(with_ports).collect();
    subsets.sort_by(|one, other| one.ports.cmp(&other.ports));
    Endpoints { labels: labels(service), subsets, cut }
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    labels
}

impl Endpoints {
    /// What is there, as served; servers have an order of their own.
    pub(super) fn read(
        labels: BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
        mut subsets: Vec<Subset>,
    ) -> Self {
        let place =
            |address: &Address| (address.ip.parse::<IpAddr>().ok(), address.target_ref.uid.clone());
        for subset in &mut subsets {
            subset.addresses.sort_by_cached_key(place);
            subset.not_ready_addresses.sort_by_cached_key(place);
            subset.ports.sort();
        }
        subsets.sort_by(|one, other| one.ports.cmp(&other.ports));
        Self { labels, subsets, cut: annotations.contains_key(OVER_CAPACITY) }
    }

    /// The object to create.
    pub(super) fn object(&self, service: &Service) -> Value {
        let mut object = json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": service.name, "namespace": service.namespace, "labels": self.labels,
            },
            "subsets": self.subsets,
        });
        if self.cut {
            object["metadata"]["annotations"] = json!({OVER_CAPACITY: "truncated"});
        }
        object
    }

    /// What turns another state into this one.
    pub(super) fn patch(&self, old: &Self) -> Value {
        let cut = if self.cut { json!("truncated") } else { Value::Null };
        json!({
            "metadata": {
                "labels": label_patch(&self.labels, &old.labels),
                "annotations": {OVER_CAPACITY: cut},
            },
            "subsets": self.subsets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::desired::tests::{pod, service};
    use super::*;

    #[test]
    fn ready_and_not_ready_stand_apart() {
        let service = service(&json!({}));
        let pods =
            [pod("b", "10.0.0.2", false), pod("c", "10.0.0.3", true), pod("a", "10.0.0.1", true)];
        let object = desired(&service, pods.iter()).object(&service);
        let subset = &object["subsets"][0];
        assert_eq!(subset["addresses"][0]["ip"], "10.0.0.1");
        assert_eq!(subset["addresses"][1]["ip"], "10.0.0.3");
        assert_eq!(subset["notReadyAddresses"][0]["ip"], "10.0.0.2");
        assert_eq!(subset["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
        assert_eq!(object["metadata"]["labels"][MANAGED_BY.0], MANAGED_BY.1);
    }

    #[test]
    fn terminating_pods_are_in_only_where_all_are_wanted() {
        let mut going = pod("a", "10.0.0.1", true);
        going.terminating = true;
        assert!(desired(&service(&json!({})), [&going].into_iter()).subsets.is_empty());
        let all = service(&json!({"publishNotReadyAddresses": true}));
        assert_eq!(desired(&all, [&going].into_iter()).subsets.len(), 1);
    }

    #[test]
    fn a_headless_service_needs_no_ports() {
        let headless = service(&json!({"clusterIP": "None", "ports": []}));
        let made = desired(&headless, [&pod("a", "10.0.0.1", true)].into_iter());
        assert_eq!(made.subsets[0].addresses.len(), 1);
        assert!(made.object(&headless)["subsets"][0].get("ports").is_none());
    }

    #[test]
    fn what_is_too_much_is_cut_the_ready_last() {
        let service = service(&json!({}));
        let pods: Vec<Pod> = (0..1200)
            .map(|at| pod(&format!("p{at}"), &format!("10.1.{}.{}", at / 256, at % 256), at >= 600))
            .collect();
        let made = desired(&service, pods.iter());
        assert!(made.cut);
        assert_eq!(made.subsets[0].addresses.len(), 600);
        assert_eq!(made.subsets[0].not_ready_addresses.len(), 400);
        let object = made.object(&service);
        assert_eq!(object["metadata"]["annotations"][OVER_CAPACITY], "truncated");
    }
}
