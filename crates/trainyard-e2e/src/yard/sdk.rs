//! The Python SDK that people submit jobs with, unchanged, against a yard: an environment with it is
//! made once, a Python file uses every method, and tells a line about each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::bed::Bed;
use crate::control_plane::cache_root;
use crate::harness::{Case, cases, product};

/// The last release that knows TFJob.
const SDK: &str = "kubeflow-training==1.9.4";
/// The client that it stands on.
const CLIENT: &str = "kubernetes==35.0.0";
const SCRIPT: &str = include_str!("sdk.py");
/// The SDK takes an image of its own unless told otherwise, which has no TensorFlow for today's
/// Pythons; people who use the SDK have no flags, so the mapping is in a file.
const CONFIG: &str = "[images]\n\"docker.io/tensorflow/tensorflow:2.9.1\" = \
    \"tensorflow/tensorflow:2.21.0\"\n\"test\" = \"python:3.11\"\n";
/// All methods together, two trainings among them.
const LONGEST: Duration = Duration::from_mins(12);

/// What the file told of each method, and how it ended.
pub(super) struct Told {
    methods: BTreeMap<String, String>,
    end: Result<(), String>,
}

/// A case for each method that the file uses, and one for its end.
pub(super) fn cases() -> Vec<Case<Arc<Told>>> {
    let case = |method: &str| {
        let name = method.to_owned();
        let play = move |told: Arc<Told>| {
            let told = told.methods.get(&name).cloned();
            async move {
                match told.as_deref() {
                    Some("") => Ok(()),
                    Some(why) => bail!("{why}"),
                    None => bail!("nothing was told of it"),
                }
            }
        };
        Case::new(format!("sdk/{method}"), play)
    };
    let mut all: Vec<_> = methods().into_iter().map(case).collect();
    all.extend(cases!["sdk": all_methods]);
    all
}

/// The methods that the file uses, in its own list of them.
fn methods() -> Vec<&'static str> {
    let list = SCRIPT.split_once("\nfor play in [").and_then(|(_, rest)| rest.split_once(']'));
    let list = list.map_or("", |(list, _)| list);
    list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

async fn all_methods(told: &Told) -> Result<()> {
    told.end.clone().map_err(anyhow::Error::msg)
}

/// Runs the file on a yard.
pub(super) async fn play() -> Result<Arc<Told>> {
    let python = provide().await.context("making the SDK's environment")?;
    let ground = tempfile::tempdir()?;
    let (config, script) = (ground.path().join("trainyard.toml"), ground.path().join("sdk.py"));
    std::fs::write(&config, CONFIG)?;
    std::fs::write(&script, SCRIPT)?;
    let config = format!("--config={}", config.display());
    let bed = Bed::start(&product().await?, &["--nodes=1", &config]).await?;
    let mut methods = BTreeMap::new();
    let played = listen(&python, &script, &bed, &mut methods).await;
    let stopped = bed.stop().await;
    let end = played.and(stopped).map_err(|error| format!("{error:#}"));
    Ok(Arc::new(Told { methods, end }))
}

/// Takes down what the file tells of each method: nothing, or why it failed.
async fn listen(
    python: &Path,
    script: &Path,
    bed: &Bed,
    methods: &mut BTreeMap<String, String>,
) -> Result<()> {
    let mut child = Command::new(python)
        .arg(script)
        .env("KUBECONFIG", bed.kubectl.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
    let told = async {
        while let Some(line) = lines.next_line().await? {
            match line.split_once(' ') {
                Some(("ok", name)) => methods.insert(name.to_owned(), String::new()),
                Some(("FAILED", rest)) => {
                    let (name, why) = rest.split_once(' ').unwrap_or((rest, "no reason is told"));
                    methods.insert(name.to_owned(), why.to_owned())
                }
                _ => continue,
            };
        }
        anyhow::Ok(child.wait().await?)
    };
    let status = tokio::time::timeout(LONGEST, told).await.context("the SDK takes too long")??;
    ensure!(status.success(), "the script ended with {status}; the yard says: {}", bed.log());
    Ok(())
}

/// An environment with the SDK, made once.
pub(crate) async fn provide() -> Result<PathBuf> {
    let name = format!("{SDK}-{CLIENT}").replace("==", "-");
    let home = cache_root()?.join("sdk").join(name);
    let python = home.join("bin/python");
    let complete = home.join("complete");
    if complete.is_file() {
        return Ok(python);
    }
    std::fs::create_dir_all(&home)?;
    succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home)).await?;
    succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet", SDK, CLIENT])).await?;
    std::fs::write(complete, "")?;
    Ok(python)
}

async fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {said}", output.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_in_the_files_list_is_a_case() {
        let methods = methods();
        assert!(methods.len() >= 15 && methods.contains(&"create_job"), "{methods:?}");
        assert!(methods.iter().all(|name| SCRIPT.contains(&format!("\ndef {name}("))));
    }
}
