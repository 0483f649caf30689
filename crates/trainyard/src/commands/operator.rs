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

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;
use trainyard_operator::{Error, Operator, serve};

pub(crate) use flags::Flags;
pub(crate) use go_syntax::two_dashes;
pub(crate) use leader::LEASE;

use super::{client, signals, tend};
use crate::failure::Failure;

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
    let signals = signals::Signals::catch()?;
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
    let work = Box::pin(operator.run(stop.clone()));
    let ended = tend::until_it_ends(work, sockets, signals, stop).await?;
    ended.map_err(|error| match error {
        Error::Option { .. } => Failure::usage(error),
        error => Failure::other("the operator ended", &error),
    })?;
    info!("operator has stopped");
    Ok(())
}
