//! Go: its release, modules and builds. Knows no program.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::process::say;

/// A cold build of everything takes about ten minutes on two cores; a slow machine gets six times that.
const LOCK_PATIENCE: Duration = Duration::from_hours(1);

/// A module in Go's cache.
#[derive(Debug)]
pub struct Module {
    /// Its go.mod.
    pub go_mod: PathBuf,
    /// Its files.
    pub folder: PathBuf,
}

/// The release of Go that is installed here.
pub async fn release() -> Result<String> {
    let output = Command::new("go").args(["env", "GOVERSION"]).output().await;
    let output = output.context("cannot run `go`")?;
    ensure!(output.status.success(), "`go env GOVERSION` failed with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Waits for the build lock, which the operating system gives back when its holder dies.
pub async fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot open {}", path.display()))?;
    let started = Instant::now();
    let mut told = false;
    while started.elapsed() < LOCK_PATIENCE {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        if !told {
            say("another run is building the same; waiting for it");
            told = true;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    bail!("another run still holds {} after {LOCK_PATIENCE:?}", path.display())
}

/// Downloads a module: `example.com/module@v1.0.0`.
pub async fn downloaded(wanted: &str) -> Result<Module> {
    let mut go = Command::new("go");
    // Outside any module, so that a half-made wrapper of an earlier run cannot get in the way.
    go.args(["mod", "download", "-json", wanted]).current_dir(std::env::temp_dir());
    let output = settings(&mut go).output().await.context("cannot run `go mod download`")?;
    ensure!(
        output.status.success(),
        "`go mod download {wanted}` failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let answer: Value =
        serde_json::from_slice(&output.stdout).context("`go mod download -json` gave no JSON")?;
    let path = |key: &str| {
        let path = answer[key].as_str().map(PathBuf::from);
        path.with_context(|| format!("`go mod download -json` named no {key}"))
    };
    Ok(Module { go_mod: path("GoMod")?, folder: path("Dir")? })
}

/// Builds a package, as seen from a module, and puts the program in its place.
pub async fn build(module: &Path, package: &str, linker_flags: &str, program: &Path) -> Result<()> {
    let started = Instant::now();
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    // Built under another name and renamed: a half-written program is never taken for a whole one.
    let unfinished = program.with_file_name(format!(".{name}.unfinished"));
    let mut go = go_in(module);
    go.args(["build", "-mod=mod", "-trimpath", "-ldflags", linker_flags, "-o"]);
    run(go.arg(&unfinished).arg(package)).await?;
    fs::rename(&unfinished, program)
        .with_context(|| format!("cannot put {} in place", program.display()))?;
    say(&format!("built {name} in {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}

/// Makes a module of a go.mod.
pub fn write_module(module: &Path, go_mod: &str) -> Result<()> {
    fs::create_dir_all(module)
        .with_context(|| format!("cannot make the folder {}", module.display()))?;
    fs::write(module.join("go.mod"), go_mod)
        .with_context(|| format!("cannot write go.mod in {}", module.display()))
}

/// Go in a module, in what time others leave: tests that need nothing of it run beside it.
pub(super) fn go_in(module: &Path) -> Command {
    let mut go = Command::new("nice");
    settings(go.args(["-n", "19", "go"])).current_dir(module);
    go
}

/// A developer's own Go settings must not change what is built.
fn settings(go: &mut Command) -> &mut Command {
    go.env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "").kill_on_drop(true)
}

/// Runs Go, or another compiler, to its end.
pub(super) async fn run(command: &mut Command) -> Result<()> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let output = command.output().await.with_context(|| format!("cannot run `{program}`"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = command.as_std();
    let arguments: Vec<_> = words.get_args().map(|word| word.to_string_lossy()).collect();
    bail!(
        "`{}` failed with {}: {}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_lock_is_held_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("build.lock");
        let held = lock(&path).await.unwrap();
        let second = tokio::time::timeout(Duration::from_millis(50), lock(&path)).await;
        assert!(second.is_err(), "two runs held the lock");
        drop(held);
        lock(&path).await.unwrap();
    }
}
