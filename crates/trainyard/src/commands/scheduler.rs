//! `trainyard scheduler`: runs the gang scheduler against a cluster until it is told to stop.
//!
//! Owns flags, logs, the connection, signals and sockets; the work itself is `trainyard-operator`'s.

use std::path::PathBuf;

use clap::Args;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;
use trainyard_operator::scheduler::{LEASE, Options, Scheduler};
use trainyard_operator::serve;

use super::operator::go_syntax::boolean;
use super::operator::leader::Timing;
use super::operator::listen::{self, Endpoint, endpoint};
use super::operator::logs::Logs;
use super::{client, signals, tend};
use crate::failure::Failure;

/// Run the gang scheduler against a cluster
///
/// Binds the pods that name it: those of a PodGroup all together or not at all, in the order and within
/// the limits of their queues. Others schedule beside it: what they bind is seen. Runs until it gets
/// SIGTERM or SIGINT, or loses its lease (exit code 1).
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// A name that pods call it by, in `schedulerName`; several may be given
    #[arg(long = "scheduler-name", value_name = "NAME", value_parser = name,
        default_values_t = ["volcano", "trainyard"].map(str::to_owned))]
    names: Vec<String>,

    /// Kubeconfig file; without it KUBECONFIG, the pod's own account, or ~/.kube/config
    #[arg(long, value_name = "FILE", help_heading = "API server")]
    kubeconfig: Option<PathBuf>,
    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL", help_heading = "API server")]
    master: Option<String>,

    /// Where /metrics is served; 0 turns it off
    #[arg(long, default_value = ":8080", value_parser = endpoint, value_name = "ADDRESS",
        help_heading = "Metrics and probes")]
    metrics_bind_address: Endpoint,
    /// Where /healthz and /readyz are served; 0 turns it off
    #[arg(long, default_value = ":8081", value_parser = endpoint, value_name = "ADDRESS",
        help_heading = "Metrics and probes")]
    health_probe_bind_address: Endpoint,

    /// Act only while holding a lease, so that several schedulers can stand by
    #[arg(long, default_value = "false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = boolean, value_name = "BOOL",
        help_heading = "Leader election")]
    leader_elect: bool,
    /// Name of the lease
    #[arg(long, default_value = LEASE, value_name = "NAME", help_heading = "Leader election")]
    leader_election_id: String,
    #[command(flatten)]
    timing: Timing,
    #[command(flatten)]
    logs: Logs,
}

impl Flags {
    fn options(&self) -> Result<Options, Failure> {
        let leader =
            self.leader_elect.then(|| self.timing.options(&self.leader_election_id)).transpose()?;
        Ok(Options { names: self.names.clone(), leader, ..Options::on_cluster() })
    }
}

/// A name as pods may have it.
fn name(text: &str) -> Result<String, String> {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
    if !text.is_empty() && text.len() <= 253 && text.chars().all(inside) {
        Ok(text.to_owned())
    } else {
        Err("a scheduler's name has lower-case letters, digits, dashes and dots".to_owned())
    }
}

/// Runs the scheduler.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let options = flags.options()?;
    super::logs::start(flags.logs.format(), flags.logs.level());
    // One thread, as the operator has.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    runtime.block_on(schedule(flags, options))
}

async fn schedule(flags: &Flags, options: Options) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let signals = signals::Signals::catch()?;
    let config = client::config(flags.kubeconfig.as_deref(), flags.master.as_deref()).await?;
    let client = client::connect(config)?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        names = flags.names.join(","),
        leader_election = options.leader.is_some(),
        "scheduler starts"
    );
    let scheduler = Scheduler::new(client, options);
    let mut sockets = JoinSet::new();
    for listener in
        listen::all(&flags.metrics_bind_address, &flags.health_probe_bind_address).await?
    {
        sockets.spawn(serve::http(listener, scheduler.metrics(), scheduler.health(), stop.clone()));
    }
    let work = Box::pin(scheduler.run(stop.clone()));
    let ended = tend::until_it_ends(work, sockets, signals, stop).await?;
    ended.map_err(|error| Failure::other("the scheduler ended", &error))?;
    info!("scheduler has stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn read(line: &str) -> Result<Flags, clap::Error> {
        let args = ["trainyard", "scheduler"].into_iter().chain(line.split_whitespace());
        match cli::parse(args.map(Into::into))?.command {
            Command::Scheduler(flags) => Ok(*flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn its_names_and_its_lease() {
        let options = read("").unwrap().options().unwrap();
        assert_eq!(options.names, ["volcano", "trainyard"]);
        assert!(options.leader.is_none());
        let line = "--scheduler-name a --scheduler-name b.c -leader-elect --metrics-bind-address=0";
        let flags = read(line).unwrap();
        assert_eq!(flags.metrics_bind_address, Endpoint::Off);
        let options = flags.options().unwrap();
        assert_eq!(options.names, ["a", "b.c"]);
        assert_eq!(options.leader.unwrap().lease, LEASE);
    }

    #[test]
    fn mistakes_are_usage_errors() {
        for wrong in ["--scheduler-name A", "--scheduler-name=", "--leader-elect=maybe", "surplus"]
        {
            assert_eq!(read(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
