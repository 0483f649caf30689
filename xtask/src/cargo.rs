//! Runs Cargo and other programs in the workspace, and finds what Cargo built. Knows no tier.

use std::convert::Infallible;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use crate::output::Output;

/// The variable that names the binary to those who test or measure it.
pub(crate) const BINARY: &str = "TRAINYARD_BIN";
/// The variable that names this program to those who test it.
pub(crate) const OWN: &str = "TRAINYARD_XTASK";

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

/// Takes the place of this process, so that signals reach that program alone.
pub(crate) fn become_program(command: &mut std::process::Command) -> Result<Infallible> {
    let name = command.get_program().to_string_lossy().into_owned();
    Err(command.exec()).with_context(|| format!("cannot run {name}"))
}

/// What a command gives on standard output; an error quotes standard error.
pub(crate) async fn answer(command: &mut Command) -> Result<Vec<u8>> {
    let words = command.as_std();
    let parts = std::iter::once(words.get_program()).chain(words.get_args());
    let name = parts.map(std::ffi::OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
    let output = command.output().await.with_context(|| format!("cannot run `{name}`"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{name}` failed: {stderr}");
    Ok(output.stdout)
}

/// A program that Cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Built {
    /// The folder of its package.
    pub(crate) folder: PathBuf,
    /// Its target's name.
    pub(crate) name: String,
    /// Is it a test of its package?
    pub(crate) test: bool,
    /// Where it is.
    pub(crate) path: PathBuf,
}

/// Builds with these words of Cargo's and lists the programs that came of it; none when it failed, and
/// `output` has why.
pub(crate) async fn build(words: &[&str], output: &mut Output) -> Result<Option<Vec<Built>>> {
    let mut command = cargo(words);
    command.args(["--message-format", "json-render-diagnostics"]);
    let mut found = Vec::new();
    let succeeded = output.of_reading(&mut command, |line| {
        found.extend(parse_built(line));
        false
    });
    Ok(succeeded.await?.then_some(found))
}

/// The program of one of Cargo's messages, when it is about one.
fn parse_built(line: &str) -> Option<Built> {
    let message: Value = serde_json::from_str(line).ok()?;
    let path = message["executable"].as_str()?;
    Some(Built {
        folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        name: message["target"]["name"].as_str()?.to_owned(),
        test: message["profile"]["test"].as_bool()?,
        path: path.into(),
    })
}

/// Builds one program by these words after `cargo build`.
pub(crate) async fn built_program(words: &[&str], name: &str) -> Result<PathBuf> {
    let words = [&["build", "--quiet"], words].concat();
    let built = build(&words, &mut Output::Shown).await?;
    let built = built.with_context(|| format!("`cargo {}` failed", words.join(" ")))?;
    let found = built.into_iter().find(|program| program.name == name && !program.test);
    Ok(found.with_context(|| format!("`cargo {}` built no {name}", words.join(" ")))?.path)
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

    #[test]
    fn programs_are_found_among_the_messages() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/a/crates/x/Cargo.toml",
            "target":{"kind":["test"],"name":"it"},"profile":{"test":true},"executable":"/t/it-1"}"#;
        let expected = Built {
            folder: "/a/crates/x".into(),
            name: "it".to_owned(),
            test: true,
            path: "/t/it-1".into(),
        };
        assert_eq!(parse_built(line), Some(expected));
        assert_eq!(parse_built(&line.replace("\"/t/it-1\"", "null")), None);
        assert_eq!(parse_built("{\"reason\":\"build-finished\",\"success\":true}"), None);
        assert_eq!(parse_built("warning: nothing"), None);
    }
}
