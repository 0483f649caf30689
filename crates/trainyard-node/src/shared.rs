//! What all pods of the agent share. Owns no policy.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use kube::Client;
use tokio_util::sync::CancellationToken;
use trainyard_api::quantity;
use trainyard_holder::protocol::Isolation;
use trainyard_image::Images;

use crate::accounts::Accounts;
use crate::addresses::Addresses;
use crate::env::Facts;
use crate::events::Events;
use crate::net::names::{Answer, Names};
use crate::net::outbound::Outbound;
use crate::net::resolv::Resolver;
use crate::node::Devices;
use crate::objects::ApiObjects;
use crate::pod::{Backoff, Live};
use crate::volumes::Folders;
use crate::yard::Yard;

/// Durations that tests shorten.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Between crashes of a container.
    pub(crate) crash: Backoff,
    /// Between attempts to have an image.
    pub(crate) image: Backoff,
    /// Between attempts at what only the user can mend.
    pub(crate) config_retry: Duration,
    /// For pods whose object was removed by force.
    pub(crate) forced_grace: Duration,
    /// For pods that run when the agent is told to end.
    pub(crate) closing_grace: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            crash: Backoff::default(),
            image: Backoff::default(),
            config_retry: Duration::from_secs(10),
            forced_grace: Duration::from_secs(1),
            closing_grace: Duration::from_secs(10),
        }
    }
}

/// One of this agent's nodes.
#[derive(Debug, Clone)]
pub(crate) struct VirtualNode {
    /// Its name.
    pub(crate) name: String,
    /// Its address on the pods' network.
    pub(crate) address: Ipv4Addr,
    /// What its pods may ask for in all.
    pub(crate) allocatable: BTreeMap<String, Written>,
    /// Its GPUs.
    pub(crate) devices: Arc<Mutex<Devices>>,
}

/// What all pods share.
pub(crate) struct Shared {
    pub(crate) accounts: Accounts,
    pub(crate) yard: Yard,
    pub(crate) images: Images,
    /// Pods may ask for packages.
    pub(crate) takes_requirements: bool,
    /// What is not about one pod.
    pub(crate) objects: ApiObjects,
    pub(crate) events: Events,
    pub(crate) names: Names,
    pub(crate) timing: Timing,
    /// Processes and threads that each pod may have.
    pub(crate) pod_pids_limit: u64,
    pub(crate) nodes: BTreeMap<String, VirtualNode>,
    pub(crate) places: Places,
    /// Folders of the machine that pods write to.
    pub(crate) written: Arc<crate::volumes::Written>,
    /// What tells this cluster from others, where that is known.
    pub(crate) cluster: Option<String>,
    pub(crate) network: Network,
    /// How isolated pods are.
    pub(crate) isolation: Isolation,
    /// The library in front of pods on the machine's own network, where they are there.
    pub(crate) shim: Option<PathBuf>,
    /// The agent is to end.
    pub(crate) closing: CancellationToken,
    /// Its pods have ended too.
    pub(crate) closed: CancellationToken,
    /// Since when it runs.
    pub(crate) began: Timestamp,
    pub(crate) addresses: Mutex<Addresses>,
    pub(crate) pods: Mutex<BTreeMap<String, Arc<Live>>>,
}

/// Where things lie on disk.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Folders of running pods.
    pub(crate) pods: PathBuf,
    /// Logs, kept after their pods.
    pub(crate) logs: PathBuf,
    /// What claims are backed by.
    pub(crate) claims: PathBuf,
}

/// What pods are told of the network.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    /// How names are resolved where datagrams find their way out; none: as on the host.
    pub(crate) resolver: Option<Resolver>,
    /// The pods' network.
    pub(crate) cluster: Option<Ipv4Net>,
    /// How pods reach the world.
    pub(crate) outbound: Outbound,
    /// Host and port of the API server, from the machine's own network.
    pub(crate) api_server: Option<String>,
}

impl Network {
    /// How names are resolved by containers that start now; none: as on the host.
    pub(crate) fn resolver(&self) -> Option<Resolver> {
        let confined = self.cluster.filter(|_| !self.outbound.takes_datagrams());
        self.resolver.clone().map(|resolver| Resolver { confined, ..resolver })
    }
}

impl Shared {
    /// The node a pod is bound to.
    pub(crate) fn node_of(&self, pod: &Pod) -> Option<&VirtualNode> {
        self.nodes.get(pod.spec.as_ref()?.node_name.as_ref()?)
    }

    /// The client by which a pod's node asks.
    pub(crate) fn client_of(&self, pod: &Pod) -> &Client {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        self.accounts.of(node.unwrap_or_default())
    }

    /// What a pod names, as its node may read it.
    pub(crate) fn objects_of(&self, pod: &Pod) -> ApiObjects {
        ApiObjects::new(self.client_of(pod).clone())
    }

    /// The address of a pod's node.
    pub(crate) fn node_address(&self, pod: &Pod) -> Ipv4Addr {
        self.node_of(pod).map_or(Ipv4Addr::LOCALHOST, |node| node.address)
    }

    /// An address for a pod, unless it uses its node's.
    pub(crate) fn address_for(&self, pod: &Pod) -> Option<Ipv4Addr> {
        let on_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
        let address = if on_host { None } else { lock(&self.addresses).take() };
        if let (Some(address), Some(namespace)) = (address, pod.metadata.namespace.as_deref()) {
            self.names.put_pod(address, namespace);
        }
        address
    }

    /// A pod's address is free again.
    pub(crate) fn give_back(&self, address: Ipv4Addr) {
        self.names.remove_pod(address);
        lock(&self.addresses).give_back(address);
    }

    /// What a pod can be told of itself.
    pub(crate) fn facts(&self, pod: &Pod, address: Option<Ipv4Addr>) -> Facts {
        let host_ip = self.node_address(pod);
        Facts {
            pod_ip: address.or(Some(host_ip)),
            host_ip,
            node_name: self.node_of(pod).map(|node| node.name.clone()).unwrap_or_default(),
            allocatable: self.node_of(pod).map(amounts).unwrap_or_default(),
        }
    }

    /// A pod's folders.
    pub(crate) fn folders(&self, uid: &str) -> Folders {
        Folders {
            ephemeral: self.places.pods.join(uid),
            claims: self.places.claims.clone(),
            cluster: self.cluster.clone(),
            written: Arc::clone(&self.written),
        }
    }

    /// The address of a name of the pods' network.
    pub(crate) fn resolve(&self, name: &str) -> Option<Ipv4Addr> {
        match self.names.lookup(name) {
            Answer::Found(addresses) => addresses.first().copied(),
            _ => None,
        }
    }

    /// A container has ended; its devices are free again.
    pub(crate) fn release_devices(&self, container: &str) {
        for node in self.nodes.values() {
            lock(&node.devices).give_back(container);
        }
    }

    /// The holder has ended, and all pods with it.
    pub(crate) fn holder_ended(&self) -> bool {
        self.yard.has_ended()
    }
}

fn amounts(node: &VirtualNode) -> BTreeMap<String, quantity::Quantity> {
    let read = |(name, written): (&String, &Written)| {
        Some((name.clone(), quantity::parse(&written.0).ok()?))
    };
    node.allocatable.iter().filter_map(read).collect()
}

/// A pod's folder for what is made for one run of one of its containers.
pub(crate) fn run_folder(ephemeral: &Path, run: &str) -> PathBuf {
    ephemeral.join("containers").join(run)
}

/// The inside of a mutex; a panic elsewhere has left it as whole as this crate's changes are.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
