//! Programs of the machine that tests use where they are there, from the distribution's packages.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::say;

/// Programs that carry pods' packets, and what the cases build their networks with.
pub const OUTBOUND: [(&str, &str); 3] =
    [("slirp4netns", "slirp4netns"), ("pasta", "passt"), ("ip", "iproute2")];

/// A browser, which the cases about pages look through.
pub const BROWSER: [(&str, &str); 1] = [("chromium", "chromium")];

/// Installs what is missing of these programs (names or whole paths), each with its package, where this is root's to do; else says
/// what is. Cases that need them say so themselves.
pub async fn install(programs: &[(&str, &str)]) -> Result<()> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    say(&format!("missing packages: {names}"));
    if !rustix::process::geteuid().is_root() || !is_there("apt-get") {
        say(&format!("*** install them, or cases will be skipped: {names}"));
        return Ok(());
    }
    let mut words = vec!["install", "--yes", "--quiet", "--no-install-recommends"];
    words.extend(missing);
    if !apt(&words).await? {
        // The lists of packages may be old, or not be there.
        apt(&["update", "--quiet"]).await?;
        if !apt(&words).await? {
            say(&format!("*** cannot install: {names}"));
        }
    }
    Ok(())
}

async fn apt(words: &[&str]) -> Result<bool> {
    let mut command = Command::new("apt-get");
    // Another tier may be installing something.
    command.arg("--option=DPkg::Lock::Timeout=300").args(words);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.stdin(Stdio::null()).kill_on_drop(true).status().await;
    Ok(status.context("cannot run `apt-get`")?.success())
}

/// The packages of those programs that are not there.
pub(crate) fn missing<'a>(programs: &[(&str, &'a str)]) -> Vec<&'a str> {
    programs.iter().filter(|(name, _)| !is_there(name)).map(|(_, package)| *package).collect()
}

fn is_there(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_missing_programs_are_named() {
        assert_eq!(missing(&[("sh", "dash"), ("no-such-program", "nothing")]), ["nothing"]);
    }
}
