//! One node: namespaces of its own, like a machine, and the programs in them. Knows which programs a node has,
//! not when the cluster is ready.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::process::Command;

use super::configuration::{self, CONTAINERD};
use super::folder::Folder;
use super::init::Init;
use super::{addresses, cgroup, setup};
use crate::control_plane::process::Process;

/// Where a node's programs are looked for.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// containerd starts in a second; a loaded machine needs some.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// A node that runs.
#[derive(Debug)]
pub(super) struct Node {
    index: usize,
    folder: Folder,
    init: Init,
    holder: Process,
    programs: Vec<Process>,
    lasting: bool,
    kept: bool,
}

impl Node {
    /// Makes the namespaces, the mounts in them and the control groups. No program runs yet. One that can last
    /// ends with its handle all the same until it is kept.
    pub(super) async fn start(folder: &Folder, index: usize, lasting: bool) -> Result<Self> {
        let words = [
            "--net",
            "--mount",
            "--uts",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--propagation",
            "private",
            "--",
            // Somebody has to look after processes whose parents have ended.
            "tini",
            "--",
            "sleep",
            "infinity",
        ];
        let words = words.map(str::to_owned);
        let log = folder.log(index, "init");
        let program = Path::new("unshare");
        let holder = if lasting {
            Process::start_lasting(program, &words, log)?
        } else {
            Process::start(program, &words, log)?
        };
        let init = Init::child_of(holder.pid()).await?;
        init.write(&record(folder, index))?;
        let folder = folder.clone();
        let node = Self { index, folder, init, holder, programs: Vec::new(), lasting, kept: false };
        cgroup::create(node.folder.name(), index)?;
        node.script(&setup::mounts(&node.folder, index)).await.context("mounting")?;
        Ok(node)
    }

    /// Its first process.
    pub(super) fn init(&self) -> Init {
        self.init
    }

    /// Lets it outlive its handle, if it can last.
    pub(super) fn keep(&mut self) {
        self.kept = self.lasting;
    }

