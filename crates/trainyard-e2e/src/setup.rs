//! What tiers need before they run: programs that are built once, or the reason why they cannot be had.

use anyhow::Result;

use crate::control_plane::{Binaries, Program};
use crate::harness::product;

/// Builds programs of a control plane that are not there; else tells why that cannot be done here.
pub(crate) async fn programs(wanted: &[Program]) -> Result<Option<String>> {
    let obstacle = Binaries::obstacle(wanted).await?;
    if obstacle.is_none() {
        Binaries::provide(wanted).await?;
    }
    Ok(obstacle)
}

/// The same, and the product's binary.
pub(crate) async fn programs_and_product(wanted: &[Program]) -> Result<Option<String>> {
    let obstacle = programs(wanted).await?;
    if obstacle.is_none() {
        product().await?;
    }
    Ok(obstacle)
}
