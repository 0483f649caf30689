//! The agent as a whole: started, kept going, ended in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Client;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trainyard_holder::protocol::{Cgroups, Isolation, Network};
use trainyard_image::Images;

use crate::error::AgentError;
use crate::events::Events;
use crate::net::names::Names;
use crate::network;
use crate::node::{
    self, AgentIdentity, Devices, GPU_RESOURCE, GpuSource as _, Heartbeat, Machine, NodeFacts,
    Nvml, Pressure, Readiness, ResourceArg, Sharing,
};
use crate::objects::ApiObjects;
use crate::options::Options;
use crate::pod::{self, Backoff};
use crate::serving;
use crate::shared::{Shared, Timing, VirtualNode, lock};
use crate::start::{self, Started};
use crate::state;
use crate::watch;
use crate::yard::Level;

/// How long the API server may be away when the agent starts.
const REGISTER: Duration = Duration::from_mins(5);
/// How much longer than their grace the pods may take when the agent ends.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// Runs an agent until `stop`, or until it cannot go on.
pub async fn run(
    client: Client,
    options: Options,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    check_names(&options.nodes)?;
    let state = state::take(&options.state)?;
    state.clear().await?;
    let started = start::start(&options, state.id.clone()).await?;
    state.note_holder(started.yard.pid());
    let level = started.yard.level().clone();
    let chosen = started.chosen;
    let machine = Arc::new(Machine::read(Path::new("/"), &options.state)?);
    let virtual_nodes = virtual_nodes(&machine, &options, &started)?;
    let names = Names::new();
    names.set_nodes(started.nodes.clone());
    let (network, mut tasks) = network::serve(&client, &options, &started, &names).await?;
    tracing::info!(
        nodes = options.nodes.join(","),
        sandbox = sandbox_word(chosen.isolation),
        network = network_word(chosen.network),
        rootless = level.rootless,
        limits = %limit_words(&level),
        outbound = network.outbound,
        "node starts"
    );
    let shared = Arc::new(Shared {
        images: Images::new(options.images.clone())?,
        objects: ApiObjects::new(client.clone()),
        events: Events::start(client.clone()),
        yard: started.yard,
        client: client.clone(),
        names,
        timing: timing(&options),
        nodes: virtual_nodes.into_iter().map(|node| (node.name.clone(), node)).collect(),
        places: state.places.clone(),
        network,
        isolation: chosen.isolation,
        shim: shim(&options, chosen.network)?,
        closing: stop.clone(),
        closed: CancellationToken::new(),
        began: Timestamp::now(),
        addresses: Mutex::new(started.addresses),
        pods: Mutex::default(),
    });
    tasks.spawn(pod::keep_logs_within_bounds(Arc::clone(&shared)));
    let served = serving::start(&options, &shared, &mut tasks)?;
    let hearts =
        join(&client, &options, &shared, &machine, (&level, chosen), &served, &mut tasks).await?;
    tracing::info!(served = ?served, "node is ready");
    let ended = tokio::select! {
        () = stop.cancelled() => Ok(()),
        () = shared.yard.ended() => Err(AgentError::HolderEnded),
        Some(ended) = tasks.join_next() => match ended {
            Ok(()) => Err(AgentError::Network("a server of the pods' network ended".to_owned())),
            Err(error) => Err(AgentError::Network(error.to_string())),
        },
    };
    stop.cancel();
    wind_up(&shared, &options).await;
    shared.closed.cancel();
    hearts.join_all().await;
    shared.yard.end().await;
    ended
}

fn check_names(nodes: &[String]) -> Result<(), AgentError> {
    let mut names = BTreeSet::new();
    for name in nodes {
        node::check_name(name)?;
        if !names.insert(name) {
            return Err(AgentError::NodeTwice(name.clone()));
        }
    }
    Ok(())
}

/// Shows every node to the API server, keeps it alive there and follows its pods.
async fn join(
    client: &Client,
    options: &Options,
    shared: &Arc<Shared>,
    machine: &Arc<Machine>,
    (level, chosen): (&Level, start::Chosen),
    served: &BTreeMap<String, SocketAddr>,
    tasks: &mut JoinSet<()>,
) -> Result<JoinSet<()>, AgentError> {
    let mut hearts = JoinSet::new();
    for node in shared.nodes.values() {
        let Some(address) = served.get(&node.name) else { continue };
        let facts = facts(client, options, node, machine, level, chosen, *address).await;
        let registered = node::register_within(client, &facts, REGISTER).await?;
        let (_, facts) = channel::channel(facts);
        let (state, timing) = (options.state.clone(), node::Timing::default());
        let (heart, object) = Heartbeat::new(client.clone(), registered, facts, state, timing);
        hearts.spawn(heart.run(shared.closed.clone()));
        let (shared, client) = (Arc::clone(shared), client.clone());
        tasks.spawn(watch::follow(shared, client, node.name.clone(), object));
    }
    Ok(hearts)
}

