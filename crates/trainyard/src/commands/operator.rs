//! `trainyard operator`: runs the operator of TFJobs and Volcano Jobs against a cluster until it is told to stop.
//!
//! Owns flags, logs, the connection, signals and sockets; the work itself is `trainyard-operator`.

mod flags;
mod gangs;
pub(super) mod go_syntax;
mod inherited;
pub(super) mod leader;
pub(super) mod listen;
pub(super) mod logs;

use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use trainyard_operator::{Error, Operator, serve};

pub(crate) use flags::Flags;
pub(crate) use go_syntax::two_dashes;
pub(crate) use leader::LEASE;

use super::{client, signals};
use crate::failure::Failure;

/// How long answers under way may take at the end.
const SOCKET_PATIENCE: Duration = Duration::from_secs(2);

/// Runs the operator.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let options = flags.options()?;
    super::logs::start(flags.logs.format(), flags.logs.level());
    for note in flags.notes() {
        info!("{note}");
    }
    // One thread: it waits for the API server most of the time, and waking a second one for every
    // answer would cost more than it brings.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    runtime.block_on(operate(flags, options))
}

async fn operate(flags: &Flags, options: trainyard_operator::Options) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let mut signals = signals::Signals::catch()?;
    let config = client::config(flags.kubeconfig.as_deref(), flags.master.as_deref()).await?;
    let client = client::connect(config)?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        namespace = options.namespace.as_deref().unwrap_or("all"),
        leader_election = options.leader.is_some(),
        "operator starts"
    );
    let operator = Operator::new(client, options);
    let mut sockets = JoinSet::new();
    for listener in
        listen::all(&flags.metrics_bind_address, &flags.health_probe_bind_address).await?
    {
        sockets.spawn(serve::http(listener, operator.metrics(), operator.health(), stop.clone()));
    }

    let mut work = std::pin::pin!(operator.run(stop.clone()));
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            name = signals.next() => {
                // The first signal ends the work cleanly, the second at once.
                if stop.is_cancelled() {
                    return Err(Failure::interrupted(name));
                }
                info!(signal = name, "stopping: finishing writes under way");
                stop.cancel();
            }
            Some(socket) = sockets.join_next() => {
                // Without probes the pod is restarted anyway: better to end in order.
                if let Ok(Err(problem)) = socket {
                    error!(%problem, "serving metrics and probes failed");
                    stop.cancel();
                }
            }
        }
    };
    stop.cancel();
    // A client that keeps its connection open must not keep us.
    let closed = async { while sockets.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SOCKET_PATIENCE, closed).await;
    ended.map_err(|error| match error {
        Error::Option { .. } => Failure::usage(error),
        error => Failure::other("the operator ended", &error),
    })?;
    info!("operator has stopped");
    Ok(())
}
