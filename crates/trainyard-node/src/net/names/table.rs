//! What each name means: the rules of the cluster's DNS over services, endpoint slices and nodes.
//!
//! Only the few fields that names need are kept of each object. Pure: no clock, no I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddrV4},
};

use ipnet::Ipv4Net;
use k8s_openapi::{
    api::{
        core::v1::{Pod, Service as ApiService},
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{Answer, Owner};
use crate::net::CLUSTER_DOMAIN;

/// The label of a slice that names its service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// The API server's service.
const API_SERVICE: &str = "default/kubernetes";

/// Namespace and name as one text, `namespace/name`.
pub(super) type Key = Box<str>;

/// What is kept of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Service {
    /// Its own addresses of version 4; none for a headless one.
    pub(super) addresses: Box<[Ipv4Addr]>,
    /// Endpoints have names before they are ready.
    publishes_early: bool,
    /// Stands for this name.
    alias: Option<Box<str>>,
    /// Its ports, in the order given.
    pub(super) ports: Box<[Port]>,
    /// Labels of its pods.
    selector: Option<BTreeMap<String, String>>,
}

/// What is kept of a service's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) name: Box<str>,
    pub(super) number: i32,
    pub(super) protocol: Box<str>,
}

/// What is kept of an endpoint: one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Endpoint {
    address: Ipv4Addr,
    hostname: Option<Box<str>>,
    ready: bool,
}

impl Endpoint {
    /// The label it is found by below its service.
    fn label(&self) -> String {
        match &self.hostname {
            Some(hostname) => hostname.to_string(),
            None => self.address.to_string().replace('.', "-"),
        }
    }
}

/// What is kept of an endpoint slice.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slice {
    endpoints: Box<[Endpoint]>,
    /// Its TCP ports by the names that the service gives them.
    ports: Box<[(Box<str>, u16)]>,
}

/// A TCP port that a service answers on at its own address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Front {
    service: Key,
    port: Box<str>,
    /// Where pods connect to.
    pub(crate) address: SocketAddrV4,
}

/// What is kept of a pod that is an endpoint without a slice that says so.
#[derive(Debug, Clone)]
struct Unlisted {
    labels: BTreeMap<String, String>,
    /// The service that gives it its host name.
    subdomain: Option<Box<str>>,
    endpoint: Endpoint,
}

impl Unlisted {
    /// As the endpoint of a service, if it is one.
    fn endpoint_of(&self, name: &str, service: &Service) -> Option<Endpoint> {
        let wanted = service.selector.as_ref()?;
        if !wanted.iter().all(|(label, value)| self.labels.get(label) == Some(value)) {
            return None;
        }
        let mut endpoint = self.endpoint.clone();
        if self.subdomain.as_deref() != Some(name) {
            endpoint.hostname = None;
        }
        Some(endpoint)
    }
}

/// Services, endpoints and nodes, by name.
#[derive(Debug, Default)]
pub(super) struct Table {
    services: BTreeMap<Key, Service>,
    /// Slices by service.
    endpoints: BTreeMap<Key, BTreeMap<Key, Slice>>,
    /// The service of each slice, as a changed slice may name another one than before.
    slices: BTreeMap<Key, Key>,
    nodes: BTreeMap<Box<str>, Ipv4Addr>,
    /// Pods whose addresses no slice may hold: loopback ones are refused there.
    unlisted: BTreeMap<Key, Unlisted>,
    /// The namespace of the pod that has an address now.
    pods: BTreeMap<Ipv4Addr, Box<str>>,
    networks: Vec<Ipv4Net>,
}

/// The key of an object.
pub(super) fn key(metadata: &ObjectMeta) -> Key {
    let part = |part: &Option<String>| part.as_deref().unwrap_or_default().to_owned();
    join(&part(&metadata.namespace), &part(&metadata.name))
}

fn join(namespace: &str, name: &str) -> Key {
    format!("{namespace}/{name}").into_boxed_str()
}

impl Table {
    pub(super) fn put_service(&mut self, service: &ApiService) {
        let spec = service.spec.clone().unwrap_or_default();
        let mut texts = spec.cluster_ips.unwrap_or_default();
        if texts.is_empty() {
            texts.extend(spec.cluster_ip);
        }
        let alias = (spec.type_.as_deref() == Some("ExternalName"))
            .then(|| spec.external_name.unwrap_or_default())
            .map(|name| name.trim_end_matches('.').to_ascii_lowercase().into_boxed_str());
        let port = |port: k8s_openapi::api::core::v1::ServicePort| Port {
            name: port.name.unwrap_or_default().into(),
            number: port.port,
            protocol: port.protocol.unwrap_or_else(|| "TCP".into()).into(),
        };
        let kept = Service {
            addresses: texts.iter().filter_map(|text| text.parse().ok()).collect(),
            publishes_early: spec.publish_not_ready_addresses.unwrap_or(false),
            alias,
            ports: spec.ports.unwrap_or_default().into_iter().map(port).collect(),
            selector: spec.selector.filter(|selector| !selector.is_empty()),
        };
        self.services.insert(key(&service.metadata), kept);
    }

