//! What is put under load as a process of its own: starting it, and what it costs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use crate::control_plane::{ControlPlane, Identity};

/// Clock ticks per second in `/proc`; fixed on Linux.
const TICKS: f64 = 100.0;
/// How much of a log is quoted.
const LAST_LINES: usize = 10;

/// Somebody else's program, as a line of a shell.
pub(super) fn other(line: &str) -> Command {
    let mut command = Command::new("sh");
    // The process that is watched is to be the program, not its shell.
    command.args(["-c", &format!("exec {line}")]);
    command
}

/// A server of our own binary, without its sockets.
pub(super) fn ours(binary: &Path, server: &str) -> Command {
    let mut command = Command::new(binary);
    command.args([server, "--metrics-bind-address=0", "--health-probe-bind-address=0"]);
    command
}

/// A process under observation; it ends with its owner.
pub(crate) struct Watched {
    name: &'static str,
    log: PathBuf,
    child: Child,
    pid: u32,
}

/// What a process has used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) cpu_ms: f64,
    pub(super) rss_mb: f64,
    pub(super) peak_mb: f64,
}

impl Watched {
    /// Starts a program with the rights of an identity; its log is called like it.
    pub(crate) fn start(
        plane: &ControlPlane,
        name: &'static str,
        identity: Identity,
        mut command: Command,
    ) -> Result<Self> {
        let log = plane.dir().join(format!("{name}.log"));
        let sink = fs::File::create(&log)?;
        command
            .env("KUBECONFIG", plane.kubeconfig(identity))
            .stdin(Stdio::null())
            .stdout(sink.try_clone()?)
            .stderr(sink)
            .kill_on_drop(true);
        let child = command.spawn().with_context(|| format!("starting the {name}"))?;
        let pid = child.id().with_context(|| format!("the {name} ended at once"))?;
        Ok(Self { name, log, child, pid })
    }

    /// Fails when the program has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        bail!("the {} ended with {status}; its log ends:\n{}", self.name, self.last_lines())
    }

    /// The end of its log.
    pub(crate) fn last_lines(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut lines: Vec<&str> = text.lines().rev().take(LAST_LINES).collect();
        lines.reverse();
        lines.join("\n")
    }

    /// What it has used so far.
    pub(super) fn usage(&self) -> Result<Usage> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The name in parentheses may hold blanks; times are the 14th and 15th field.
        let fields: Vec<&str> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let kilobytes = |key: &str| {
            status
                .lines()
                .find_map(|line| {
                    line.strip_prefix(key)?.split_whitespace().next()?.parse::<f64>().ok()
                })
                .unwrap_or(0.0)
        };
        Ok(Usage {
            cpu_ms: (ticks(11) + ticks(12)) * 1000.0 / TICKS,
            rss_mb: kilobytes("VmRSS:") / 1024.0,
            peak_mb: kilobytes("VmHWM:") / 1024.0,
        })
    }

    /// Ends it.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("ending the {}", self.name))
    }
}
