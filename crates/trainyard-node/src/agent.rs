//! The agent as a whole: started, kept going, ended in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trainyard_holder::protocol::Network;
use trainyard_image::Images;

use crate::accounts::Accounts;
use crate::error::AgentError;
use crate::events::Events;
use crate::making;
use crate::net::names::Names;
use crate::network;
use crate::node::{
    self, Devices, GPU_RESOURCE, Gpu, GpuSource as _, Machine, Nvml, ResourceArg, Sharing,
};
use crate::objects::ApiObjects;
use crate::options::Options;
use crate::pod::{self, Backoff};
use crate::presence::{self, Presence};
use crate::serving;
use crate::shared::{Shared, Timing, VirtualNode, lock};
use crate::start::{self, Started};
use crate::state;
use crate::upkeep;

/// How much longer than their grace the pods may take when the agent ends.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// Runs an agent until `stop`, or until it cannot go on.
pub async fn run(
    accounts: impl Into<Accounts>,
    options: Options,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    let accounts: Accounts = accounts.into();
    let client = accounts.any().clone();
    check_names(&options.nodes)?;
    let state = state::take(&options.state)?;
    state.clear().await?;
    let Some(version) = node::server_version(&client, presence::REACH, &stop).await? else {
        return Ok(());
    };
    let machine = Arc::new(Machine::read(Path::new("/"), &options.state)?);
    let (sharing, gpus) = sharing(&options)?;
    let together = node::of_all_pods(&machine, &sharing);
    let started = start::start(&options, state.id.clone(), together).await?;
    state.note_holder(started.yard.pid());
    let level = started.yard.level().clone();
    let chosen = started.chosen;
    let virtual_nodes = virtual_nodes(&machine, &sharing, gpus, &started)?;
    let names = Names::new();
    names.set_nodes(started.nodes.clone());
    let (network, mut tasks) = network::serve(&accounts, &options, &started, &names).await?;
    presence::announce(&options.nodes, chosen, &level, network.outbound.way().words());
    let objects = ApiObjects::new(client.clone());
    let shared = Arc::new(Shared {
        images: images(&options)?,
        takes_requirements: options.takes_requirements,
        cluster: upkeep::cluster(&objects).await,
        objects,
        events: Events::start(client.clone()),
        yard: started.yard,
        accounts,
        names,
        timing: timing(&options),
        pod_pids_limit: options.pod_pids_limit,
        nodes: virtual_nodes.into_iter().map(|node| (node.name.clone(), node)).collect(),
        places: state.places.clone(),
        written: Arc::default(),
        network,
        isolation: chosen.isolation,
        shim: shim(&options, chosen.network)?,
        closing: stop.clone(),
        closed: CancellationToken::new(),
        began: Timestamp::now(),
        addresses: Mutex::new(started.addresses),
        pods: Mutex::default(),
    });
    shared.images.make_on(making::ground(&shared));
    options.window.open(&shared);
    tasks.spawn(pod::keep_logs_within_bounds(Arc::clone(&shared)));
    tasks.spawn(upkeep::free_claims(Arc::clone(&shared)));
    tasks.spawn(upkeep::free_environments(Arc::clone(&shared), options.keep_environments));
    let served = serving::start(&options, &shared, &mut tasks)?;
    let presence = Presence { options: &options, shared: &shared, machine, level, chosen, version };
    let mut hearts = JoinSet::new();
    let ended = match presence.begin(&served, &mut hearts, &mut tasks).await {
        Ok(()) => until_the_end(&shared, &mut tasks, &served).await,
        Err(error) => Err(error),
    };
    stop.cancel();
    wind_up(&shared, &options).await;
    shared.closed.cancel();
    hearts.join_all().await;
    shared.yard.end().await;
    ended
}

/// What stands for images: opened before, or opened now.
fn images(options: &Options) -> Result<Images, AgentError> {
    match &options.opened {
        Some(images) => Ok(images.clone()),
        None => Ok(Images::new(options.images.clone())?),
    }
}

/// Waits until the agent is told to end, or cannot go on.
async fn until_the_end(
    shared: &Shared,
    tasks: &mut JoinSet<()>,
    served: &BTreeMap<String, SocketAddr>,
) -> Result<(), AgentError> {
    if !shared.closing.is_cancelled() {
        tracing::info!(?served, "node is ready");
    }
    tokio::select! {
        () = shared.closing.cancelled() => Ok(()),
        () = shared.yard.ended() => Err(AgentError::HolderEnded),
        Some(ended) = tasks.join_next() => match ended {
            Ok(()) => Err(AgentError::Network("a server of the pods' network ended".to_owned())),
            Err(error) => Err(AgentError::Network(error.to_string())),
        },
    }
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

/// How the machine is shared among its nodes, and the GPUs it has.
fn sharing(options: &Options) -> Result<(Sharing, Vec<Gpu>), AgentError> {
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
    Ok((sharing, gpus))
}

fn virtual_nodes(
    machine: &Machine,
    sharing: &Sharing,
    gpus: Vec<Gpu>,
    started: &Started,
) -> Result<Vec<VirtualNode>, AgentError> {
    let shares = node::share(machine, sharing)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Others run it beside themselves.
    #[allow(dead_code, reason = "that it compiles is all it is for")]
    fn may_go_to_another_thread(client: kube::Client, options: Options) -> impl Future + Send {
        run(client, options, CancellationToken::new())
    }
}