    pub(super) fn remove_service(&mut self, key: &str) {
        self.services.remove(key);
    }

    pub(super) fn put_slice(&mut self, slice: &EndpointSlice) {
        let key = key(&slice.metadata);
        self.remove_slice(&key);
        let labels = slice.metadata.labels.as_ref();
        let Some(service) = labels.and_then(|labels| labels.get(SERVICE_NAME)) else { return };
        if slice.address_type != "IPv4" {
            return;
        }
        let service = join(slice.metadata.namespace.as_deref().unwrap_or_default(), service);
        let endpoints = slice.endpoints.iter().filter_map(|endpoint| {
            let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
            // All addresses of an endpoint are the same one; the first is as good as any.
            endpoint.addresses.first().and_then(|text| text.parse().ok()).map(|address| Endpoint {
                address,
                hostname: endpoint.hostname.as_deref().map(|name| name.to_ascii_lowercase().into()),
                ready: ready != Some(false),
            })
        });
        let kept = Slice { endpoints: endpoints.collect(), ports: tcp_ports(slice) };
        self.endpoints.entry(service.clone()).or_default().insert(key.clone(), kept);
        self.slices.insert(key, service);
    }

    pub(super) fn remove_slice(&mut self, key: &str) {
        let Some(service) = self.slices.remove(key) else { return };
        if let Some(slices) = self.endpoints.get_mut(&service) {
            slices.remove(key);
            if slices.is_empty() {
                self.endpoints.remove(&service);
            }
        }
    }

    /// Forgets services that a complete list did not show.
    pub(super) fn keep_services(&mut self, seen: &BTreeSet<Key>) {
        self.services.retain(|key, _| seen.contains(key));
    }

    /// Forgets slices that a complete list did not show.
    pub(super) fn keep_slices(&mut self, seen: &BTreeSet<Key>) {
        let gone: Vec<Key> =
            self.slices.keys().filter(|key| !seen.contains(*key)).cloned().collect();
        for key in gone {
            self.remove_slice(&key);
        }
    }

    pub(super) fn set_nodes(&mut self, nodes: Vec<(String, Ipv4Addr)>) {
        self.nodes = nodes
            .into_iter()
            .map(|(name, address)| (name.to_ascii_lowercase().into(), address))
            .collect();
    }

    pub(super) fn set_networks(&mut self, networks: Vec<Ipv4Net>) {
        self.networks = networks;
    }

