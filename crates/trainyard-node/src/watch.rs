//! The pods bound to this agent's nodes: each one gets a worker when it is first seen, and is told
//! what becomes of its object.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Client, ResourceExt as _};
use tokio::sync::watch as channel;

use crate::events::Weight;
use crate::node::{Rejection, admit};
use crate::pod::{self, Live};
use crate::shared::{Shared, lock};
use crate::status::{PodRecord, Verdict, phase};

/// Reading the services takes no longer, unless something is wrong.
const SERVICES: Duration = Duration::from_secs(10);

/// What is said of pods whose processes died with an agent.
const LOST: &str = "its containers were lost: the agent that ran them ended without stopping them";

/// Follows the pods of one node until it is dropped.
pub(crate) async fn follow(
    shared: Arc<Shared>,
    client: Client,
    node: String,
    object: channel::Receiver<Arc<Node>>,
) {
    services_are_read(&shared, &node).await;
    let selector = format!("spec.nodeName={node}");
    let config = watcher::Config::default().fields(&selector);
    let stream = watch(Api::<Pod>::all(client), config).default_backoff();
    let mut stream = std::pin::pin!(stream);
    let mut listed: Option<Vec<String>> = None;
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => listed = Some(Vec::new()),
            Ok(Event::InitApply(pod)) => {
                if let Some(listed) = &mut listed {
                    listed.push(pod.uid().unwrap_or_default());
                }
                seen(&shared, &object, pod).await;
            }
            Ok(Event::InitDone) => {
                if let Some(listed) = listed.take() {
                    forget_missing(&shared, &node, &listed);
                }
            }
            Ok(Event::Apply(pod)) => seen(&shared, &object, pod).await,
            Ok(Event::Delete(pod)) => gone(&shared, &pod.uid().unwrap_or_default()),
            Err(error) => {
                tracing::warn!(node, %error, "the pods cannot be watched; trying again");
            }
        }
    }
}

/// Containers are told of the services of their namespace: until those are known, none is started.
async fn services_are_read(shared: &Shared, node: &str) {
    if tokio::time::timeout(SERVICES, shared.names.synced()).await.is_err() {
        tracing::warn!(node, "no pod is started: services and endpoint slices cannot be read yet");
        shared.names.synced().await;
    }
}

async fn seen(shared: &Arc<Shared>, node: &channel::Receiver<Arc<Node>>, pod: Pod) {
    let uid = pod.uid().unwrap_or_default();
    let pod = Arc::new(pod);
    let known = lock(&shared.pods).get(&uid).cloned();
    if let Some(live) = known {
        live.update(pod);
        return;
    }
    let (mut record, lost) = PodRecord::take_over(&pod, Timestamp::now());
    if lost {
        shared.events.pod(&pod, None, Weight::Warning, "ContainerLost", LOST);
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        if phase(&record, policy.unwrap_or("Always")).is_final() {
            record.verdict.get_or_insert_with(|| Verdict {
                reason: "ContainerStatusUnknown".to_owned(),
                message: LOST.to_owned(),
                disruption: true,
            });
        }
    }
    let started = pod.status.as_ref().is_some_and(|status| status.start_time.is_some());
    let node = Arc::clone(&node.borrow());
    if !started && let Err(rejection) = admitted(shared, &node, &pod).await {
        let message = format!("Pod was rejected: {}", rejection.message);
        shared.events.pod(&pod, None, Weight::Warning, "FailedAdmission", message.clone());
        record.verdict = Some(Verdict { reason: rejection.reason, message, disruption: false });
        record.ending = true;
    }
    let live = Arc::new(Live::new(pod, record));
    lock(&shared.pods).insert(uid, Arc::clone(&live));
    tokio::spawn(pod::run(Arc::clone(shared), live));
}

/// Whether the node takes the pod. A label may be newer here than what is known of the node: before a
/// pod fails for one, the node is read again.
async fn admitted(shared: &Shared, node: &Node, pod: &Pod) -> Result<(), Rejection> {
    match beside_others(shared, node, pod) {
        Err(rejection) if rejection.reason == "NodeAffinity" => {
            let nodes: Api<Node> = Api::all(shared.accounts.of(&node.name_any()).clone());
            match nodes.get(&node.name_any()).await {
                Ok(fresh) => beside_others(shared, &fresh, pod),
                Err(_) => Err(rejection),
            }
        }
        answer => answer,
    }
}

fn beside_others(shared: &Shared, node: &Node, pod: &Pod) -> Result<(), Rejection> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let others: Vec<Arc<Pod>> = lock(&shared.pods)
        .values()
        .filter(|live| !live.is_settled() && live.is_on(name))
        .map(|live| live.pod())
        .collect();
    let others: Vec<&Pod> = others.iter().map(AsRef::as_ref).collect();
    admit(pod, &others, node)
}

fn gone(shared: &Shared, uid: &str) {
    if let Some(live) = lock(&shared.pods).remove(uid) {
        live.gone.cancel();
    }
}

/// A pod that a new list does not hold was removed while nobody looked.
fn forget_missing(shared: &Shared, node: &str, listed: &[String]) {
    let missing: Vec<String> = lock(&shared.pods)
        .values()
        .filter(|live| live.is_on(node))
        .filter(|live| !listed.contains(&live.uid))
        .map(|live| live.uid.clone())
        .collect();
    for uid in missing {
        gone(shared, &uid);
    }
}
