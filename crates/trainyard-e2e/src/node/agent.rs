//! `trainyard node` as a process: as root or as an ordinary user, ended in order or killed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use super::Stage;

const READY: Duration = Duration::from_mins(1);
/// An id that owns nothing on the machine.
const NOBODY: u32 = 65_534;

/// Who runs the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever runs the tests.
    Me,
    /// An ordinary user without any rights; the tests must run as root.
    User,
    /// Such a user, or whoever runs the tests without root, where no user namespace can be made.
    Confined,
    /// An ordinary user of a machine whose tun device everybody may use, as distributions have it.
    Tapping,
    /// Root on a machine without that device, as containers have it.
    Tapless,
}

impl Who {
    /// Not whoever runs the tests.
    fn is_another(self) -> bool {
        match self {
            Self::Me | Self::Tapless => false,
            Self::User | Self::Tapping => true,
            Self::Confined => rustix::process::geteuid().is_root(),
        }
    }

    /// What starts a program as such.
    pub(crate) fn command(self, program: &Path) -> Command {
        // Inside a user namespace its limit can be set; whoever has no rights there cannot lift it.
        const CONFINE: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv \
            --bounding-set=-all --inh-caps=-all -- \"$@\"";
        const TAPPING: &str = "mount -t tmpfs trainyard-test /dev/net && \
            mknod -m 0666 /dev/net/tun c 10 200 && exec \"$@\"";
        const TAPLESS: &str = "mount -t tmpfs trainyard-test /dev/net && exec \"$@\"";
        let mut words: Vec<OsString> = Vec::new();
        let device = match self {
            Self::Tapping => Some(TAPPING),
            Self::Tapless => Some(TAPLESS),
            Self::Me | Self::User | Self::Confined => None,
        };
        if let Some(script) = device {
            words.extend(["unshare", "--mount", "sh", "-c", script, "sh"].map(OsString::from));
        }
        if self.is_another() {
            let ids = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
            words.push("setpriv".into());
            words.extend(ids.map(OsString::from));
            words.extend(["--clear-groups", "--"].map(OsString::from));
        }
        if self == Self::Confined {
            words.extend(["unshare", "-Ur", "sh", "-c", CONFINE, "sh"].map(OsString::from));
        }
        words.push(program.into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// What an agent is told.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Names of its nodes.
    pub nodes: Vec<String>,
    /// Who runs it.
    pub who: Who,
    /// More flags.
    pub flags: Vec<String>,
    /// Where it keeps its state; a new folder if not given.
    pub state: Option<PathBuf>,
    /// By whom it is known to the API server; by the account of all agents if not given. Only for whoever
    /// runs the tests.
    pub kubeconfig: Option<PathBuf>,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            nodes: vec!["alder".to_owned(), "birch".to_owned()],
            who: Who::Me,
            flags: Vec::new(),
            state: None,
            kubeconfig: None,
        }
    }
}

/// A running agent.
#[derive(Debug)]
pub struct Agent {
    child: Mutex<Child>,
    /// Its process id.
    pub pid: u32,
    /// Where it keeps its state.
    pub state: PathBuf,
    /// Its nodes.
    pub nodes: Vec<String>,
    log: PathBuf,
}

impl Agent {
    /// Starts an agent and waits until its nodes are ready.
    pub async fn start(stage: &Stage, options: AgentOptions) -> Result<Self> {
        let agent = Self::launch(stage, &options)?;
        agent.until_logged("node is ready").await?;
        Ok(agent)
    }