    /// A program in the node's namespaces.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        command_within(self.init, program)
    }

    /// Runs a shell script in the node's namespaces.
    pub(super) async fn script(&self, text: &str) -> Result<()> {
        let mut shell = self.command("sh");
        finish(shell.args(["-c", text])).await.with_context(|| addresses::name(self.index))
    }

    /// Runs a shell script that is in the node's network alone, so that it sees the processes of other nodes.
    pub(super) async fn network_script(&self, text: &str) -> Result<()> {
        let mut shell = Command::new("nsenter");
        shell.args(["--target", &self.init.pid.to_string(), "--net", "--", "sh", "-c", text]);
        finish(shell.env("PATH", PATH).kill_on_drop(true))
            .await
            .with_context(|| addresses::name(self.index))
    }

    /// Starts a program that runs until the node ends.
    pub(super) fn run(&mut self, name: &str, program: &Path, flags: &[String]) -> Result<()> {
        self.launch(name, &["--net", "--mount", "--uts", "--ipc", "--pid"], program, flags)
    }

    /// Starts a program outside of the node that ends with it all the same.
    pub(super) fn run_beside(
        &mut self,
        name: &str,
        program: &Path,
        flags: &[String],
    ) -> Result<()> {
        self.launch(name, &["--pid"], program, flags)
    }

    fn launch(
        &mut self,
        name: &str,
        namespaces: &[&str],
        program: &Path,
        flags: &[String],
    ) -> Result<()> {
        let mut words = vec!["--target".to_owned(), self.init.pid.to_string()];
        words.extend(namespaces.iter().map(|&word| word.to_owned()));
        // What the developer's environment says is not for a cluster.
        words.extend(["--", "env", "-i"].map(str::to_owned));
        words.extend([format!("PATH={PATH}"), "HOME=/root".to_owned()]);
        words.push(program.display().to_string());
        words.extend_from_slice(flags);
        let log = self.folder.log(self.index, name);
        let nsenter = Path::new("nsenter");
        let process = if self.lasting {
            Process::start_lasting(nsenter, &words, log)?
        } else {
            Process::start(nsenter, &words, log)?
        };
        let name = format!("{name} of {}", addresses::name(self.index));
        self.programs.push(process.named(&name));
        Ok(())
    }

    /// Starts containerd.
    pub(super) fn run_containerd(&mut self) -> Result<()> {
        let etc = self.etc();
        fs::write(etc.join("resolv.conf"), "")?;
        let text = configuration::network(self.index).to_string();
        fs::write(etc.join("cni/10-pods.conflist"), text)?;
        let file = etc.join("containerd.toml");
        fs::write(&file, configuration::containerd(&self.folder, self.index))
            .with_context(|| format!("cannot write {}", file.display()))?;
        let flags = ["--config".to_owned(), file.display().to_string()];
        self.run("containerd", Path::new("containerd"), &flags)
    }

    /// Returns when containerd answers.
    pub(super) async fn containerd_answers(&mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            self.check()?;
            let Err(error) =
                finish(self.command("ctr").args(["--address", CONTAINERD, "version"])).await
            else {
                return Ok(());
            };
            ensure!(started.elapsed() < PATIENCE, "containerd does not answer: {error:#}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The folder of its programs' configuration files.
    pub(super) fn etc(&self) -> PathBuf {
        self.folder.node(self.index).join("etc")
    }

    /// An error, with its last log lines, when one of its programs has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        if !self.init.runs() {
            bail!("{} has ended: {}", addresses::name(self.index), self.holder.last_lines());
        }
        self.programs.iter_mut().try_for_each(Process::check)
    }

    /// Ends it as a loss of power would, and removes what no namespace takes along.
    pub(super) async fn stop(self) -> Result<()> {
        self.init.kill().await?;
        let (folder, index) = (self.folder.clone(), self.index);
        drop(self);
        forget(&folder, index).await
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.kept {
            self.init.signal();
        }
    }
}

/// The file that names a node's first process.
fn record(folder: &Folder, index: usize) -> PathBuf {
    folder.node(index).join("init")
}

/// The first process of a node that another program started, if it runs.
pub(super) fn found(folder: &Folder, index: usize) -> Option<Init> {
    Init::read(&record(folder, index))
}

/// Ends a node that another program started.
pub(super) async fn stop_found(folder: &Folder, index: usize) -> Result<()> {
    if let Some(init) = found(folder, index) {
        init.kill().await?;
    }
    forget(folder, index).await
}

async fn forget(folder: &Folder, index: usize) -> Result<()> {
    cgroup::remove(folder.name(), index).await?;
    match fs::remove_file(record(folder, index)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// A program in the namespaces of a node.
pub(super) fn command_within(init: Init, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("nsenter");
    command.args([
        "--target",
        &init.pid.to_string(),
        "--net",
        "--mount",
        "--uts",
        "--ipc",
        "--pid",
    ]);
    command.arg("--").arg(program).env("PATH", PATH).kill_on_drop(true);
    command
}

/// Gives the containerd of a node the images of an archive.
pub(super) async fn import_within(init: Init, archive: &Path) -> Result<()> {
    let archive = fs::canonicalize(archive)
        .with_context(|| format!("cannot find the image {}", archive.display()))?;
    let mut ctr = command_within(init, "ctr");
    ctr.args(["--address", CONTAINERD, "--namespace", "k8s.io", "images", "import"]);
    finish(ctr.arg(&archive)).await.with_context(|| format!("importing {}", archive.display()))
}

/// Runs a program to its end; an error quotes what it said.
pub(super) async fn finish(command: &mut Command) -> Result<()> {
    let output = command.stdin(std::process::Stdio::null()).output().await?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    bail!("it ended with {}: {}", output.status, String::from_utf8_lossy(&said).trim_end())
}
