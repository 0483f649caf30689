//! `demo`: a job on a real control plane, from submission to success, for a person to watch. Only builds
//! what is shown and what shows it.

use std::convert::Infallible;

use anyhow::Result;

use crate::cargo::{BINARY, become_program, built_program};

pub(crate) async fn run() -> Result<Infallible> {
    let binary = built_program(&["--package", "trainyard"], "trainyard").await?;
    let show = built_program(&["--workspace", "--bin", "demo"], "demo").await?;
    become_program(std::process::Command::new(show).env(BINARY, binary))
}
