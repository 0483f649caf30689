//! The benchmarks' command line: measurements on a real control plane, one JSON line each. Measuring is the
//! library's.
//!
//! `cargo xtask bench` builds what is measured and this program, which is optimised too: some of what is
//! measured is compared with what this process does itself (the floor, the played kubelets).

#![allow(clippy::print_stdout, reason = "the result goes to the terminal")]

mod scheduler;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use trainyard_e2e::bench::apiserver::ApiServerBench;
use trainyard_e2e::bench::node::NodeBench;
use trainyard_e2e::bench::run::RunBench;
use trainyard_e2e::bench::{self, BenchOptions};
use trainyard_e2e::node::Who;

/// Names the binary that is measured.
const BINARY: &str = "TRAINYARD_BIN";

/// Measure on a real control plane; prints one JSON line for each measurement.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Cli {
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
    },
    /// `trainyard run` against a shell and trainings started by hand: time, memory, the first line.
    Run {
        /// Pairs of runs that do nothing.
        #[arg(long, default_value_t = 11)]
        pairs: usize,
        /// Pairs of trainings.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
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
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let what = Cli::parse().what;
    // Dropping a measurement's future ends the processes it holds, so an interrupt drops it.
    tokio::select! {
        outcome = measure(what) => outcome,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn measure(what: What) -> Result<()> {
    let result = match what {
        What::Operator { jobs, operator_cmd } => {
            let command = match operator_cmd {
                Some(line) => bench::OperatorCommand::Other(line),
                None => bench::OperatorCommand::Ours(binary()?),
            };
            bench::operator(BenchOptions { jobs, command }).await?
        }
        What::Node { pods, rounds, user } => {
            let who = if user { Who::User } else { Who::Me };
            bench::node::node(NodeBench { binary: binary()?, pods, rounds, who }).await?
        }
        What::Run { pairs, rounds } => {
            bench::run::run(RunBench { binary: binary()?, pairs, rounds }).await?
        }
        What::Scheduler(flags) => {
            return scheduler::run(*flags, |result| println!("{result}")).await;
        }
        What::Apiserver { seconds, pods, watchers, events } => {
            bench::apiserver::apiserver(ApiServerBench { seconds, pods, watchers, events }).await?
        }
    };
    println!("{result}");
    Ok(())
}

fn binary() -> Result<PathBuf> {
    let named = std::env::var_os(BINARY).filter(|name| !name.is_empty());
    let path = named.map(PathBuf::from);
    path.with_context(|| format!("{BINARY} must name the binary; `cargo xtask bench` builds it"))
}
