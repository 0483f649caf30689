//! The embedded API alone in a process. Tests and measurements start it, and end it by ending its standard
//! input.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use trainyard_e2e::lone::{self, Wanted};

/// Serve the embedded API alone, until standard input ends.
#[derive(Debug, Parser)]
struct Arguments {
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

fn main() -> Result<ExitCode> {
    let Arguments { authority, folder, in_flight, long, connections, patience, bodies_mb } =
        Arguments::parse();
    let wanted = Wanted { folder, in_flight, long, connections, patience, bodies_mb };
    tokio::runtime::Runtime::new()?.block_on(lone::serve(&wanted, &authority))?;
    Ok(ExitCode::SUCCESS)
}
