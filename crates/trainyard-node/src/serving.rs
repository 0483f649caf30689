//! The kubelet's API on the real pods: one server for each virtual node.

mod patience;
mod sessions;
mod usage;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use self::patience::awaited;
use crate::error::AgentError;
use crate::logs::{LogSource, PodPlace};
use crate::options::Options;
use crate::pod::{Behind, Live};
use crate::serve::{self, ExecAsk, ExecSession, ForwardTarget, LogAsk, Pods, Refused, Summary};
use crate::shared::{Shared, lock};
use crate::status::{ContainerRecord, State};

/// Begins to serve; says where each node is reached.
pub(crate) fn start(
    options: &Options,
    shared: &Arc<Shared>,
    tasks: &mut JoinSet<()>,
) -> Result<BTreeMap<String, SocketAddr>, AgentError> {
    let Some(authority) = &options.client_authority else {
        return Err(AgentError::Serve {
            address: options.listen.to_string(),
            reason: "it is not known whose certificate may ask; name the API server's authority \
                     with --client-ca-file"
                .to_owned(),
        });
    };
    let mut addresses = BTreeMap::new();
    for (number, name) in (0_u16..).zip(shared.nodes.keys()) {
        let mut address = options.listen;
        if address.port() != 0 {
            address.set_port(address.port().saturating_add(number));
        }
        let failed = |reason: String| AgentError::Serve { address: address.to_string(), reason };
        let listener = TcpListener::bind(address).map_err(|error| failed(error.to_string()))?;
        let bound = listener.local_addr().map_err(|error| failed(error.to_string()))?;
        let identity = serve::Identity::self_made(name, &[bound.ip()])
            .map_err(|error| failed(error.to_string()))?;
        let tls =
            serve::server_config(identity, authority).map_err(|error| failed(error.to_string()))?;
        let clients = serve::Clients::named(&options.client_names);
        let pods = Arc::new(NodePods { shared: Arc::clone(shared), node: name.clone() });
        let stop = shared.closed.clone();
        tasks.spawn(async move {
            if let Err(error) = serve::serve(listener, tls, clients, pods, stop).await {
                tracing::error!(%error, kind = error.kind(), "logs and exec are not served any more");
            }
        });
        addresses.insert(name.clone(), bound);
    }
    Ok(addresses)
}

/// The pods of one node, for its API.
pub(crate) struct NodePods {
    shared: Arc<Shared>,
    node: String,
}

impl NodePods {
    fn live(&self) -> Vec<Arc<Live>> {
        let of_node = |live: &&Arc<Live>| live.is_on(&self.node);
        lock(&self.shared.pods).values().filter(of_node).cloned().collect()
    }

    /// A pod, which the API server may know sooner than this agent: when it has just been bound, or the agent
    /// has just started. One that the API server does not know either has gone, and is not waited for.
    async fn find(&self, namespace: &str, name: &str) -> Result<Arc<Live>, Refused> {
        let is_it = |live: &Arc<Live>| live.namespace == namespace && live.name == name;
        let look = || self.live().into_iter().find(is_it);
        let seen = awaited(look, || self.may_come(namespace, name)).await;
        seen.ok_or_else(|| Refused::NotFound(format!("pod \"{name}_{namespace}\" does not exist")))
    }

    /// Whether the API server knows of a pod on this node, as far as it says. It is asked by a list, which the
    /// agent has a right to anyway.
    async fn may_come(&self, namespace: &str, name: &str) -> bool {
        let pods: Api<Pod> =
            Api::namespaced(self.shared.accounts.of(&self.node).clone(), namespace);
        let fields = format!("metadata.name={name},spec.nodeName={}", self.node);
        let known = pods.list_metadata(&ListParams::default().fields(&fields)).await;
        !known.is_ok_and(|known| known.items.is_empty())
    }
}

impl Pods for NodePods {
    async fn log(&self, ask: LogAsk) -> Result<LogSource, Refused> {
        let live = self.find(&ask.namespace, &ask.pod).await?;
        let record = live.record();
        let container = record.find(&ask.container).ok_or_else(|| {
            Refused::NotFound(format!("container {} not found in pod {}", ask.container, ask.pod))
        })?;
        if !ask.previous
            && let Some(run) = live.run(&ask.container)
        {
            return Ok(run.log);
        }
        let wanted = numbered(container, ask.previous, &ask.pod)?;
        let place = PodPlace::of(&live.pod().metadata);
        let path = place.log(&self.shared.places.logs, &ask.container, wanted);
        Ok(LogSource { path, live: None })
    }

