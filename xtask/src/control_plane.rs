//! `control-plane`: a real Kubernetes control plane to try things on. Only starts it and says
//! where it is.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use trainyard_testbed::control_plane::{ControlPlane, Identity, Options};

/// How often the servers are looked after while waiting.
const WATCH: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Keep the folder with logs, keys and kubeconfigs at the end.
    #[arg(long)]
    keep: bool,
    /// Start the stock scheduler too.
    #[arg(long)]
    scheduler: bool,
    /// Controllers to run in kube-controller-manager, separated by commas; `*` means the usual ones.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    controllers: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let started = Instant::now();
    let mut options =
        Options { keep: arguments.keep, scheduler: arguments.scheduler, ..Options::default() };
    if !arguments.controllers.is_empty() {
        options.controllers = arguments.controllers;
    }
    let mut plane = ControlPlane::start(options).await?;
    println!("ready after {:.1} s at {}", started.elapsed().as_secs_f64(), plane.url());
    for (program, pid) in plane.pids() {
        println!("  {program}: process {pid}");
    }
    println!("logs, audit log and kubeconfigs: {}", plane.dir().display());
    println!("export KUBECONFIG={}", plane.kubeconfig(Identity::Admin).display());
    println!("Ctrl-C ends it.");
    loop {
        tokio::time::sleep(WATCH).await;
        plane.check()?;
    }
}
