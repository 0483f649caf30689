//! Which releases the package index offers to a Python, asked through the ordinary clients as they are
//! configured on this machine. Knows no address of any index.

use std::path::Path;
use std::time::Duration;

use crate::command::{Invocation, Place};
use crate::error::ImageError;
use crate::interpreters::Interpreter;
use crate::tools::{Failure, Tool, classify, failed};
use crate::variables::{self, Given};
use crate::version::{Version, Wanted};

const ASKING: Duration = Duration::from_secs(90);

/// The newest release of a package that fits the tag and that this Python can install.
pub(crate) async fn newest(
    tool: &Tool,
    python: &Interpreter,
    package: &str,
    wanted: &Wanted,
    folder: &Path,
) -> Result<Option<Version>, ImageError> {
    match tool {
        Tool::Uv(uv) => by_uv(uv, python, package, wanted, folder).await,
        Tool::Pip => by_pip(python, package, wanted, folder).await,
    }
}

/// Runs on the machine: it fetches nothing but what is known of packages that are named here, and builds
/// nothing.
fn asking(program: &Path, folder: &Path) -> Invocation {
    let home = folder.join(".asked");
    let given = Given::here().variables;
    Invocation::new(program, ASKING).at(folder).envs(&variables::plain(&home)).envs(&given)
}

async fn by_uv(
    uv: &Path,
    python: &Interpreter,
    package: &str,
    wanted: &Wanted,
    folder: &Path,
) -> Result<Option<Version>, ImageError> {
    let asked = tempfile(folder, package, wanted).await?;
    let run = asking(uv, folder)
        .args(["pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate"])
        .args(["--only-binary", ":all:", "--python"])
        .args([&python.executable, &asked]);
    let outcome = run.run(Place::Machine, &mut |_| ()).await;
    // Only a question; a file that stays behind is overwritten by the next.
    drop(tokio::fs::remove_file(&asked).await);
    let doing = format!("asking for releases of {package}");
    let outcome = outcome.map_err(ImageError::files("starting", uv))?;
    if outcome.is_good() {
        let pinned = outcome.out.iter().filter_map(|line| line.split_once("=="));
        return Ok(pinned
            .filter(|(name, _)| *name == package)
            .find_map(|(_, v)| Version::parse(v)));
    }
    match classify(&outcome.all(), package) {
        kind @ (Failure::DiskFull | Failure::Network) => {
            Err(failed(&doing, "uv", kind, &outcome, folder))
        }
        Failure::NoRelease | Failure::Other => Ok(None),
    }
}

async fn tempfile(
    folder: &Path,
    package: &str,
    wanted: &Wanted,
) -> Result<std::path::PathBuf, ImageError> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".asked-{}-{count}.in", std::process::id()));
    let line = match wanted {
        Wanted::Latest => package.to_owned(),
        Wanted::Prefix(_) => format!("{package}=={wanted}.*"),
        Wanted::Exact(_) => format!("{package}=={wanted}"),
    };
    tokio::fs::write(&path, line).await.map_err(ImageError::files("writing", &path))?;
    Ok(path)
}

async fn by_pip(
    python: &Interpreter,
    package: &str,
    wanted: &Wanted,
    folder: &Path,
) -> Result<Option<Version>, ImageError> {
    // Refusing a version that does not exist, pip names those that do; older ones have no other way.
    let impossible = format!("{package}==0.0.0.dev0");
    let run = asking(&python.executable, folder)
        .args(["-I", "-m", "pip", "--no-input", "--disable-pip-version-check", "--retries", "1"])
        .args(["download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--dest"])
        .args([folder.join(".asked")])
        .args([impossible]);
    let outcome = run
        .run(Place::Machine, &mut |_| ())
        .await
        .map_err(ImageError::files("starting", &python.executable))?;
    let said = outcome.all();
    let kind = classify(&said, package);
    let found = offered(&said);
    if found.is_empty() && matches!(kind, Failure::Network | Failure::DiskFull) {
        let doing = format!("asking for releases of {package}");
        return Err(failed(&doing, "pip", kind, &outcome, folder));
    }
    Ok(found.into_iter().filter(|version| wanted.matches(version)).max())
}

/// The versions in `(from versions: a, b, c)`.
fn offered(said: &str) -> Vec<Version> {
    let Some((_, rest)) = said.split_once("(from versions: ") else { return Vec::new() };
    let list = rest.split(')').next().unwrap_or_default();
    list.split(',').filter_map(|version| Version::parse(version.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pip_offers_is_read() {
        let said = "ERROR: Could not find a version that satisfies the requirement x==0.0.0.dev0 \
                    (from versions: 1.9.0, 1.10.0rc1, 1.10.0)\nERROR: No matching distribution";
        let found = offered(said);
        assert_eq!(found.iter().max().unwrap().to_string(), "1.10.0");
        assert_eq!(found.len(), 3);
        assert!(offered("(from versions: none)").is_empty());
        assert!(offered("").is_empty());
    }
}