    pub(super) fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.get(&join(namespace, name))
    }

    /// The services of a namespace by name.
    pub(super) fn services_of<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Service)> {
        let all = self.services.range(join(namespace, "")..);
        all.map_while(move |(key, service)| {
            key.strip_prefix(namespace)?.strip_prefix('/').map(|name| (name, service))
        })
    }

    pub(super) fn lookup(&self, query: &str) -> Answer {
        let name = query.strip_suffix('.').unwrap_or(query).to_ascii_lowercase();
        if let Some(address) = self.nodes.get(name.as_str()) {
            return Answer::Found(vec![*address]);
        }
        let Some(inside) = inside(&name) else { return Answer::Elsewhere };
        match self.inside(inside) {
            Answer::Unknown => match self.node_below(inside) {
                Some(address) => Answer::Found(vec![address]),
                None => Answer::Unknown,
            },
            answer => answer,
        }
    }

    /// A name without the cluster's domain.
    fn inside(&self, name: &str) -> Answer {
        let labels: Vec<&str> = name.rsplit('.').collect();
        match labels[..] {
            ["" | "svc" | "pod"] | ["pod", _] => Answer::Found(Vec::new()),
            ["svc", namespace] => match self.services_of(namespace).next() {
                Some(_) => Answer::Found(Vec::new()),
                None => Answer::Unknown,
            },
            ["svc", namespace, service] => self.service_answer(&join(namespace, service)),
            ["svc", namespace, service, host] => self.host_answer(&join(namespace, service), host),
            ["pod", _, dashed] => match dashed.replace('-', ".").parse() {
                Ok(address) => Answer::Found(vec![address]),
                Err(_) => Answer::Unknown,
            },
            _ => Answer::Unknown,
        }
    }

    fn service_answer(&self, key: &str) -> Answer {
        let Some(service) = self.services.get(key) else { return Answer::Unknown };
        if let Some(alias) = &service.alias {
            return Answer::Alias(alias.to_string());
        }
        if !service.addresses.is_empty() {
            return Answer::Found(service.addresses.to_vec());
        }
        found(self.reachable(key, service).map(|endpoint| endpoint.address))
    }

    fn host_answer(&self, key: &str, host: &str) -> Answer {
        let Some(service) = self.services.get(key) else { return Answer::Unknown };
        let named = self.reachable(key, service).filter(|endpoint| endpoint.label() == host);
        found(named.map(|endpoint| endpoint.address))
    }

    /// The endpoints of a service that have a name now.
    fn reachable<'a>(
        &'a self,
        key: &'a str,
        service: &'a Service,
    ) -> impl Iterator<Item = Endpoint> + 'a {
        let slices = self.endpoints.get(key).into_iter().flat_map(BTreeMap::values);
        let listed = slices.flat_map(|slice| slice.endpoints.iter().cloned());
        let (namespace, name) = key.split_once('/').unwrap_or_default();
        let near = self.unlisted.range(join(namespace, "")..);
        let near = near.take_while(move |(pod, _)| {
            pod.strip_prefix(namespace).is_some_and(|rest| rest.starts_with('/'))
        });
        let unlisted = near.filter_map(move |(_, pod)| pod.endpoint_of(name, service));
        listed.chain(unlisted).filter(|endpoint| endpoint.ready || service.publishes_early)
    }

    pub(super) fn put_unlisted(&mut self, pod: &Pod) {
        let key = key(&pod.metadata);
        let status = pod.status.as_ref();
        let address = status.and_then(|s| s.pod_ip.as_deref()).and_then(|text| text.parse().ok());
        let ended = matches!(status.and_then(|s| s.phase.as_deref()), Some("Succeeded" | "Failed"));
        let Some(address) = address.filter(|_| !ended) else {
            self.unlisted.remove(&key);
            return;
        };
        let mut conditions = status.iter().flat_map(|s| s.conditions.iter().flatten());
        let ready = conditions.any(|c| c.type_ == "Ready" && c.status == "True");
        let spec = pod.spec.as_ref();
        let hostname = spec.and_then(|s| s.hostname.as_deref()).filter(|name| !name.is_empty());
        let endpoint = Endpoint {
            address,
            hostname: hostname.map(Into::into),
            ready: ready && pod.metadata.deletion_timestamp.is_none(),
        };
        let labels = pod.metadata.labels.clone().unwrap_or_default();
        let subdomain = spec.and_then(|s| s.subdomain.as_deref()).map(Into::into);
        self.unlisted.insert(key, Unlisted { labels, subdomain, endpoint });
    }

    pub(super) fn remove_unlisted(&mut self, key: &str) {
        self.unlisted.remove(key);
    }

    /// What is to be answered at services' own addresses. The API server's is answered otherwise: it
    /// has no pods behind it.
    pub(super) fn fronts(&self) -> Vec<Front> {
        let all = self.services.iter().filter(|(key, _)| key.as_ref() != API_SERVICE);
        all.flat_map(|(key, service)| {
            let ports = service.ports.iter().filter(|port| &*port.protocol == "TCP");
            let numbers = ports.filter_map(|p| Some((p, u16::try_from(p.number).ok()?)));
            numbers.filter_map(|(port, number)| {
                let address = SocketAddrV4::new(*service.addresses.first()?, number);
                Some(Front { service: key.clone(), port: port.name.clone(), address })
            })
        })
        .collect()
    }

    /// Who answers for a service's port now, sorted.
    pub(super) fn backs(&self, front: &Front) -> Vec<SocketAddrV4> {
        let Some(service) = self.services.get(&front.service) else { return Vec::new() };
        let slices = self.endpoints.get(&front.service).into_iter().flat_map(BTreeMap::values);
        let found: BTreeSet<SocketAddrV4> = slices
            .filter_map(|slice| {
                let port = slice.ports.iter().find(|(name, _)| *name == front.port)?.1;
                Some((slice, port))
            })
            .flat_map(|(slice, port)| slice.endpoints.iter().map(move |e| (e, port)))
            .filter(|(endpoint, _)| endpoint.ready || service.publishes_early)
            .map(|(endpoint, port)| SocketAddrV4::new(endpoint.address, port))
            .collect();
        found.into_iter().collect()
    }

    pub(super) fn put_pod(&mut self, address: Ipv4Addr, namespace: &str) {
        self.pods.insert(address, namespace.into());
    }

    pub(super) fn remove_pod(&mut self, address: Ipv4Addr) {
        self.pods.remove(&address);
        self.unlisted.retain(|_, pod| pod.endpoint.address != address);
    }

    /// What a host means to the pod at `viewer`: tried with the domains of its search list first, as its
    /// own resolver would.
    pub(super) fn lookup_from(&self, viewer: Ipv4Addr, host: &str) -> Answer {
        if let Ok(address) = host.parse() {
            return match self.owner(address) {
                Owner::Elsewhere => Answer::Elsewhere,
                _ => Answer::Found(vec![address]),
            };
        }
        let near = self.pods.get(&viewer).map(|namespace| format!("{namespace}.svc."));
        let domains = [near, Some("svc.".to_owned()), Some(String::new())];
        let searched = domains.into_iter().flatten().filter(|_| !host.ends_with('.'));
        let full = searched.map(|domain| format!("{host}.{domain}{CLUSTER_DOMAIN}"));
        let known = |answer: &Answer| {
            !matches!(answer, Answer::Unknown) && *answer != Answer::Found(Vec::new())
        };
        let found = full.map(|name| self.lookup(&name)).find(known);
        found.unwrap_or_else(|| self.lookup(host))
    }

    /// A node's name that a resolver has tried with a domain of its search list.
    fn node_below(&self, inside: &str) -> Option<Ipv4Addr> {
        let below_svc = inside.strip_suffix(".svc");
        let below_namespace =
            below_svc.and_then(|rest| rest.rsplit_once('.')).map(|(node, _)| node);
        let mut candidates = [Some(inside), below_svc, below_namespace].into_iter().flatten();
        candidates.find_map(|name| self.nodes.get(name).copied())
    }

    pub(super) fn owner(&self, address: Ipv4Addr) -> Owner {
        let node = self.nodes.iter().filter(|(_, of_node)| **of_node == address);
        let mut names: Vec<String> = node.map(|(name, _)| name.to_string()).collect();
        for (key, service) in &self.services {
            if service.addresses.contains(&address) {
                names.push(full_name(key));
            }
            let endpoints =
                self.reachable(key, service).filter(|endpoint| endpoint.address == address);
            names.extend(
                endpoints.map(|endpoint| format!("{}.{}", endpoint.label(), full_name(key))),
            );
        }
        match names.is_empty() {
            false => Owner::Known(names),
            true if self.networks.iter().any(|network| network.contains(&address)) => {
                Owner::Nameless
            }
            true => Owner::Elsewhere,
        }
    }

    pub(super) fn hosts_lines(&self, viewer: &str) -> String {
        let mut lines = String::new();
        let mut line = |address: Ipv4Addr, below: &str, namespace: &str| {
            let near = if namespace == viewer { format!("\t{below}") } else { String::new() };
            let name = format!("{below}.{namespace}");
            // Writing to a String cannot fail.
            let _ =
                writeln!(lines, "{address}\t{name}.svc.{CLUSTER_DOMAIN}\t{name}.svc\t{name}{near}");
        };
        for (key, service) in &self.services {
            let Some((namespace, name)) = key.split_once('/') else { continue };
            if let Answer::Found(addresses) = self.service_answer(key) {
                for address in addresses {
                    line(address, name, namespace);
                }
            }
            for endpoint in self.reachable(key, service) {
                if let Some(hostname) = &endpoint.hostname {
                    line(endpoint.address, &format!("{hostname}.{name}"), namespace);
                }
            }
        }
        for (name, address) in &self.nodes {
            let _ = writeln!(lines, "{address}\t{name}");
        }
        lines
    }
}

