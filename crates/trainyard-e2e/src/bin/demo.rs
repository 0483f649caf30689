//! A job on a real control plane, from submission to success, for a person to watch. `cargo xtask demo`
//! builds the binary and starts this.

#![allow(clippy::print_stdout, reason = "a person watches")]

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

#[tokio::main]
async fn main() -> Result<()> {
    let binary = std::env::var_os("TRAINYARD_BIN").map(PathBuf::from);
    let binary =
        binary.context("TRAINYARD_BIN must name the binary; `cargo xtask demo` builds it")?;
    // Dropping the demonstration's future ends the processes it holds, so an interrupt drops it.
    tokio::select! {
        outcome = trainyard_e2e::demo::run(&binary, |text| println!("{text}\n")) => outcome,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}
