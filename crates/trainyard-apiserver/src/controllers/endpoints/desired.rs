//! Which endpoint slices a service should have. Pure.
//!
//! Their names follow from their contents' place, so that making one twice is met with "exists".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::view::{Pod, Service};
use crate::controllers::view::null_is_empty;

/// As many endpoints as one slice holds.
const PER_SLICE: usize = 100;
/// Who writes these slices.
pub(super) const MANAGED_BY: (&str, &str) =
    ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io");
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";

/// A port of a slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) protocol: String,
    #[serde(rename = "port")]
    pub(super) number: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) app_protocol: Option<String>,
}

/// One endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Endpoint {
    #[serde(deserialize_with = "null_is_empty")]
    addresses: Vec<String>,
    conditions: Conditions,
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
    target_ref: TargetRef,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: bool,
    serving: bool,
    terminating: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TargetRef {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl TargetRef {
    pub(super) fn to(pod: &Pod) -> Self {
        Self {
            kind: "Pod".to_owned(),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        }
    }
}

/// A slice, as far as this controller writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) name: String,
    pub(super) service_uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) address_type: String,
    pub(super) ports: Vec<Port>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// The slices of a service that selects these pods.
pub(super) fn desired<'a>(
    service: &Service,
    pods: &(impl Iterator<Item = &'a Pod> + Clone),
) -> Vec<Slice> {
    let mut slices = Vec::new();
    for six in &service.families {
        let mut groups: BTreeMap<Vec<Port>, Vec<&Pod>> = BTreeMap::new();
        for pod in pods.clone().filter(|pod| pod.address(*six).is_some()) {
            groups.entry(ports(service, pod)).or_default().push(pod);
        }
        if groups.is_empty() {
            // A service is never without a slice: whoever looks sees that it has no endpoints.
            groups.insert(Vec::new(), Vec::new());
        }
        for (ports, mut pods) in groups {
            pods.sort_by(|one, other| one.name.cmp(&other.name));
            let mut chunks: Vec<&[&Pod]> = pods.chunks(PER_SLICE).collect();
            if chunks.is_empty() {
                chunks.push(&[]);
            }
            for (place, chunk) in chunks.into_iter().enumerate() {
                slices.push(Slice {
                    name: name(service, *six, &ports, place),
                    service_uid: service.uid.clone(),
                    labels: labels(service),
                    address_type: if *six { "IPv6" } else { "IPv4" }.to_owned(),
                    ports: ports.clone(),
                    endpoints: chunk.iter().map(|pod| endpoint(service, pod, *six)).collect(),
                });
            }
        }
    }
    slices
}

fn ports(service: &Service, pod: &Pod) -> Vec<Port> {
    let port = |port: &super::view::ServicePort| {
        Some(Port {
            name: port.name.clone(),
            protocol: port.protocol.clone(),
            number: pod.port(port)?,
            app_protocol: port.app_protocol.clone(),
        })
    };
    service.ports.iter().filter_map(port).collect()
}

fn endpoint(service: &Service, pod: &Pod, six: bool) -> Endpoint {
    let of_family = pod.addresses.iter().filter(|address| address.is_ipv6() == six);
    let ready = service.publishes_not_ready || (pod.ready && !pod.terminating);
    Endpoint {
        addresses: of_family.map(ToString::to_string).collect(),
        conditions: Conditions { ready, serving: pod.ready, terminating: pod.terminating },
        hostname: pod.hostname_in(service).map(str::to_owned),
        node_name: (!pod.node.is_empty()).then(|| pod.node.clone()),
        target_ref: TargetRef::to(pod),
    }
}

fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.name.clone());
    labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
    labels
}

/// The service's name and five letters that stand for the place.
fn name(service: &Service, six: bool, ports: &[Port], place: usize) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash = Sha256::new();
    hash.update(service.uid.as_bytes());
    hash.update([u8::from(six)]);
    hash.update(place.to_be_bytes());
    for port in ports {
        hash.update(format!("{}/{}/{};", port.name, port.protocol, port.number).as_bytes());
    }
    let digest = hash.finalize();
    let letter =
        |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied().unwrap_or(b'x');
    let letters: String = digest.iter().take(5).map(letter).map(char::from).collect();
    format!("{}-{letters}", service.name)
}

impl Slice {
    /// The object to create.
    pub(super) fn object(&self, service: &Service) -> Value {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": self.name, "namespace": service.namespace, "labels": self.labels,
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": service.name,
                    "uid": service.uid, "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "addressType": self.address_type,
            "ports": self.ports, "endpoints": self.endpoints,
        })
    }

    /// What turns another slice of this name into this one.
    pub(super) fn patch(&self, old: &Self) -> Value {
        json!({
            "metadata": {"labels": label_patch(&self.labels, &old.labels)},
            "ports": self.ports, "endpoints": self.endpoints,
        })
    }
}

/// Labels to write over others: what is to go is null.
pub(super) fn label_patch(new: &BTreeMap<String, String>, old: &BTreeMap<String, String>) -> Value {
    let mut patch = json!(new);
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch[key] = Value::Null;
    }
    patch
}

#[cfg(test)]
#[path = "desired_tests.rs"]
pub(super) mod tests;