/// What stands before the cluster's domain, if the name is ours. `….svc` is taken for ours too: there is
/// no such domain outside, and pods on the node's network ask for it without a search list.
fn inside(name: &str) -> Option<&str> {
    if name == CLUSTER_DOMAIN {
        return Some("");
    }
    match name.strip_suffix(CLUSTER_DOMAIN) {
        Some(before) => before.strip_suffix('.'),
        None => name.rsplit_once('.').is_some_and(|(_, last)| last == "svc").then_some(name),
    }
}

fn tcp_ports(slice: &EndpointSlice) -> Box<[(Box<str>, u16)]> {
    let ports = slice.ports.iter().flatten();
    let tcp = ports.filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
    tcp.filter_map(|port| {
        let name = port.name.as_deref().unwrap_or_default();
        Some((name.into(), u16::try_from(port.port?).ok()?))
    })
    .collect()
}

/// `namespace/name` as the service's full name.
fn full_name(key: &str) -> String {
    let (namespace, name) = key.split_once('/').unwrap_or_default();
    format!("{name}.{namespace}.svc.{CLUSTER_DOMAIN}")
}

/// A name with no endpoint behind it does not exist.
fn found(addresses: impl Iterator<Item = Ipv4Addr>) -> Answer {
    let addresses: BTreeSet<Ipv4Addr> = addresses.collect();
    if addresses.is_empty() {
        Answer::Unknown
    } else {
        Answer::Found(addresses.into_iter().collect())
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
