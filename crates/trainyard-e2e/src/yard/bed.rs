//! `trainyard up` as a person runs it: a process with a folder and a kubeconfig of its own, ended by
//! `trainyard down`, after which nothing may be left.
//!
//! Must not know what is done with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::control_plane::{Binaries, Program};
use crate::kubectl::Kubectl;

/// How long a yard may take to be ready, on a loaded machine.
const READY: Duration = Duration::from_mins(1);
/// How long it may take to end its pods and itself.
const ENDING: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(50);

/// A running yard.
#[derive(Debug)]
pub struct Bed {
    up: Child,
    binary: PathBuf,
    /// Where the API is.
    pub url: String,
    /// The real kubectl, as the kubeconfig says.
    pub kubectl: Kubectl,
    dir: TempDir,
}

impl Bed {
    /// Starts a yard with these flags and waits until it says that it is ready.
    pub async fn start(binary: &Path, flags: &[&str]) -> Result<Self> {
        let programs = Binaries::provide(&[Program::Kubectl]).await?;
        let dir = tempfile::Builder::new().prefix("trainyard-yard-").tempdir()?;
        let home = dir.path().join("home");
        fs::create_dir_all(&home)?;
        let (said, log) = (dir.path().join("said"), dir.path().join("log"));
        let kubeconfig = dir.path().join("kubeconfig");
        let up = Command::new(binary)
            .args(["up", "--listen=127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(flags)
            // A file of this name in the current folder would be read.
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(fs::File::create(&said)?)
            .stderr(fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .context("starting `trainyard up`")?;
        let kubectl = Kubectl::new(programs.path(Program::Kubectl), kubeconfig, home);
        let binary = binary.to_owned();
        let mut bed = Self { up, binary, url: String::new(), kubectl, dir };
        bed.until_ready(&said).await?;
        Ok(bed)
    }

    async fn until_ready(&mut self, said: &Path) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < READY {
            let text = fs::read_to_string(said)?;
            if let Some(url) = text.strip_prefix("ready ").and_then(|rest| rest.strip_suffix('\n'))
            {
                url.clone_into(&mut self.url);
                return Ok(());
            }
            if let Some(status) = self.up.try_wait()? {
                bail!("`trainyard up` ended with {status}: {}", self.log());
            }
            tokio::time::sleep(POLL).await;
        }
        bail!("the yard is not ready after {READY:?}: {}", self.log())
    }

    /// What it has logged, and told to people.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// A folder that goes with the yard.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The yard's own folder.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// An error with its log when it has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.up.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("`trainyard up` ended with {status}: {}", self.log()),
        }
    }

    /// A client, as the kubeconfig says.
    pub async fn client(&self) -> Result<Client> {
        let file = Kubeconfig::read_from(self.kubectl.kubeconfig())?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// kubectl with these words, which must do.
    pub async fn ok(&self, words: &[&str]) -> Result<String> {
        self.kubectl.run(words).await?.stdout_of_success()
    }

    /// `trainyard` itself with these words about this yard, which must do.
    pub async fn own(&self, words: &[&str]) -> Result<String> {
        let asked = Command::new(&self.binary)
            .args(words)
            .arg("--kubeconfig")
            .arg(self.kubectl.kubeconfig())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let said = tokio::time::timeout(ENDING, asked).await.context("no answer in time")??;
        ensure!(
            said.status.success(),
            "`trainyard {}` ended with {}: {}",
            words.join(" "),
            said.status,
            String::from_utf8_lossy(&said.stderr)
        );
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }

    /// The same with something on standard input.
    pub async fn feed(&self, words: &[&str], input: &str) -> Result<String> {
        self.kubectl.run_with_input(words, input).await?.stdout_of_success()
    }

    /// Asks until kubectl answers as wanted.
    pub async fn until(
        &self,
        words: &[&str],
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let started = Instant::now();
        loop {
            let outcome = self.kubectl.run(words).await?;
            if outcome.success() && wanted(&outcome.stdout) {
                return Ok(outcome.stdout);
            }
            ensure!(
                started.elapsed() < READY,
                "{what} has not come; `{}` gives {}{}",
                outcome.command,
                outcome.stdout,
                outcome.stderr
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Ends it by `trainyard down`, and looks whether anything is left.
    pub async fn stop(mut self) -> Result<()> {
        let data = self.data();
        let down = Command::new(&self.binary).args(["down", "--data-dir"]).arg(&data).output();
        let down = tokio::time::timeout(ENDING, down).await.context("`down` does not end")??;
        ensure!(
            down.status.success(),
            "`trainyard down` ended with {}: {}",
            down.status,
            String::from_utf8_lossy(&down.stderr)
        );
        let ended = tokio::time::timeout(ENDING, self.up.wait()).await;
        let status = ended.context("the yard still runs after `trainyard down`")??;
        ensure!(status.success(), "`trainyard up` ended with {status}: {}", self.log());
        self.nothing_is_left()
    }

    fn nothing_is_left(&self) -> Result<()> {
        let folder = self.dir.path().display().to_string();
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let mount = mounts.lines().find(|line| line.contains(&folder));
        ensure!(mount.is_none(), "a mount is left: {mount:?}");
        let process = processes_about(&folder)?;
        ensure!(process.is_empty(), "processes are left: {process:?}");
        let address = self.url.trim_start_matches("https://");
        ensure!(std::net::TcpStream::connect(address).is_err(), "something answers at {address}");
        let pods = self.data().join("node/pods");
        let left = fs::read_dir(&pods).map_or(0, Iterator::count);
        ensure!(left == 0, "{left} pods' folders are left in {}", pods.display());
        Ok(())
    }
}

/// Command lines of processes that name a folder there or in their environment.
pub(crate) fn processes_about(folder: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let is_process = entry.file_name().to_string_lossy().parse::<u32>().is_ok();
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let about =
            words.contains(folder) || String::from_utf8_lossy(&read("environ")).contains(folder);
        if is_process && about {
            found.push(words);
        }
    }
    Ok(found)
}
