//! The agent's nodes at the API server: each one is shown, kept alive there, and its pods followed.
//!
//! Owns what is said of a node. Must not know how pods run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::version::Info;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use trainyard_holder::protocol::{Cgroups, Isolation, Network};

use crate::error::AgentError;
use crate::net::outbound::Way;
use crate::node::{self, AgentIdentity, Heartbeat, Machine, NodeFacts, Pressure, Readiness};
use crate::options::Options;
use crate::shared::{Shared, VirtualNode};
use crate::start::Chosen;
use crate::watch;
use crate::yard::Level;

/// How long the API server may be away when the agent starts.
pub(crate) const REACH: Duration = Duration::from_mins(5);

/// What all nodes of the agent have in common.
pub(crate) struct Presence<'a> {
    pub(crate) options: &'a Options,
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) machine: Arc<Machine>,
    pub(crate) level: Level,
    pub(crate) chosen: Chosen,
    /// The API server's.
    pub(crate) version: Info,
}

impl Presence<'_> {
    /// Shows every node to the API server, keeps it alive there and follows its pods; ends early, and
    /// well, when the agent is told to end. Those in `hearts` are to be ended in order, whatever the
    /// outcome.
    pub(crate) async fn begin(
        &self,
        served: &BTreeMap<String, SocketAddr>,
        hearts: &mut JoinSet<()>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), AgentError> {
        let shared = self.shared;
        for node in shared.nodes.values() {
            let client = shared.accounts.of(&node.name);
            let Some(address) = served.get(&node.name) else { continue };
            let facts = self.facts(node, *address);
            let registered = node::register_within(client, &facts, REACH, &shared.closing).await?;
            let Some(registered) = registered else { return Ok(()) };
            let (tell, facts) = channel::channel(facts);
            tasks.spawn(shared.network.outbound.clone().follow(move |way| {
                tell.send_modify(|facts| facts.labels.extend([outbound_label(way)]));
            }));
            let (state, timing) = (self.options.state.clone(), node::Timing::default());
            let (heart, object) = Heartbeat::new(client.clone(), registered, facts, state, timing);
            hearts.spawn(heart.run(shared.closed.clone()));
            let (shared, client) = (Arc::clone(shared), client.clone());
            tasks.spawn(watch::follow(shared, client, node.name.clone(), object));
        }
        Ok(())
    }

    fn facts(&self, node: &VirtualNode, address: SocketAddr) -> NodeFacts {
        NodeFacts {
            name: node.name.clone(),
            address: address.ip(),
            port: address.port(),
            inside: node.address,
            capacity: node.allocatable.clone(),
            allocatable: node.allocatable.clone(),
            machine: Arc::clone(&self.machine),
            sandbox: sandbox_word(self.chosen.isolation).to_owned(),
            network: network_word(self.chosen.network).to_owned(),
            rootless: self.level.rootless,
            limits: match self.level.cgroups {
                Cgroups::None => node::Limits::NotEnforced(limit_words(&self.level)),
                Cgroups::V1 | Cgroups::V2 => node::Limits::Enforced(limit_words(&self.level)),
            },
            labels: BTreeMap::from([outbound_label(self.shared.network.outbound.way())]),
            declared_features: node::declared_features(&self.version),
            pressure: Pressure::measure(Path::new("/"), &self.options.state).unwrap_or_default(),
            readiness: Readiness::Ready,
            agent: AgentIdentity::current(),
        }
    }
}

/// How pods reach other machines.
fn outbound_label(way: Way) -> (String, String) {
    ("trainyard.dev/outbound".to_owned(), way.word().to_owned())
}

/// Logs at the start what the nodes are made of.
pub(crate) fn announce(nodes: &[String], chosen: Chosen, level: &Level, outbound: &str) {
    tracing::info!(
        nodes = nodes.join(","),
        sandbox = sandbox_word(chosen.isolation),
        network = network_word(chosen.network),
        rootless = level.rootless,
        limits = %limit_words(level),
        outbound,
        "node starts"
    );
}

/// The isolation in use, in a word.
pub(crate) fn sandbox_word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Processes => "processes",
        Isolation::Namespaces => "namespaces",
    }
}

/// The network in use, in a word.
pub(crate) fn network_word(network: Network) -> &'static str {
    match network {
        Network::Loopback => "loopback",
        Network::Bridge => "bridge",
    }
}

/// How limits are enforced, or why not.
pub(crate) fn limit_words(level: &Level) -> String {
    match level.cgroups {
        Cgroups::V1 => "cgroups v1".to_owned(),
        Cgroups::V2 => "cgroups v2".to_owned(),
        Cgroups::None => {
            let reason = level.cgroups_reason.as_deref().unwrap_or("there are no cgroups to use");
            format!("not enforced: {reason}")
        }
    }
}
