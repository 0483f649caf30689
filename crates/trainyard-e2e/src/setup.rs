//! What tiers need before they run: programs that are built once, packages of this machine, or the reason why
//! they cannot be had.

use anyhow::Result;
use trainyard_testbed::packages;

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

/// Builds programs of a control plane and the product's binary, and installs packages: pairs of a program and the
/// package that has it.
pub(crate) async fn programs_product_and_packages(
    wanted: &[Program],
    from_packages: &[(&str, &str)],
) -> Result<Option<String>> {
    let obstacle = programs_and_product(wanted).await?;
    if obstacle.is_none() {
        packages::install(from_packages).await?;
    }
    Ok(obstacle)
}