    async fn exec(&self, ask: ExecAsk) -> Result<ExecSession, Refused> {
        let live = self.find(&ask.namespace, &ask.pod).await?;
        if ask.uid.as_ref().is_some_and(|uid| *uid != live.uid) {
            return Err(Refused::NotFound(format!("pod {} is another one now", ask.pod)));
        }
        let record = live.record();
        let container = record.find(&ask.container).ok_or_else(|| {
            Refused::NotFound(format!("container {} not found in pod {}", ask.container, ask.pod))
        })?;
        let run = live.run(&ask.container);
        match (&container.state, run) {
            (State::Running(_), Some(run)) => sessions::open(&self.shared, &run, ask).await,
            _ => Err(Refused::BadRequest(format!("container {} is not running", ask.container))),
        }
    }

    async fn connect(&self, target: ForwardTarget, port: u16) -> Result<TcpStream, Refused> {
        let live = self.find(&target.namespace, &target.pod).await?;
        if target.uid.as_ref().is_some_and(|uid| *uid != live.uid) {
            return Err(Refused::NotFound(format!("pod {} is another one now", target.pod)));
        }
        let record = live.record();
        let runs = |container: &ContainerRecord| matches!(container.state, State::Running(_));
        if !record.containers.iter().any(runs) {
            return Err(Refused::BadRequest(format!("pod {} is not running", target.pod)));
        }
        let own = record.pod_ip.unwrap_or_else(|| self.shared.node_address(&live.pod()));
        let connected = Behind::new(&self.shared, &live.uid, own, port).connect().await;
        connected.map_err(|error| {
            Refused::BadRequest(format!(
                "failed to connect to localhost:{port} inside pod {}: {error}",
                target.pod
            ))
        })
    }

    async fn summary(&self) -> Result<Summary, Refused> {
        usage::summary(&self.shared, &self.node, &self.live()).await
    }

    async fn pods(&self) -> Vec<Pod> {
        self.live().iter().map(|live| Pod::clone(&live.pod())).collect()
    }
}

/// Which run's log is asked for; runs are numbered from 0, and the last that began has the number of
/// restarts.
fn numbered(container: &ContainerRecord, previous: bool, pod: &str) -> Result<u32, Refused> {
    let name = &container.name;
    let last = u32::try_from(container.restarts).unwrap_or_default();
    match (&container.state, previous) {
        // While a container waits to run again, the run that ended last is the previous one as well.
        (State::Waiting { .. }, _) if container.last.is_some() => Ok(last),
        (State::Waiting { reason, .. }, false) => Err(Refused::BadRequest(format!(
            "container \"{name}\" in pod \"{pod}\" is waiting to start: {reason}"
        ))),
        (_, false) => Ok(last),
        (_, true) => last.checked_sub(1).filter(|_| container.last.is_some()).ok_or_else(|| {
            Refused::BadRequest(format!(
                "previous terminated container \"{name}\" in pod \"{pod}\" not found"
            ))
        }),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;
    use crate::status::PodRecord;

    fn container(restarts: i32, state: &serde_json::Value, ended: bool) -> ContainerRecord {
        let last = if ended { json!({"terminated": {"exitCode": 1}}) } else { json!({}) };
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"containers": [{"name": "main"}]},
            "status": {"containerStatuses": [{
                "name": "main", "image": "", "imageID": "", "ready": false,
                "restartCount": restarts, "state": state, "lastState": last,
            }]},
        }))
        .unwrap();
        let (record, _) = PodRecord::take_over(&pod, Timestamp::UNIX_EPOCH);
        record.containers[0].clone()
    }

    #[test]
    fn the_run_that_is_asked_for_is_found() {
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let ended = json!({"terminated": {"exitCode": 1}});
        for (restarts, state, before, current, previous) in [
            (0, &waiting, false, None, None),
            (0, &waiting, true, Some(0), Some(0)),
            (3, &waiting, true, Some(3), Some(3)),
            (0, &ended, false, Some(0), None),
            (2, &ended, true, Some(2), Some(1)),
        ] {
            let container = container(restarts, state, before);
            assert_eq!(numbered(&container, false, "p").ok(), current, "{container:?}");
            assert_eq!(numbered(&container, true, "p").ok(), previous, "{container:?}");
        }
    }
}
