//! Runs Cargo and other programs in the workspace on behalf of a tier. Knows no tier.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// The workspace's folder.
pub(crate) fn workspace() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// `cargo` with these words, in the workspace.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = program("cargo");
    command.args(words);
    command
}

/// A program, in the workspace, that ends with its handle.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(workspace()).stdin(Stdio::null()).kill_on_drop(true);
    // What Cargo tells this program about itself would make build scripts run again.
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(describes_this_run) {
            command.env_remove(variable);
        }
    }
    command
}

fn describes_this_run(variable: &str) -> bool {
    variable == "CARGO"
        || ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
            .iter()
            .any(|prefix| variable.starts_with(prefix))
}

/// Builds the `trainyard` binary, for release or for debugging, and says where it is. It is chosen out of the
/// whole workspace, as in the README's first command and in the tests: by itself it has other features, and
/// all it depends on would be built once more.
pub(crate) async fn built_binary(release: bool) -> Result<PathBuf> {
    let mut words = vec!["build", "--quiet", "--workspace", "--bin", "trainyard"];
    words.extend(release.then_some("--release"));
    anyhow::ensure!(succeeds(&mut cargo(&words)).await?, "`cargo {}` failed", words.join(" "));
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |target| workspace().join(target));
    Ok(target.join(if release { "release" } else { "debug" }).join("trainyard"))
}

/// Runs to the end with its output shown; did it succeed?
pub(crate) async fn succeeds(command: &mut Command) -> Result<bool> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let status = command.status().await.with_context(|| format!("cannot run `{name}`"))?;
    Ok(status.success())
}

/// Runs to the end, shows standard output line by line and hands each line to `read` too.
pub(crate) async fn succeeds_while_reading(
    command: &mut Command,
    mut read: impl FnMut(&str),
) -> Result<bool> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{name}`"))?;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await? {
            println!("{line}");
            read(&line);
        }
    }
    Ok(child.wait().await?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_describes_this_run_is_withheld() {
        for withheld in ["CARGO", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_CRATE_NAME"] {
            assert!(describes_this_run(withheld), "{withheld}");
        }
        for kept in ["CARGO_HOME", "CARGO_BUILD_JOBS", "CARGO_TERM_COLOR", "PATH"] {
            assert!(!describes_this_run(kept), "{kept}");
        }
    }
}