    /// Starts an agent that may never come to be ready.
    pub fn launch(stage: &Stage, options: &AgentOptions) -> Result<Self> {
        let number = stage.number();
        let folder = match options.state.clone() {
            Some(folder) => folder,
            None => fresh_folder(stage, &format!("state-{number}"), options.who)?,
        };
        let log = stage.dir.join(format!("node-{number}.log"));
        let sink = fs::File::create(&log)?;
        let (binary, kubeconfig, authority) = files_for(stage, options.who)?;
        let kubeconfig = options.kubeconfig.clone().unwrap_or(kubeconfig);
        let mut command = options.who.command(&binary);
        command
            .arg("node")
            .arg(format!("--nodes={}", options.nodes.join(",")))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .arg("--client-ca-file")
            .arg(&authority)
            .arg("--state-dir")
            .arg(&folder)
            // Programs of this machine, for pods that are about anything but images.
            .arg("--image=test=host")
            .args(&options.flags)
            .stdin(Stdio::null())
            .stdout(sink.try_clone()?)
            .stderr(sink)
            .kill_on_drop(true);
        if options.who.is_another() {
            command.env("HOME", &folder).env_remove("XDG_CACHE_HOME");
        }
        let child = command.spawn().context("starting `trainyard node`")?;
        let pid = child.id().context("the agent ended at once")?;
        Ok(Self { child: Mutex::new(child), pid, state: folder, nodes: options.nodes.clone(), log })
    }

    /// Waits until it has logged these words.
    pub async fn until_logged(&self, words: &str) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < READY {
            self.check()?;
            if self.log_text().contains(words) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the agent has not said {words:?} after {READY:?}; its log:\n{}", self.log_text())
    }

    /// What it has logged.
    pub fn log_text(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Where it logs.
    pub fn log_path(&self) -> PathBuf {
        self.log.clone()
    }

    /// An error with its log when it has ended.
    pub fn check(&self) -> Result<()> {
        let mut child = self.child.lock().map_err(|_| anyhow::anyhow!("a case panicked"))?;
        match child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the agent ended with {status}; its log:\n{}", self.log_text()),
        }
    }

    /// Ends it in order.
    pub async fn stop(self) -> Result<()> {
        signal(self.pid, rustix::process::Signal::TERM)?;
        let mut child = self.child.into_inner().map_err(|_| anyhow::anyhow!("a case panicked"))?;
        let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
        let status = ended.context("the agent does not end")??;
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        anyhow::ensure!(status.success(), "the agent ended with {status}; its log:\n{log}");
        Ok(())
    }

    /// Kills it, as a crash would.
    pub async fn kill(self) -> Result<()> {
        let mut child = self.child.into_inner().map_err(|_| anyhow::anyhow!("a case panicked"))?;
        child.kill().await?;
        Ok(())
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.context("no process id")?, signal)?;
    Ok(())
}

/// A new folder that its user may write, removed with the stage.
fn fresh_folder(stage: &Stage, name: &str, who: Who) -> Result<PathBuf> {
    let folder = stage.ground.path().join(name);
    fs::create_dir_all(&folder)?;
    if who.is_another() {
        std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(folder)
}

/// The binary and the files it needs, where its user may read them.
fn files_for(stage: &Stage, who: Who) -> Result<(PathBuf, PathBuf, PathBuf)> {
    if !who.is_another() {
        return Ok((stage.binary.clone(), stage.kubeconfig.clone(), stage.authority.clone()));
    }
    let folder = fresh_folder(stage, &format!("user-{}", stage.number()), who)?;
    let copy = |from: &Path, mode: u32| -> Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        let to = folder.join(from.file_name().context("a file without a name")?);
        fs::copy(from, &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        std::os::unix::fs::chown(&to, Some(NOBODY), Some(NOBODY))?;
        Ok(to)
    };
    let authority = copy(&stage.authority, 0o444)?;
    let kubeconfig = copy(&stage.kubeconfig, 0o400)?;
    // It names the authority's file, which this user cannot read where it lies.
    let text = fs::read_to_string(&kubeconfig)?;
    let text =
        text.replace(&stage.authority.display().to_string(), &authority.display().to_string());
    fs::write(&kubeconfig, text)?;
    Ok((copy(&stage.binary, 0o555)?, kubeconfig, authority))
}
