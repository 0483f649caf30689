//! `bench`: measurements on a real control plane, one JSON line each. Only builds what is measured
//! and prints the result.
//!
//! What is measured is compared with what this process does itself (the floor, the played kubelets),
//! so this process must be optimised too: built for debugging, it builds itself again and steps back.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use trainyard_e2e::bench::{self, BenchOptions};

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
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    if cfg!(debug_assertions) {
        return again_optimised().await;
    }
    let What::Operator { jobs, operator_cmd } = arguments.what;
    let command = match operator_cmd {
        Some(line) => bench::OperatorCommand::Other(line),
        None => bench::OperatorCommand::Ours(cargo::built_binary(true).await?),
    };
    let result = bench::operator(BenchOptions { jobs, command }).await?;
    println!("{result}");
    Ok(ExitCode::SUCCESS)
}

/// The same command line by an optimised build of this program.
async fn again_optimised() -> Result<ExitCode> {
    let words = ["run", "--quiet", "--profile", "driver", "--package", "xtask", "--"];
    let mut command = cargo::cargo(&words);
    command.args(std::env::args_os().skip(1));
    let status = command.status().await.context("cannot run `cargo`")?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
