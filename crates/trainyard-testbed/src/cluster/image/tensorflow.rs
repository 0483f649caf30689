//! The image with TensorFlow: Debian's Python in a tree of its own, filled by pip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};
use tokio::process::Command;

use super::archive::{Archive, Settings, hex};
use super::program::SEARCH_PATH;
use super::{TENSORFLOW, folder, in_background};
use crate::cluster::removal::remove_tree;
use crate::control_plane::go;
use crate::packages;
use crate::say;

const PACKAGES: [(&str, &str); 3] =
    [("mmdebstrap", "mmdebstrap"), ("strip", "binutils"), ("pip3", "python3-pip")];
const WHEEL: &str = "tensorflow-cpu==2.21.0";
/// What of Debian is there.
const BASE: [&str; 5] = [
    "--variant=minbase",
    "--include=python3,ca-certificates",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
];
/// What of the packages no training needs, in their folder.
const UNNEEDED: [&str; 3] = ["tensorflow/include", "clang", "bin"];
/// Libraries a third of which is names for a debugger.
const STRIPPED: [&str; 2] =
    ["tensorflow/libtensorflow_cc.so.2", "tensorflow/libtensorflow_framework.so.2"];
/// Shows that it works, and leaves the modules compiled that a training imports.
const TRIAL: &str = "import tensorflow";

pub(super) async fn archive() -> Result<PathBuf> {
    let folder = folder()?;
    let path = folder.join(format!("tensorflow-{}.tar", recipe()));
    if path.is_file() {
        return Ok(path);
    }
    let _lock = go::lock(&folder.join("tensorflow.lock")).await?;
    if path.is_file() {
        // Another run has made it.
        return Ok(path);
    }
    say("images: making the one with TensorFlow (the first time takes more than a minute)");
    let started = Instant::now();
    packages::install(&PACKAGES).await?;
    let root = folder.join("tensorflow.root");
    clear(&root)?;
    let made = make(&root, &path).await;
    clear(&root)?;
    made.context("the image with TensorFlow")?;
    say(&format!("images: made it in {:.0} s", started.elapsed().as_secs_f64()));
    Ok(path)
}

/// Names what an archive was made of.
fn recipe() -> String {
    let parts = [&BASE[..], &UNNEEDED, &STRIPPED, &[WHEEL, TRIAL]].concat();
    let mut digest = hex(&Sha256::digest(parts.join("\n")));
    digest.truncate(12);
    digest
}

fn clear(root: &Path) -> Result<()> {
    remove_tree(root).with_context(|| format!("cannot remove {}", root.display()))
}

async fn make(root: &Path, path: &Path) -> Result<()> {
    let release = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let codename = codename(&release).context("/etc/os-release names no release of Debian")?;
    let mut debian = Command::new("mmdebstrap");
    debian.arg("--quiet").args(BASE).arg(codename).arg(root).args(sources());
    finish(&mut debian).await?;
    let python = python(root)?;
    let modules = root.join("usr/local/lib").join(&python).join("dist-packages");
    finish(&mut pip(&python, &modules)).await?;
    for part in UNNEEDED {
        clear(&modules.join(part))?;
    }
    let mut strip = Command::new("strip");
    let libraries = STRIPPED.map(|library| modules.join(library));
    finish(strip.arg("--strip-unneeded").args(libraries)).await?;
    std::os::unix::fs::symlink("python3", root.join("usr/bin/python"))?;
    let mut trial = Command::new("chroot");
    trial.arg(root).args(["/usr/bin/python3", "-c", TRIAL]).env_clear().env("HOME", "/root");
    finish(trial.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")).await?;
    for part in ["var/cache/apt", "var/lib/apt/lists"] {
        clear(&root.join(part))?;
        fs::create_dir_all(root.join(part))?;
    }
    let (root, path) = (root.to_owned(), path.to_owned());
    in_background(move || pack(&root, &path)).await
}

/// pip of this machine, filling a folder for the Python of the image.
fn pip(python: &str, modules: &Path) -> Command {
    let version = python.trim_start_matches("python");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"]);
    pip.args(["--root-user-action=ignore", "--implementation=cp"]);
    pip.arg(format!("--python-version={version}"));
    for tag in ["manylinux_2_27", "manylinux_2_17", "manylinux2014"] {
        pip.arg(format!("--platform={tag}_{}", std::env::consts::ARCH));
    }
    pip.arg("--target").arg(modules).arg(WHEEL);
    pip
}

fn pack(root: &Path, path: &Path) -> Result<()> {
    let mut tar = std::process::Command::new("tar");
    tar.args(["--numeric-owner", "--sort=name", "-C"]).arg(root).args(["-cf", "-", "."]);
    let mut tar = tar.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut archive = Archive::create(path)?;
    archive.layer(tar.stdout.take().context("tar writes nowhere")?)?;
    let ended = tar.wait()?;
    ensure!(ended.success(), "tar ended with {ended}");
    let settings = Settings {
        command: vec!["/bin/bash".to_owned()],
        environment: vec![SEARCH_PATH.to_owned()],
        ..Settings::default()
    };
    archive.finish(TENSORFLOW, &settings)
}

/// The name of the release that this machine runs.
fn codename(release: &str) -> Option<&str> {
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(line.trim_matches('"'))
}

/// Where this machine gets the release's packages from.
fn sources() -> Vec<PathBuf> {
    let folder = Path::new("/etc/apt");
    let own = ["sources.list", "sources.list.d/debian.sources", "sources.list.d/ubuntu.sources"];
    let filled = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
    own.map(|name| folder.join(name)).into_iter().filter(filled).collect()
}

/// The folder of the image's Python, such as `python3.11`.
fn python(root: &Path) -> Result<String> {
    let entries = fs::read_dir(root.join("usr/lib"))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("python3.")).collect();
    names.sort_unstable();
    names.pop().context("there is no Python in the image")
}

async fn finish(command: &mut Command) -> Result<()> {
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.with_context(|| format!("cannot run `{name}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} ended with {}: {}", output.status, said.trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_machine_s() {
        let text = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(codename(text), Some("bookworm"));
        assert_eq!(codename("NAME=x\n"), None);
    }
}
