//! Where the traffic of services goes: endpoint slices, and the older `Endpoints`, of all services
//! that select pods.
//!
//! Must not know who reads them. What they should be is in [`desired`] and [`legacy`].

mod desired;
mod legacy;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use serde::Deserialize;

use super::calls::{Calls, Propagation, core, delete_options, object};
use super::error::{Error, unless_missing};
use super::follow::{News, Source, follow};
use super::queue::{Next, Queue};
use super::view::{HasMeta, Key, Meta};
use super::{Context, held};
use desired::{SERVICE_NAME, Slice};
use legacy::Endpoints;
use view::{Pod, ServedPod, ServedService, Service};

const WIDTH: usize = 8;
const DISCOVERY: &str = "/apis/discovery.k8s.io/v1";

/// What is known of the cluster.
#[derive(Debug, Default)]
struct Known {
    services: BTreeMap<Key, Service>,
    pods: BTreeMap<Key, Pod>,
    slices: BTreeMap<Key, BTreeMap<String, Slice>>,
    endpoints: BTreeMap<Key, Endpoints>,
    /// Whether services, pods, slices and endpoints have been listed.
    listed: [bool; 4],
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServedSlice {
    metadata: Meta,
    address_type: String,
    ports: Option<Vec<desired::Port>>,
    endpoints: Option<Vec<desired::Endpoint>>,
}

impl HasMeta for ServedSlice {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct ServedEndpoints {
    metadata: Meta,
    subsets: Option<Vec<legacy::Subset>>,
}

impl HasMeta for ServedEndpoints {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

struct Controller {
    calls: Calls,
    known: Mutex<Known>,
    queue: Queue<Key>,
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let controller =
        Controller { calls: context.calls, known: Mutex::default(), queue: Queue::new() };
    let this = &controller;
    let calls = &controller.calls;
    let source = Source::new("/api/v1/services");
    let services = follow(calls, &source, |news| this.hear_services(news));
    let source = Source::new("/api/v1/pods");
    let pods = follow(calls, &source, |news| this.hear_pods(news));
    let (label, value) = desired::MANAGED_BY;
    let source = Source::new(format!("{DISCOVERY}/endpointslices")).labelled(label, value);
    let slices = follow(calls, &source, |news| this.hear_slices(news));
    let source = Source::new("/api/v1/endpoints");
    let endpoints = follow(calls, &source, |news| this.hear_endpoints(news));
    let work = controller.queue.work(WIDTH, async |key: Key| this.attend(&key).await);
    tokio::join!(services, pods, slices, endpoints, work);
}

impl Controller {
    fn hear_services(&self, news: News<ServedService>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                let gone: Vec<Key> = known.services.keys().cloned().collect();
                known.services =
                    all.into_iter().map(|one| (one.meta().key(), one.into())).collect();
                known.listed[0] = true;
                // What has no service any more is looked at too.
                let left = known.endpoints.keys().chain(known.slices.keys()).cloned();
                let all: BTreeSet<Key> =
                    known.services.keys().cloned().chain(gone).chain(left).collect();
                self.queue.add_all(all);
            }
            News::There(one) => {
                let key = one.meta().key();
                let service = Service::from(one);
                if known.services.get(&key) != Some(&service) {
                    known.services.insert(key.clone(), service);
                    self.queue.add(key);
                }
            }
            News::Gone(one) => {
                let key = one.meta().key();
                known.services.remove(&key);
                self.queue.add(key);
            }
        }
    }

