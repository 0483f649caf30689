//! The operator as a process of its own: starting it, and what it costs.

use std::{fs, process::Stdio};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use super::{BenchOptions, OperatorCommand};
use crate::control_plane::{ControlPlane, Identity};

/// Clock ticks per second in `/proc`; fixed on Linux.
const TICKS: f64 = 100.0;

/// A process under observation; it ends with its owner.
pub(super) struct Watched {
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
    /// Starts the operator under test with the rights of its role.
    pub(super) fn start(plane: &ControlPlane, options: &BenchOptions) -> Result<Self> {
        let kubeconfig = plane.kubeconfig(Identity::Operator);
        let mut command = match &options.command {
            OperatorCommand::Other(line) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {line}")]);
                command
            }
            OperatorCommand::Ours(binary) => {
                let quiet = ["--metrics-bind-address=0", "--health-probe-bind-address=0"];
                let mut command = Command::new(binary);
                command.arg("operator").args(quiet);
                command
            }
        };
        let log = fs::File::create(plane.dir().join("operator.log"))?;
        command
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        let child = command.spawn().context("starting the operator")?;
        let pid = child.id().context("the operator ended at once")?;
        Ok(Self { child, pid })
    }

    /// Fails when the operator has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the operator ended with {status}"),
        }
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
    pub(super) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("ending the operator")
    }
}
