//! The tier on dependencies: provides cargo-deny once, outside the tree, and runs it on
//! `deny.toml`. The rules themselves are in that file.

use std::path::PathBuf;

use anyhow::Result;
use trainyard_e2e::control_plane::cache_root;
use trainyard_e2e::counts::Counts;

use super::report::Verdict;
use crate::cargo::{cargo, program, succeeds};

const VERSION: &str = "0.20.2";

pub(crate) async fn run() -> Result<Verdict> {
    let root = cache_root()?.join("tools");
    let tool = root.join("bin").join("cargo-deny");
    if !has_version(&tool).await {
        println!("installing cargo-deny {VERSION} into {} (some minutes, once)", root.display());
        let mut install =
            cargo(&["install", "cargo-deny", "--debug", "--locked", "--version", VERSION]);
        if !succeeds(install.arg("--root").arg(&root)).await? {
            return Ok(Verdict::Skipped(format!("cargo-deny {VERSION} cannot be installed")));
        }
    }
    // A build fetches what this machine needs; the check reads every platform's dependencies. Where
    // that is refused the check says what it lacks.
    succeeds(&mut cargo(&["fetch", "--locked"])).await?;
    // The database of advisories lives on a host that not every build machine reaches; the rest
    // needs nothing but what Cargo has fetched by now.
    println!(
        "not checked here: advisories (`cargo deny check advisories` does, with the internet)"
    );
    let mut check = program(tool);
    check.args(["--workspace", "--offline", "--locked", "check", "bans", "licenses", "sources"]);
    Ok(Verdict::Ran(Counts::one(succeeds(&mut check).await?)))
}

async fn has_version(tool: &PathBuf) -> bool {
    let answer = program(tool).arg("--version").output().await;
    answer.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout).split_whitespace().any(|word| word == VERSION)
    })
}