/// Puts the library for pods on the machine's own network where they can load it.
fn shim(options: &Options, network: Network) -> Result<Option<PathBuf>, AgentError> {
    if network == Network::Bridge {
        return Ok(None);
    }
    let path = options.state.join("shim.so");
    let written = std::fs::write(&path, trainyard_holder::shim());
    written.map_err(|error| AgentError::State {
        folder: options.state.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(Some(path))
}

/// Gives pods the time to end and their last states to be written.
async fn wind_up(shared: &Shared, options: &Options) {
    let pods: Vec<_> = lock(&shared.pods).values().cloned().collect();
    let all = async {
        for live in &pods {
            live.settled().await;
        }
    };
    let patience = options.timing.closing_grace + LAST_WRITES;
    if tokio::time::timeout(patience, all).await.is_err() {
        tracing::warn!("some pods had not ended in time; the holder ends them");
    }
}

fn timing(options: &Options) -> Timing {
    let timing = &options.timing;
    Timing {
        crash: Backoff::between(timing.crash_first, timing.crash_longest),
        image: Backoff::between(timing.crash_first, timing.crash_longest),
        config_retry: timing.config_retry,
        closing_grace: timing.closing_grace,
        ..Timing::default()
    }
}

fn virtual_nodes(
    machine: &Machine,
    options: &Options,
    started: &Started,
) -> Result<Vec<VirtualNode>, AgentError> {
    let gpus = Nvml.gpus().unwrap_or_else(|error| {
        tracing::warn!(%error, "the machine's GPUs cannot be read; none are offered");
        Vec::new()
    });
    let resources: Result<Vec<ResourceArg>, _> =
        options.resources.iter().map(|text| text.parse()).collect();
    let sharing = Sharing {
        nodes: options.nodes.clone(),
        cpu_millis: options.node_cpu.as_deref().map(node::node_cpu).transpose()?,
        memory: options.node_memory.as_deref().map(node::node_memory).transpose()?,
        resources: resources?,
        gpus: u64::try_from(gpus.len()).unwrap_or(u64::MAX),
        pods: options.max_pods,
    };
    let shares = node::share(machine, &sharing)?;
    let promised: Vec<u64> = shares.iter().map(promised_gpus).collect();
    let dealt = node::share_gpus(gpus, &promised);
    let rows = started.nodes.iter().zip(shares).zip(promised.iter().zip(dealt));
    Ok(rows
        .map(|(((name, address), capacity), (promised, gpus))| VirtualNode {
            name: name.clone(),
            address: *address,
            allocatable: capacity,
            devices: Arc::new(Mutex::new(Devices::new(gpus, *promised))),
        })
        .collect())
}

fn promised_gpus(amounts: &BTreeMap<String, Quantity>) -> u64 {
    let amount = amounts.get(GPU_RESOURCE).and_then(|q| trainyard_api::quantity::parse(&q.0).ok());
    amount.and_then(|amount| u64::try_from(amount.value()).ok()).unwrap_or(0)
}

async fn facts(
    client: &Client,
    options: &Options,
    node: &VirtualNode,
    machine: &Arc<Machine>,
    level: &Level,
    chosen: start::Chosen,
    address: SocketAddr,
) -> NodeFacts {
    let version = client.apiserver_version().await.ok();
    NodeFacts {
        name: node.name.clone(),
        address: address.ip(),
        port: address.port(),
        capacity: node.allocatable.clone(),
        allocatable: node.allocatable.clone(),
        machine: Arc::clone(machine),
        sandbox: sandbox_word(chosen.isolation).to_owned(),
        network: network_word(chosen.network).to_owned(),
        rootless: level.rootless,
        limits: match level.cgroups {
            Cgroups::None => node::Limits::NotEnforced(limit_words(level)),
            Cgroups::V1 | Cgroups::V2 => node::Limits::Enforced(limit_words(level)),
        },
        labels: BTreeMap::new(),
        declared_features: version.as_ref().map(node::declared_features).unwrap_or_default(),
        pressure: Pressure::measure(Path::new("/"), &options.state).unwrap_or_default(),
        readiness: Readiness::Ready,
        agent: AgentIdentity::current(),
    }
}

fn sandbox_word(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Processes => "processes",
        Isolation::Namespaces => "namespaces",
    }
}

fn network_word(network: Network) -> &'static str {
    match network {
        Network::Loopback => "loopback",
        Network::Bridge => "bridge",
    }
}

fn limit_words(level: &Level) -> String {
    match level.cgroups {
        Cgroups::V1 => "cgroups v1".to_owned(),
        Cgroups::V2 => "cgroups v2".to_owned(),
        Cgroups::None => {
            let reason = level.cgroups_reason.as_deref().unwrap_or("there are no cgroups to use");
            format!("not enforced: {reason}")
        }
    }
}
