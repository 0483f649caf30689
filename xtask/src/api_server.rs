//! `api-server`: the embedded API alone in this process. Hidden: tests and measurements start it, and
//! end it by ending its standard input.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use trainyard_e2e::lone::{self, Wanted};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to leave the authority's certificate.
    #[arg(long)]
    authority: PathBuf,
    /// Where objects are kept; in memory without it.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Requests at once.
    #[arg(long)]
    in_flight: Option<usize>,
    /// Watches at once.
    #[arg(long)]
    long: Option<usize>,
    /// Connections at once.
    #[arg(long)]
    connections: Option<usize>,
    /// Seconds of patience with slow clients.
    #[arg(long)]
    patience: Option<u64>,
    /// Megabytes of all bodies at once.
    #[arg(long)]
    bodies_mb: Option<usize>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { authority, folder, in_flight, long, connections, patience, bodies_mb } =
        arguments;
    let wanted = Wanted { folder, in_flight, long, connections, patience, bodies_mb };
    lone::serve(&wanted, &authority).await?;
    Ok(ExitCode::SUCCESS)
}
