//! The product's binary, for tiers that run it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Names a built binary; without it one is built.
const VARIABLE: &str = "TRAINYARD_BIN";

/// The binary.
pub(crate) async fn product() -> Result<PathBuf> {
    static FOUND: OnceCell<PathBuf> = OnceCell::const_new();
    FOUND.get_or_try_init(find).await.cloned()
}

async fn find() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = match std::env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => build(&workspace).await?,
    };
    let path = workspace.join(path);
    path.canonicalize().with_context(|| format!("the binary {}", path.display()))
}

async fn build(workspace: &Path) -> Result<PathBuf> {
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--package=trainyard"]).current_dir(workspace);
    command.stdin(Stdio::null()).kill_on_drop(true);
    for (variable, _) in std::env::vars_os() {
        // What Cargo tells this program about itself would make build scripts run again.
        let name = variable.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&variable);
        }
    }
    let built = command.status().await.context("running cargo")?;
    ensure!(built.success(), "`cargo build --package=trainyard` ended with {built}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    Ok(target.join("debug/trainyard"))
}
