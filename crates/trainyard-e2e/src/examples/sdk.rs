//! The example with the Python SDK, in the environment that the tests of the SDK use.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::{PATIENCE, file};
use crate::check::contains;
use crate::yard::Bed;
use crate::yard::sdk::provide;

pub(super) async fn play(bed: &Bed) -> Result<()> {
    let python = provide().await.context("making the SDK's environment")?;
    let mut command = Command::new(python);
    command.arg(file("sdk/submit.py")).env("KUBECONFIG", bed.kubectl.kubeconfig());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.context("the script does not end")??;
    let said = String::from_utf8_lossy(&output.stdout);
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}{problem}", output.status);
    // The first worker decides; the other may have been ended by then.
    contains("its words", &said, &["worker 0 found y = 3.00 x + -1.00", "succeeded"])
}
