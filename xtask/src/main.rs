//! The developer's commands. Reads the command line, runs one command, ends in order when
//! interrupted. Never part of what is shipped.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool speaks through its terminal"
)]

mod bench;
mod cargo;
mod cluster;
mod control_plane;
mod counts;
mod demo;
mod output;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use output::Output;

const INTERRUPTED: u8 = 130;

/// The developer's commands of Trainyard.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every test tier, with all set-up, and end with one line of counts.
    Test(test::Arguments),
    /// Start a real Kubernetes control plane on loopback and wait for Ctrl-C.
    ControlPlane(control_plane::Arguments),
    /// Start, enter and end a real Kubernetes cluster with nodes.
    Cluster(cluster::Arguments),
    /// Show a job on a real control plane, from submission to success.
    Demo,
    /// Measure; prints one JSON line for each measurement. `--help` after it tells what.
    Bench(bench::Arguments),
    /// Check the house rules: files, arrows, features, licences and sources of dependencies.
    Tidy,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start the async runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async {
        // Dropping a command's future ends the processes it holds, so an interrupt drops it.
        let outcome = tokio::select! {
            outcome = dispatch(cli.command) => outcome,
            outcome = interrupted() => outcome,
        };
        outcome.unwrap_or_else(|error| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        })
    })
}

async fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Test(arguments) => test::run(arguments).await,
        Command::ControlPlane(arguments) => control_plane::run(arguments).await,
        Command::Cluster(arguments) => cluster::run(arguments).await,
        Command::Demo => match demo::run().await? {},
        Command::Bench(arguments) => match bench::run(arguments).await? {},
        Command::Tidy => {
            let counts = tidy::run(&mut Output::Shown).await?;
            Ok(if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

async fn interrupted() -> Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    eprintln!("interrupted");
    Ok(ExitCode::from(INTERRUPTED))
}
