//! The developer's commands. Reads the command line, runs one command, ends in order when
//! interrupted. Never part of what is shipped.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool speaks through its terminal"
)]

mod api_server;
mod bench;
mod cargo;
mod control_plane;
mod demo;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

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
    /// Show a job on a real control plane, from submission to success.
    Demo,
    /// Measure on a real control plane; prints one JSON line.
    Bench(bench::Arguments),
    /// Serve the embedded API alone, for tests and measurements.
    #[command(hide = true)]
    ApiServer(api_server::Arguments),
    /// Check file lengths, headers, dependency arrows and left-overs.
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
        Command::Demo => demo::run().await,
        Command::Bench(arguments) => bench::run(arguments).await,
        Command::ApiServer(arguments) => api_server::run(arguments).await,
        Command::Tidy => {
            let counts = tidy::run().await?;
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
