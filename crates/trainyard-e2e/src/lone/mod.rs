//! The embedded server alone in a process of its own, to be attacked, killed and measured. The process
//! is the program `embedded-api-server`; it ends with its standard input.
//!
//! Must not know what is done to it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};
use trainyard_apiserver::{Bounds, Server, Settings};

use crate::raw::Door;

/// Names that program, for those who are not told where it is.
const PROGRAM: &str = "TRAINYARD_EMBEDDED_API_SERVER";

/// Who gets in.
const TOKEN: &str = "lone-server-token";
const PATIENCE: Duration = Duration::from_mins(1);

/// How a server is to be.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Where objects are kept; in memory without it.
    pub folder: Option<PathBuf>,
    /// Bounds other than the usual ones.
    pub in_flight: Option<usize>,
    /// Watches at once.
    pub long: Option<usize>,
    /// Connections at once.
    pub connections: Option<usize>,
    /// Seconds of patience with a client that sends or reads slowly.
    pub patience: Option<u64>,
    /// Megabytes of all bodies at once.
    pub bodies_mb: Option<usize>,
}

impl Wanted {
    fn bounds(&self) -> Bounds {
        let usual = Bounds::default();
        Bounds {
            in_flight: self.in_flight.unwrap_or(usual.in_flight),
            long: self.long.unwrap_or(usual.long),
            connections: self.connections.unwrap_or(usual.connections),
            bodies: self.bodies_mb.map_or(usual.bodies, |megabytes| megabytes * 1024 * 1024),
            head_time: self.patience.map_or(usual.head_time, Duration::from_secs),
            body_time: self.patience.map_or(usual.body_time, Duration::from_secs),
            stall_time: self.patience.map_or(usual.stall_time, Duration::from_secs),
            ..usual
        }
    }

    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let numbers = [
            ("in-flight", self.in_flight),
            ("long", self.long),
            ("connections", self.connections),
            ("bodies-mb", self.bodies_mb),
        ];
        for (name, number) in numbers {
            words.extend(number.map(|number| format!("--{name}={number}")));
        }
        words.extend(self.patience.map(|seconds| format!("--patience={seconds}")));
        words.extend(self.folder.as_ref().map(|folder| format!("--folder={}", folder.display())));
        words
    }
}

/// Serves until standard input ends. The authority's certificate is left in a file, the address is
/// told on standard output.
pub async fn serve(wanted: &Wanted, authority: &Path) -> Result<()> {
    if let Some(folder) = &wanted.folder {
        fs::create_dir_all(folder)?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = Server::open(Settings {
        folder: wanted.folder.clone(),
        bounds: wanted.bounds(),
        tokens: vec![(TOKEN.to_owned(), "lone-admin".to_owned())],
        address: address.to_string(),
        ..Settings::default()
    })?;
    fs::write(authority, server.authority().certificate())?;
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener).await }
    });
    tell(&address.to_string())?;
    let ended = || std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    tokio::task::spawn_blocking(ended).await??;
    server.close().await;
    serving.await??;
    Ok(())
}

fn tell(line: &str) -> Result<()> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// The program that serves, as the environment names it.
pub fn program() -> Result<PathBuf> {
    let named = std::env::var_os(PROGRAM).map(PathBuf::from);
    named.with_context(|| format!("{PROGRAM} has to name the built program embedded-api-server"))
}

/// Such a process, seen from the one that started it.
pub struct Lone {
    child: Child,
    pid: u32,
    _input: Option<ChildStdin>,
    door: Door,
    /// The authority's certificate, in PEM.
    pub authority: String,
    /// From the start of the process to the first list answered.
    pub ready_after: Duration,
    log: PathBuf,
    _home: TempDir,
}

impl Lone {
    /// Starts one; it has answered a list when this returns.
    pub async fn start(program: &Path, wanted: &Wanted) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("trainyard-lone-").tempdir()?;
        let (authority, log) = (home.path().join("authority.pem"), home.path().join("log"));
        let sink = fs::File::create(&log)?;
        let started = Instant::now();
        let mut child = Command::new(program)
            .arg(format!("--authority={}", authority.display()))
            .args(wanted.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(sink)
            .kill_on_drop(true)
            .spawn()
            .context("starting the server")?;
        let pid = child.id().context("the server ended at once")?;
        let output = child.stdout.take().context("no standard output")?;
        let mut line = String::new();
        let told = BufReader::new(output).read_line(&mut line).await?;
        if told == 0 {
            bail!("the server did not start:\n{}", fs::read_to_string(&log)?);
        }
        let address: SocketAddr = line.trim().parse().context("the server's address")?;
        let authority = fs::read_to_string(&authority)?;
        let door = Door::new(address, &authority, TOKEN)?;
        door.must_answer().await?;
        let ready_after = started.elapsed();
        let input = child.stdin.take();
        Ok(Self { child, pid, _input: input, door, authority, ready_after, log, _home: home })
    }

    /// How to reach it as one who may do everything.
    #[must_use]
    pub const fn door(&self) -> &Door {
        &self.door
    }

    /// Its process.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// What it said on standard error so far: panics among it.
    pub fn said(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }

    /// Fails when the process has ended or a part of it has panicked.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended with {status}:\n{}", self.said()?);
        }
        let said = self.said()?;
        if said.contains("panicked") {
            bail!("the server panicked:\n{said}");
        }
        Ok(())
    }

    /// Ends it without a word, as a loss of power would.
    pub async fn kill(mut self) -> Result<()> {
        self.child.start_kill()?;
        tokio::time::timeout(PATIENCE, self.child.wait()).await.context("it does not end")??;
        Ok(())
    }

    /// Its memory in MB.
    pub fn memory(&self) -> Result<f64> {
        memory(self.pid)
    }
}

/// The memory of a process in MB.
pub fn memory(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: f64 = line
        .and_then(|line| line.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .context("no memory in /proc")?;
    Ok(kilobytes / 1024.0)
}
