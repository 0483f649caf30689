//! A pod that this node has: the latest version of its object, the record of its containers, and what
//! the kubelet's API needs to find in it. Changed by its worker, read by anyone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use trainyard_holder::protocol::{Privileges, User};

use crate::logs::LogSource;
use crate::status::{PodRecord, phase};

/// One pod.
#[derive(Debug)]
pub(crate) struct Live {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Its UID, which is also its id to the holder.
    pub(crate) uid: String,
    pod: watch::Sender<Arc<Pod>>,
    /// The object is gone from the API.
    pub(crate) gone: CancellationToken,
    /// Its worker has ended.
    pub(crate) over: CancellationToken,
    record: Mutex<PodRecord>,
    changes: watch::Sender<u64>,
    runs: Mutex<BTreeMap<String, Run>>,
}

/// A run of a container that can be looked into.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Its id to the holder.
    pub(crate) id: String,
    /// The container's whole environment.
    pub(crate) env: Vec<(String, String)>,
    /// Its working directory.
    pub(crate) cwd: PathBuf,
    /// Who it runs as.
    pub(crate) user: User,
    /// What it may do.
    pub(crate) privileges: Privileges,
    /// Where it is logged.
    pub(crate) log: LogSource,
}

impl Live {
    /// A pod with what is known of it.
    pub(crate) fn new(pod: Arc<Pod>, record: PodRecord) -> Self {
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            pod: watch::Sender::new(pod),
            gone: CancellationToken::new(),
            over: CancellationToken::new(),
            record: Mutex::new(record),
            changes: watch::Sender::new(1),
            runs: Mutex::default(),
        }
    }

    /// The latest version of its object.
    pub(crate) fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.pod.borrow())
    }

    /// Whether it is bound to this node.
    pub(crate) fn is_on(&self, node: &str) -> bool {
        let pod = self.pod.borrow();
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node)
    }

    /// A newer version has come.
    pub(crate) fn update(&self, pod: Arc<Pod>) {
        self.pod.send_replace(pod);
    }

    /// Told of newer versions.
    pub(crate) fn versions(&self) -> watch::Receiver<Arc<Pod>> {
        self.pod.subscribe()
    }

    /// Nothing of it runs or will run: its resources are free.
    pub(crate) fn is_settled(&self) -> bool {
        let pod = self.pod();
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        self.over.is_cancelled() || phase(&self.lock(), policy.unwrap_or("Always")).is_final()
    }

    /// Returns when nothing of it runs and its last state is written.
    pub(crate) async fn settled(&self) {
        self.over.cancelled().await;
    }

    /// A copy of the record.
    pub(crate) fn record(&self) -> PodRecord {
        self.lock().clone()
    }

    /// Changes the record and wakes whoever reports it.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut PodRecord) -> T) -> T {
        let result = change(&mut self.lock());
        self.changes.send_modify(|version| *version += 1);
        result
    }

    /// Told of changes of the record.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The run of a container, while it has one or after its last.
    pub(crate) fn run(&self, container: &str) -> Option<Run> {
        self.runs().get(container).cloned()
    }

    /// A container has begun another run.
    pub(crate) fn set_run(&self, container: &str, run: Run) {
        self.runs().insert(container.to_owned(), run);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, PodRecord> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
