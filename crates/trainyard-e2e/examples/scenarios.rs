//! Runs the scenarios whose names contain the first argument; all of them without one.

use anyhow::{Result, ensure};

#[tokio::main]
async fn main() -> Result<()> {
    let filter = std::env::args().nth(1);
    let counts = trainyard_e2e::suite::run(filter.as_deref()).await?;
    ensure!(counts.failed == 0, "{} scenarios failed", counts.failed);
    Ok(())
}