    fn hear_pods(&self, news: News<ServedPod>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                let before = std::mem::take(&mut known.pods);
                for pod in before.values() {
                    self.touch(&known, pod);
                }
                known.pods = all.into_iter().map(|one| (one.meta().key(), one.into())).collect();
                known.listed[1] = true;
                self.queue.add_all(known.services.keys().cloned());
            }
            News::There(one) => {
                let key = one.meta().key();
                let pod = Pod::from(one);
                let old = known.pods.get(&key);
                if old == Some(&pod) {
                    return;
                }
                if let Some(old) = old {
                    self.touch(&known, old);
                }
                self.touch(&known, &pod);
                known.pods.insert(key, pod);
            }
            News::Gone(one) => {
                if let Some(pod) = known.pods.remove(&one.meta().key()) {
                    self.touch(&known, &pod);
                }
            }
        }
    }

    /// Looks again at the services that select a pod.
    fn touch(&self, known: &Known, pod: &Pod) {
        for (key, service) in in_namespace(&known.services, &pod.namespace) {
            if service.selects(&pod.labels) {
                self.queue.add(key.clone());
            }
        }
    }

    fn hear_slices(&self, news: News<ServedSlice>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.slices.clear();
                for one in all {
                    let (key, slice) = read_slice(one);
                    known.slices.entry(key).or_default().insert(slice.name.clone(), slice);
                }
                known.listed[2] = true;
                let keys: BTreeSet<&Key> =
                    known.services.keys().chain(known.slices.keys()).collect();
                self.queue.add_all(keys.into_iter().cloned());
            }
            News::There(one) => {
                let (key, slice) = read_slice(one);
                known.slices.entry(key.clone()).or_default().insert(slice.name.clone(), slice);
                self.queue.add(key);
            }
            News::Gone(one) => {
                let (key, slice) = read_slice(one);
                if let Some(slices) = known.slices.get_mut(&key) {
                    slices.remove(&slice.name);
                    if slices.is_empty() {
                        known.slices.remove(&key);
                    }
                }
                self.queue.add(key);
            }
        }
    }

    fn hear_endpoints(&self, news: News<ServedEndpoints>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.endpoints = all.into_iter().map(read_endpoints).collect();
                known.listed[3] = true;
                let keys: BTreeSet<&Key> =
                    known.services.keys().chain(known.endpoints.keys()).collect();
                self.queue.add_all(keys.into_iter().cloned());
            }
            News::There(one) => {
                let (key, endpoints) = read_endpoints(one);
                known.endpoints.insert(key.clone(), endpoints);
                self.queue.add(key);
            }
            News::Gone(one) => {
                known.endpoints.remove(&one.meta().key());
                self.queue.add(one.meta().key());
            }
        }
    }

    async fn attend(&self, key: &Key) -> Result<Next, Error> {
        let (writes, leftover) = {
            let known = held(&self.known);
            if known.listed.contains(&false) {
                return Ok(Next::Rest);
            }
            match known.services.get(key) {
                Some(service) => (writes(&known, key, service), false),
                None => (Vec::new(), is_leftover(&known, key)),
            }
        };
        if leftover {
            let options = delete_options(Propagation::Background, None);
            let path = core(&key.namespace, "endpoints", &key.name);
            unless_missing(self.calls.delete(&path, &options).await)?;
        }
        for write in writes {
            self.write(key, write).await?;
        }
        Ok(Next::Rest)
    }

    async fn write(&self, key: &Key, write: Write) -> Result<(), Error> {
        let slice = |name: &str| object(DISCOVERY, &key.namespace, "endpointslices", name);
        let done = match write {
            Write::MakeSlice(object) => {
                self.calls.create_missing(&slice(""), &object).await.map(|_| ())
            }
            Write::ChangeSlice(name, patch) => self.calls.merge(&slice(&name), &patch).await,
            Write::DropSlice(name) => {
                let options = delete_options(Propagation::Background, None);
                self.calls.delete(&slice(&name), &options).await
            }
            Write::MakeEndpoints(object) => {
                let path = core(&key.namespace, "endpoints", "");
                self.calls.create_missing(&path, &object).await.map(|_| ())
            }
            Write::ChangeEndpoints(patch) => {
                self.calls.merge(&core(&key.namespace, "endpoints", &key.name), &patch).await
            }
        };
        match done {
            Err(error) if error.is_missing() || error.is_ending_namespace() => Ok(()),
            done => done,
        }
    }
}

/// A change that makes things right.
#[derive(Debug, PartialEq)]
enum Write {
    MakeSlice(serde_json::Value),
    ChangeSlice(String, serde_json::Value),
    DropSlice(String),
    MakeEndpoints(serde_json::Value),
    ChangeEndpoints(serde_json::Value),
}

/// What is to be written for a service.
fn writes(known: &Known, key: &Key, service: &Service) -> Vec<Write> {
    if service.selector.is_none() {
        // Others say where its traffic goes.
        return Vec::new();
    }
    let pods = in_namespace(&known.pods, &key.namespace).map(|(_, pod)| pod);
    let pods = pods.filter(|pod| service.selects(&pod.labels));
    let mut writes = Vec::new();
    let wanted = desired::desired(service, &pods);
    let empty = BTreeMap::new();
    let there = known.slices.get(key).unwrap_or(&empty);
    let names: BTreeSet<&str> = wanted.iter().map(|slice| &*slice.name).collect();
    for slice in &wanted {
        match there.get(&slice.name) {
            None => writes.push(Write::MakeSlice(slice.object(service))),
            Some(old) if old != slice => {
                writes.push(Write::ChangeSlice(slice.name.clone(), slice.patch(old)));
            }
            Some(_) => {}
        }
    }
    for name in there.keys().filter(|name| !names.contains(name.as_str())) {
        writes.push(Write::DropSlice(name.clone()));
    }
    let wanted = legacy::desired(service, pods);
    match known.endpoints.get(key) {
        None => writes.push(Write::MakeEndpoints(wanted.object(service))),
        Some(old) if *old != wanted => writes.push(Write::ChangeEndpoints(wanted.patch(old))),
        Some(_) => {}
    }
    writes
}

/// Endpoints that were ours and have no service any more. (Slices go with their owner.)
fn is_leftover(known: &Known, key: &Key) -> bool {
    let (label, value) = legacy::MANAGED_BY;
    known
        .endpoints
        .get(key)
        .is_some_and(|there| there.labels.get(label).is_some_and(|by| by == value))
}

fn in_namespace<'a, T>(
    all: &'a BTreeMap<Key, T>,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a T)> + Clone {
    let from = Key { namespace: namespace.to_owned(), name: String::new() };
    let namespace = namespace.to_owned();
    all.range(from..).take_while(move |(key, _)| key.namespace == namespace)
}

/// A slice and the service it belongs to.
fn read_slice(served: ServedSlice) -> (Key, Slice) {
    let ServedSlice { metadata, address_type, ports, endpoints } = served;
    let service = metadata.labels.get(SERVICE_NAME).cloned().unwrap_or_default();
    let key = Key { namespace: metadata.namespace, name: service };
    let owner = metadata.owner_references.into_iter().find(|owner| owner.kind == "Service");
    let slice = Slice {
        name: metadata.name,
        service_uid: owner.map(|owner| owner.uid).unwrap_or_default(),
        labels: metadata.labels,
        address_type,
        ports: ports.unwrap_or_default(),
        endpoints: endpoints.unwrap_or_default(),
    };
    (key, slice)
}

fn read_endpoints(served: ServedEndpoints) -> (Key, Endpoints) {
    let ServedEndpoints { metadata, subsets } = served;
    let key = metadata.key();
    let subsets = subsets.unwrap_or_default();
    (key, Endpoints::read(metadata.labels, &metadata.annotations, subsets))
}
