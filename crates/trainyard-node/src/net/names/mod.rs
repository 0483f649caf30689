//! The names that pods can look up: a cheap handle on one table that watches and the node keep, and that
//! the name server, hosts files and environments read.
//!
//! What a name means is in `table`, following the API is in `follow`. Must not know DNS messages.

mod follow;
mod table;
mod variables;

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use ipnet::Ipv4Net;
use tokio::sync::watch;

pub(crate) use follow::{follow, follow_pods};
pub(crate) use table::Front;
use table::Table;

/// What a name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It exists and has these addresses, sorted; none for a name that only has names below it.
    Found(Vec<Ipv4Addr>),
    /// It stands for another name, without the final dot.
    Alias(String),
    /// It would be one of ours and is not there.
    Unknown,
    /// It is none of ours to answer.
    Elsewhere,
}

/// What an address is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// These names.
    Known(Vec<String>),
    /// It is in our networks and has no name.
    Nameless,
    /// It is not ours.
    Elsewhere,
}

/// How far the first reading of the API is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Progress {
    services: bool,
    slices: bool,
    /// Counts changes of the table.
    changes: u64,
}

/// The table of names; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    table: RwLock<Table>,
    progress: watch::Sender<Progress>,
}

impl Names {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What a name is; any case, with or without the final dot.
    pub(crate) fn lookup(&self, name: &str) -> Answer {
        self.read().lookup(name)
    }

    /// What an address is called.
    pub(crate) fn owner(&self, address: Ipv4Addr) -> Owner {
        self.read().owner(address)
    }

    /// The nodes and their addresses, in place of those told before.
    pub(crate) fn set_nodes(&self, nodes: Vec<(String, Ipv4Addr)>) {
        self.change(|table| table.set_nodes(nodes));
    }

    /// The networks of pods and services: look-ups of their addresses never leave this machine.
    pub(crate) fn set_networks(&self, networks: Vec<Ipv4Net>) {
        self.change(|table| table.set_networks(networks));
    }

    /// The variables that tell a container of the services of its namespace, as a kubelet sets them.
    /// Without `links` only the API server's.
    pub(crate) fn service_variables(&self, namespace: &str, links: bool) -> Vec<(String, String)> {
        variables::of(&self.read(), namespace, links)
    }

    /// A pod has this address now.
    pub(crate) fn put_pod(&self, address: Ipv4Addr, namespace: &str) {
        self.write().put_pod(address, namespace);
    }

    /// No pod has this address any more.
    pub(crate) fn remove_pod(&self, address: Ipv4Addr) {
        self.write().remove_pod(address);
    }

    /// What a host is to the pod at `viewer`, with the short forms that it may use.
    pub(crate) fn lookup_from(&self, viewer: Ipv4Addr, host: &str) -> Answer {
        self.read().lookup_from(viewer, host)
    }

    /// What is to be answered at services' own addresses.
    pub(crate) fn fronts(&self) -> Vec<Front> {
        self.read().fronts()
    }

    /// Who answers for a service's port now.
    pub(crate) fn backs(&self, front: &Front) -> Vec<SocketAddrV4> {
        self.read().backs(front)
    }

    /// Every name as lines of a hosts file, with the short forms that the search list of `namespace`
    /// would allow. For pods that have no name server.
    pub(crate) fn hosts_lines(&self, namespace: &str) -> String {
        self.read().hosts_lines(namespace)
    }

    /// Waits until services and their endpoints have been read once. Before that a name that is not
    /// there may only not have been read yet.
    pub(crate) async fn synced(&self) {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives as long as this handle.
        let _ = progress.wait_for(|progress| progress.services && progress.slices).await;
    }

    /// Waits until the table has changed since `seen`; says the state to pass the next time.
    pub(crate) async fn changed(&self, seen: u64) -> u64 {
        let mut progress = self.shared.progress.subscribe();
        progress.wait_for(|progress| progress.changes != seen).await.map_or(seen, |now| now.changes)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.shared.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.shared.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        change(&mut self.write());
        self.shared.progress.send_modify(|progress| progress.changes += 1);
    }

