//! `bench`: measurements on a real control plane, one JSON line each. Only builds what is measured
//! and prints the result.
//!
//! What is measured is compared with what this process does itself (the floor, the played kubelets),
//! so this process must be optimised too: built for debugging, it builds itself again and steps back.

mod scheduler;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use trainyard_e2e::bench::apiserver::ApiServerBench;
use trainyard_e2e::bench::node::NodeBench;
use trainyard_e2e::bench::run::RunBench;
use trainyard_e2e::bench::{self, BenchOptions};
use trainyard_e2e::node::Who;

use crate::cargo;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The TFJob operator: time to Running over the floor, CPU, memory, writes per job.
    Operator {
        /// How many jobs of five replicas.
        #[arg(long, default_value_t = 500)]
        jobs: usize,
        /// Put this operator under the load instead of ours; run by `sh -c` with KUBECONFIG set.
        #[arg(long, value_name = "CMD")]
        operator_cmd: Option<String>,
    },
    /// The node agent: what a pod costs over a process of a shell, in time, CPU and memory.
    Node {
        /// Pods of the parts that need many.
        #[arg(long, default_value_t = 50)]
        pods: usize,
        /// Pairs of the parts that compare.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Run the agent as an ordinary user; needs root.
        #[arg(long)]
        user: bool,
        /// Nothing optimised: to try the benchmark itself, never for its numbers.
        #[arg(long, hide = true)]
        debug_binary: bool,
    },
    /// `trainyard run` against a shell and trainings started by hand: time, memory, the first line.
    Run {
        /// Pairs of runs that do nothing.
        #[arg(long, default_value_t = 11)]
        pairs: usize,
        /// Pairs of trainings.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Nothing optimised: to try the benchmark itself, never for its numbers.
        #[arg(long, hide = true)]
        debug_binary: bool,
    },
    /// The scheduler: decisions about gangs in memory; bindings on a control plane over the floor.
    Scheduler(Box<scheduler::Flags>),
    /// The embedded API server against kube-apiserver with etcd: start, memory, creations, lists, watches.
    Apiserver {
        /// How long each rate of creations is measured.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// How many pods are listed.
        #[arg(long, default_value_t = 10_000)]
        pods: usize,
        /// How many clients watch.
        #[arg(long, default_value_t = 100)]
        watchers: usize,
        /// How many events each of them gets.
        #[arg(long, default_value_t = 1_000)]
        events: usize,
        /// Nothing optimised: to try the benchmark itself, never for its numbers.
        #[arg(long, hide = true)]
        debug_binary: bool,
    },
}

/// The agent tells what it took to start a pod's program.
const TOLD: &str = "info,trainyard_node::pod=debug";

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    // A run is compared with other processes, not with what this one does.
    let tried = matches!(
        arguments.what,
        What::Node { debug_binary: true, .. }
            | What::Run { .. }
            | What::Apiserver { debug_binary: true, .. }
    ) || matches!(&arguments.what, What::Scheduler(flags) if flags.debug_binary);
    if cfg!(debug_assertions) && !tried {
        let told = matches!(arguments.what, What::Node { .. });
        return again_optimised(told).await;
    }
    let result = match arguments.what {
        What::Operator { jobs, operator_cmd } => {
            let command = match operator_cmd {
                Some(line) => bench::OperatorCommand::Other(line),
                None => bench::OperatorCommand::Ours(cargo::built_binary(true).await?),
            };
            bench::operator(BenchOptions { jobs, command }).await?
        }
        What::Node { pods, rounds, user, debug_binary } => {
            let binary = cargo::built_binary(!debug_binary).await?;
            let who = if user { Who::User } else { Who::Me };
            bench::node::node(NodeBench { binary, pods, rounds, who }).await?
        }
        What::Run { pairs, rounds, debug_binary } => {
            let binary = cargo::built_binary(!debug_binary).await?;
            bench::run::run(RunBench { binary, pairs, rounds }).await?
        }
        What::Scheduler(flags) => {
            scheduler::run(*flags, |result| println!("{result}")).await?;
            return Ok(ExitCode::SUCCESS);
        }
        What::Apiserver { seconds, pods, watchers, events, .. } => {
            bench::apiserver::apiserver(ApiServerBench { seconds, pods, watchers, events }).await?
        }
    };
    println!("{result}");
    Ok(ExitCode::SUCCESS)
}

/// The same command line by an optimised build of this program.
async fn again_optimised(told: bool) -> Result<ExitCode> {
    let words = ["run", "--quiet", "--profile", "driver", "--package", "xtask", "--"];
    let mut command = cargo::cargo(&words);
    command.args(std::env::args_os().skip(1));
    if told {
        command.env("RUST_LOG", TOLD);
    }
    let status = command.status().await.context("cannot run `cargo`")?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
