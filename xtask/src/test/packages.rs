//! Programs of the machine that a tier uses where they are there, from the distribution's packages.

use std::path::PathBuf;

use anyhow::Result;

use crate::cargo::{program, succeeds};

/// Programs that carry pods' packets, and what the cases build their networks with.
pub(crate) const OUTBOUND: [(&str, &str); 3] =
    [("slirp4netns", "slirp4netns"), ("pasta", "passt"), ("ip", "iproute2")];

/// A browser, which the cases about pages look through.
pub(crate) const BROWSER: [(&str, &str); 1] = [("chromium", "chromium")];

/// Installs what is missing of these programs, each with its package, where this is root's to do; else says
/// what is. Cases that need them say so themselves.
pub(crate) async fn install(programs: &[(&str, &str)]) -> Result<()> {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    println!("missing packages: {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() || !is_there("apt-get") {
        eprintln!("*** install them, or cases will be skipped: {}", missing.join(" "));
        return Ok(());
    }
    let words = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let apt = |words: &[&str]| {
        let mut command = program("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    if !succeeds(apt(&words).args(&missing)).await? {
        // The lists of packages may be old, or not be there.
        succeeds(&mut apt(&["update", "--quiet"])).await?;
        if !succeeds(apt(&words).args(&missing)).await? {
            eprintln!("*** cannot install: {}", missing.join(" "));
        }
    }
    Ok(())
}

fn missing<'a>(programs: &[(&str, &'a str)]) -> Vec<&'a str> {
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