    fn advance(&self, advance: impl FnOnce(&mut Progress)) {
        self.shared.progress.send_modify(advance);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
    use serde_json::json;

    use super::*;

    /// A table with a job's headless services, the API server's, an alias and two nodes.
    pub(crate) fn yard() -> Names {
        let names = Names::new();
        names.change(|table| {
            for service in [
                json!({"metadata": {"name": "kubernetes", "namespace": "default"},
                    "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]}}),
                json!({"metadata": {"name": "mnist-worker-0", "namespace": "default"},
                    "spec": {"clusterIP": "None", "publishNotReadyAddresses": true}}),
                json!({"metadata": {"name": "group", "namespace": "team"}, "spec": {"clusterIP": "None"}}),
                json!({"metadata": {"name": "empty", "namespace": "team"}, "spec": {"clusterIP": "None"}}),
                json!({"metadata": {"name": "data", "namespace": "team"},
                    "spec": {"type": "ExternalName", "externalName": "Data.Example.COM."}}),
            ] {
                let service: Service = serde_json::from_value(service).unwrap();
                table.put_service(&service);
            }
            for slice in [
                json!({"metadata": {"name": "mnist-worker-0-x", "namespace": "default",
                        "labels": {"kubernetes.io/service-name": "mnist-worker-0"}},
                    "addressType": "IPv4", "endpoints": [
                        {"addresses": ["10.77.0.5"], "conditions": {"ready": false}}]}),
                json!({"metadata": {"name": "group-x", "namespace": "team",
                        "labels": {"kubernetes.io/service-name": "group"}},
                    "addressType": "IPv4", "endpoints": [
                        {"addresses": ["10.77.0.9"], "hostname": "b"},
                        {"addresses": ["10.77.0.8"], "hostname": "a", "conditions": {"ready": true}},
                        {"addresses": ["10.77.0.7"], "hostname": "c", "conditions": {"ready": false}},
                        {"addresses": ["10.77.0.6"]}]}),
                json!({"metadata": {"name": "group-6", "namespace": "team",
                        "labels": {"kubernetes.io/service-name": "group"}},
                    "addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}]}),
            ] {
                let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
                table.put_slice(&slice);
            }
        });
        names.set_nodes(vec![
            ("Node-A".into(), Ipv4Addr::new(10, 77, 0, 2)),
            ("b.lab".into(), Ipv4Addr::new(10, 77, 0, 3)),
        ]);
        names.set_networks(vec!["10.77.0.0/16".parse().unwrap(), "10.96.0.0/12".parse().unwrap()]);
        names
    }

    impl Names {
        /// A service with an address of its own, port 80, and these pods behind it, port 8080.
        pub(crate) fn put_front(&self, name: &str, address: &str, backs: &[&str]) {
            let metadata = json!({"name": name, "namespace": "team",
                "labels": {"kubernetes.io/service-name": name}});
            let endpoints: Vec<_> = backs.iter().map(|back| json!({"addresses": [back]})).collect();
            let service = json!({"metadata": metadata,
                "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
            let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints,
                "ports": [{"port": 8080}]});
            self.change(|table| {
                table.put_service(&serde_json::from_value::<Service>(service).unwrap());
                table.put_slice(&serde_json::from_value::<EndpointSlice>(slice).unwrap());
            });
        }

        /// A service of `team` is gone.
        pub(crate) fn drop_service(&self, name: &str) {
            self.change(|table| table.remove_service(&format!("team/{name}")));
        }

        /// A headless service with so many endpoints.
        pub(crate) fn put_many(&self, namespace: &str, name: &str, count: u8) {
            let endpoints: Vec<_> =
                (0..count).map(|last| json!({"addresses": [format!("10.77.1.{last}")]})).collect();
            let metadata = json!({"name": name, "namespace": namespace,
                "labels": {"kubernetes.io/service-name": name}});
            let service = json!({"metadata": metadata, "spec": {"clusterIP": "None"}});
            let slice =
                json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints});
            self.change(|table| {
                table.put_service(&serde_json::from_value::<Service>(service).unwrap());
                table.put_slice(&serde_json::from_value::<EndpointSlice>(slice).unwrap());
            });
        }
    }

    #[tokio::test]
    async fn a_change_is_noticed_by_those_who_wait() {
        let names = Names::new();
        let seen = names.changed(u64::MAX).await;
        let waiting = tokio::spawn({
            let names = names.clone();
            async move { names.changed(seen).await }
        });
        names.set_nodes(vec![("n".into(), Ipv4Addr::LOCALHOST)]);
        assert_ne!(waiting.await.unwrap(), seen);
        assert_eq!(names.lookup("n"), Answer::Found(vec![Ipv4Addr::LOCALHOST]));
    }

    #[test]
    fn a_pod_means_its_own_namespace_first() {
        let names = yard();
        let (viewer, stranger) = (Ipv4Addr::new(10, 77, 0, 40), Ipv4Addr::new(10, 77, 0, 41));
        names.put_pod(viewer, "team");
        let one = |last| Answer::Found(vec![Ipv4Addr::new(10, 77, 0, last)]);
        assert_eq!(names.lookup_from(viewer, "a.group"), one(8));
        assert_eq!(names.lookup_from(stranger, "a.group"), Answer::Elsewhere);
        for host in ["mnist-worker-0.default", "mnist-worker-0.default.svc", "10.77.0.5"] {
            assert_eq!(names.lookup_from(viewer, host), one(5), "{host}");
        }
        assert_eq!(names.lookup_from(viewer, "data"), Answer::Alias("data.example.com".into()));
        assert_eq!(names.lookup_from(viewer, "node-a"), one(2));
        for host in ["mnist-worker-0", "example.com", "192.168.7.7", "a.group."] {
            assert_eq!(names.lookup_from(viewer, host), Answer::Elsewhere, "{host}");
        }
        names.remove_pod(viewer);
        assert_eq!(names.lookup_from(viewer, "a.group"), Answer::Elsewhere);
    }

    #[test]
    fn pods_that_no_slice_may_hold_are_found_by_their_labels() {
        let names = Names::new();
        let address = Ipv4Addr::new(127, 77, 0, 9);
        let pod = |phase: &str, ready: &str| {
            let pod = json!({
                "metadata": {"name": "p", "namespace": "team", "labels": {"app": "web", "x": "y"}},
                "spec": {"containers": [], "hostname": "h", "subdomain": "early"},
                "status": {"phase": phase, "podIP": address,
                    "conditions": [{"type": "Ready", "status": ready}]},
            });
            serde_json::from_value(pod).unwrap()
        };
        let service = |name: &str, app: &str, early: bool| {
            let service = json!({"metadata": {"name": name, "namespace": "team"}, "spec": {
                "clusterIP": "None", "selector": {"app": app}, "publishNotReadyAddresses": early}});
            serde_json::from_value::<Service>(service).unwrap()
        };
        names.change(|table| {
            table.put_service(&service("early", "web", true));
            table.put_service(&service("late", "web", false));
            table.put_service(&service("other", "db", true));
            table.put_unlisted(&pod("Running", "False"));
        });
        let found = Answer::Found(vec![address]);
        let seen = |name: &str| names.lookup(&format!("{name}.team.svc.cluster.local"));
        assert_eq!([seen("early"), seen("h.early")], [found.clone(), found.clone()]);
        assert_eq!([seen("late"), seen("other")], [Answer::Unknown, Answer::Unknown]);
        names.change(|table| table.put_unlisted(&pod("Running", "True")));
        assert_eq!([seen("late"), seen("h.late")], [found, Answer::Unknown]);
        names.remove_pod(address);
        assert_eq!(seen("early"), Answer::Unknown);
        names.change(|table| table.put_unlisted(&pod("Succeeded", "True")));
        assert_eq!(seen("early"), Answer::Unknown);
    }

    #[test]
    fn services_are_answered_by_their_ready_endpoints() {
        let names = yard();
        assert_eq!(names.fronts(), []);
        let service = json!({"metadata": {"name": "web", "namespace": "team"},
            "spec": {"clusterIP": "10.96.3.4", "ports": [
                {"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]}});
        let slice = json!({"metadata": {"name": "web-x", "namespace": "team",
                "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [{"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": [
                {"addresses": ["10.77.0.9"]},
                {"addresses": ["10.77.0.8"], "conditions": {"ready": false}}]});
        names.change(|table| {
            table.put_service(&serde_json::from_value::<Service>(service).unwrap());
            table.put_slice(&serde_json::from_value::<EndpointSlice>(slice).unwrap());
        });
        let fronts = names.fronts();
        assert_eq!(fronts.len(), 1);
        assert_eq!(fronts[0].address, "10.96.3.4:80".parse().unwrap());
        assert_eq!(names.backs(&fronts[0]), ["10.77.0.9:8080".parse().unwrap()]);
        names.change(|table| table.remove_service("team/web"));
        assert_eq!(names.backs(&fronts[0]), []);
    }
}
