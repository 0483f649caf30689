//! Images of the tutorials' names, of busybox and a script that stands for Python and its programs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::process::Command;
use trainyard_testbed::cluster::image;

use super::site::Scene;

const PYTHON: &str = include_str!("stand_in/python.sh");

/// Makes such an image and brings it to every node; returns its name. One that is called without words runs the
/// program of the first tutorial.
pub(super) async fn image(scene: &Scene, name: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let parts = folder.path().join("parts");
    fs::create_dir(&parts)?;
    let base = image::busybox().await?;
    tar(&["-xf", text(&base)?, "-C", text(&parts)?]).await?;
    let script = folder.path().join("root/usr/bin/python");
    fs::create_dir_all(folder.path().join("root/usr/bin"))?;
    fs::write(&script, PYTHON)?;
    fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    let layer = parts.join("python.tar");
    let root = folder.path().join("root");
    tar(&["--owner=0", "--group=0", "-cf", text(&layer)?, "-C", text(&root)?, "usr"]).await?;
    let digest = format!("sha256:{}", hex(&Sha256::digest(fs::read(&layer)?)));
    let manifest = parts.join("manifest.json");
    let mut described: Value = serde_json::from_slice(&fs::read(&manifest)?)?;
    let config = parts.join(described[0]["Config"].as_str().context("an image has a config")?);
    let mut configured: Value = serde_json::from_slice(&fs::read(&config)?)?;
    configured["config"]["Entrypoint"] = Value::Null;
    configured["config"]["Cmd"] = json!(["python", "/app/main.py"]);
    push(&mut configured["rootfs"]["diff_ids"], digest.into())?;
    if !configured["history"].is_null() {
        push(&mut configured["history"], json!({"created_by": "stand-in"}))?;
    }
    push(&mut described[0]["Layers"], "python.tar".into())?;
    described[0]["RepoTags"] = json!([name]);
    described[0]["Config"] = "stand-in.json".into();
    fs::write(parts.join("stand-in.json"), configured.to_string())?;
    fs::write(&manifest, described.to_string())?;
    // Nodes that are started later read it again.
    let archive = scene.site.folder(&format!("image-{}", name.replace(['/', ':'], "_")))?;
    let archive = archive.join(format!("{}.tar", scene.namespace));
    tar(&["-cf", text(&archive)?, "-C", text(&parts)?, "."]).await?;
    scene.site.import(&archive).await?;
    Ok(name.to_owned())
}

fn push(list: &mut Value, item: Value) -> Result<()> {
    list.as_array_mut().context("an image's list")?.push(item);
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is not text")
}

async fn tar(words: &[&str]) -> Result<()> {
    let output = Command::new("tar").args(words).output().await.context("running tar")?;
    ensure!(output.status.success(), "tar: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
