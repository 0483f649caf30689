//! `demo`: a job on a real control plane, from submission to success, for a person to watch.

use std::process::ExitCode;

use anyhow::Result;

use crate::cargo;

pub(crate) async fn run() -> Result<ExitCode> {
    let binary = cargo::built_binary(false).await?;
    trainyard_e2e::demo::run(&binary, |text| println!("{text}\n")).await?;
    Ok(ExitCode::SUCCESS)
}
