//! `trainyard node`: this machine as a node of a cluster, until it is told to stop.
//!
//! Owns flags, logs, the connection and signals; the work itself is `trainyard-node`.

mod flags;

use tokio_util::sync::CancellationToken;
use tracing::info;

pub(crate) use flags::Flags;

use super::{client, logs, signals};
use crate::failure::Failure;
use crate::memory;

/// The word by which this program is told to be the holder of a node's pods.
pub(crate) const HOLDER: &str = "node-holder";

/// Runs the agent.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    logs::start(flags.log_format, flags.log_level);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    let ended = runtime.block_on(serve(flags));
    // A thread that still reads a slow disk must not keep us.
    runtime.shutdown_background();
    ended
}

async fn serve(flags: &Flags) -> Result<(), Failure> {
    let mut signals = signals::Signals::catch()?;
    let config = client::config(flags.kubeconfig.as_deref(), flags.master.as_deref()).await?;
    let options = flags.options(&config)?;
    let client = client::connect(config)?;
    let stop = CancellationToken::new();
    let mut work = std::pin::pin!(trainyard_node::run(client, options, stop.clone()));
    let mut memory = std::pin::pin!(memory::keep_small());
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            never = &mut memory => match never {},
            name = signals.next() => {
                if stop.is_cancelled() {
                    return Err(Failure::interrupted(name));
                }
                info!(signal = name, "stopping: pods are being ended");
                stop.cancel();
            }
        }
    };
    ended.map_err(|error| Failure::other("the node ended", &error))?;
    info!("node has stopped");
    Ok(())
}
