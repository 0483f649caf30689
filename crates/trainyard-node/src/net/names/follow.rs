//! Keeps the table at what the API says: watches of services and endpoint slices, begun anew when they
//! break. Must not know what names mean.

use std::{collections::BTreeSet, fmt::Debug};

use futures::StreamExt;
use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, Resource,
    core::DeserializeGuard,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event},
    },
};
use serde::de::DeserializeOwned;
use tracing::warn;

use super::{
    Names, Progress,
    table::{Key, Table, key},
};

/// Follows services and endpoint slices of all namespaces until dropped.
pub(crate) async fn follow(client: Client, names: Names) {
    let services = follow_kind::<Service>(client.clone(), &names);
    let slices = follow_kind::<EndpointSlice>(client, &names);
    tokio::join!(services, slices);
}

/// Follows the pods of a node whose addresses no endpoint slice may hold, until dropped.
pub(crate) async fn follow_pods(client: Client, names: Names, node: String) {
    let config = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
    follow_some::<Pod>(client, &names, config).await;
}

/// A kind of object that names are made of.
trait Named: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static {
    fn put(&self, table: &mut Table);
    fn remove(table: &mut Table, key: &str);
    fn keep(table: &mut Table, seen: &BTreeSet<Key>);
    fn read(progress: &mut Progress);
}

impl Named for Service {
    fn put(&self, table: &mut Table) {
        table.put_service(self);
    }
    fn remove(table: &mut Table, key: &str) {
        table.remove_service(key);
    }
    fn keep(table: &mut Table, seen: &BTreeSet<Key>) {
        table.keep_services(seen);
    }
    fn read(progress: &mut Progress) {
        progress.services = true;
    }
}

impl Named for EndpointSlice {
    fn put(&self, table: &mut Table) {
        table.put_slice(self);
    }
    fn remove(table: &mut Table, key: &str) {
        table.remove_slice(key);
    }
    fn keep(table: &mut Table, seen: &BTreeSet<Key>) {
        table.keep_slices(seen);
    }
    fn read(progress: &mut Progress) {
        progress.slices = true;
    }
}

impl Named for Pod {
    fn put(&self, table: &mut Table) {
        table.put_unlisted(self);
    }
    fn remove(table: &mut Table, key: &str) {
        table.remove_unlisted(key);
    }
    // Several nodes share the table, so that a list of one of them says nothing of the others' pods.
    // One that was deleted while the watch was broken goes with its address.
    fn keep(_: &mut Table, _: &BTreeSet<Key>) {}
    fn read(_: &mut Progress) {}
}

async fn follow_kind<K: Named>(client: Client, names: &Names) {
    follow_some::<K>(client, names, watcher::Config::default()).await;
}

async fn follow_some<K: Named>(client: Client, names: &Names, config: watcher::Config) {
    let api = Api::<DeserializeGuard<K>>::all(client);
    let watch = watcher::watcher(api, config).default_backoff();
    let mut watch = std::pin::pin!(watch);
    let mut seen = BTreeSet::new();
    while let Some(event) = watch.next().await {
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitApply(object)) => {
                seen.insert(key(object.meta()));
                put(names, &object);
            }
            Ok(Event::InitDone) => {
                names.change(|table| K::keep(table, &seen));
                seen.clear();
                names.advance(K::read);
            }
            Ok(Event::Apply(object)) => put(names, &object),
            Ok(Event::Delete(object)) => {
                names.change(|table| K::remove(table, &key(object.meta())));
            }
            Err(error) => warn!(kind = %K::kind(&()), %error, "cannot follow; trying again"),
        }
    }
}

/// An object that cannot be read has no name: what it said before may not hold any more.
fn put<K: Named>(names: &Names, object: &DeserializeGuard<K>) {
    match &object.0 {
        Ok(object) => names.change(|table| object.put(table)),
        Err(invalid) => {
            let key = key(&invalid.metadata);
            warn!(kind = %K::kind(&()), object = %key, error = %invalid.error, "cannot be read: it gets no name");
            names.change(|table| K::remove(table, &key));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, net::Ipv4Addr, time::Duration};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::net::names::Answer;

    fn service(name: &str) -> serde_json::Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default", "resourceVersion": "2"},
            "spec": {"clusterIP": "None"}})
    }

    fn slice(name: &str, address: &str) -> serde_json::Value {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": "default", "resourceVersion": "2", "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": [address]}]})
    }

    /// Lists three services, one of them malformed, and one slice; the watches then add and delete.
    fn answer(request: &Request<Body>) -> String {
        let watched = request.uri().query().unwrap_or_default().contains("watch=true");
        let version = json!({"resourceVersion": "1"});
        let malformed =
            json!({"metadata": {"name": "bad", "namespace": "default"}, "spec": {"ports": "none"}});
        match (request.uri().path(), watched) {
            ("/api/v1/services", false) => {
                json!({"metadata": version, "items": [service("one"), malformed, service("two")]})
                    .to_string()
            }
            ("/api/v1/services", true) => {
                format!("{}\n", json!({"type": "DELETED", "object": service("one")}))
            }
            (_, false) => {
                json!({"metadata": version, "items": [slice("one", "10.0.0.1")]}).to_string()
            }
            (_, true) => {
                format!("{}\n", json!({"type": "ADDED", "object": slice("two", "10.0.0.2")}))
            }
        }
    }

    #[tokio::test]
    async fn follows_lists_and_watches() {
        let respond = |request: Request<Body>| async move {
            Ok::<_, Infallible>(Response::new(Body::from(answer(&request).into_bytes())))
        };
        let names = Names::new();
        let client = Client::new(tower::service_fn(respond), "default");
        let following = tokio::spawn(follow(client, names.clone()));
        let wanted = async {
            names.synced().await;
            let mut seen = 0;
            while names.lookup("two.default.svc") != Answer::Found(vec![Ipv4Addr::new(10, 0, 0, 2)])
                || names.lookup("one.default.svc") != Answer::Unknown
            {
                seen = names.changed(seen).await;
            }
        };
        timeout(Duration::from_secs(10), wanted).await.unwrap();
        following.abort();
    }
}
