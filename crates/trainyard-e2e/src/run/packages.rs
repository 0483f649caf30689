//! Packages of strangers: their code runs when they are built and whenever a Python starts, and reaches
//! nothing outside; without being asked for, nothing is built at all.

use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::desk::{Desk, Outcome, finish, job};
use crate::check::contains;
use crate::harness::{Case, cases};
use crate::node::Who;

/// An id that owns nothing on the machine.
const NOBODY: u32 = 65_534;
const ALLOW: &str = "--allow-source-packages";

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/packages": foreign_code_stays_inside, foreign_code_of_a_users_run_stays_inside]
}

/// Before environments were made in a sandbox the build wrote the file, told the secret on loopback, and so
/// did the hook when the environment was checked.
async fn foreign_code_stays_inside(desk: &Desk) -> Result<()> {
    attack(desk, Who::Me).await
}

/// As above, seen without root as well.
async fn foreign_code_of_a_users_run_stays_inside(desk: &Desk) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return attack(desk, Who::Me).await;
    }
    attack(desk, Who::User).await
}

/// What strangers bring, and what they would reach.
struct Stranger<'a> {
    desk: &'a Desk,
    who: Who,
    binary: PathBuf,
    canary: PathBuf,
    calls: Arc<AtomicUsize>,
    port: u16,
}

async fn attack(desk: &Desk, who: Who) -> Result<()> {
    let stranger = Stranger::come(desk, who).await?;
    // The hook alone comes as a wheel, and is tried in the sandbox.
    let told = stranger.run(&[], "hook").await?.with_code(0)?.stdout;
    contains("the hook runs", &told, &["worker-0 | hooked True"])?;
    stranger.is_inside()?;
    let refused = stranger.run(&[], "evil").await?.with_code(4)?.stderr;
    contains("what would allow it", &refused, &["evil", ALLOW])?;
    let told = stranger.run(&[ALLOW], "evil\nhook").await?.with_code(0)?.stdout;
    contains("it was built", &told, &["worker-0 | hooked True", "built with no secret"])?;
    stranger.is_inside()?;
    let address = format!("evil @ http://127.0.0.1:{}/evil-1.0.tar.gz", stranger.port);
    let refused = stranger.run(&[], &address).await?.with_code(4)?.stderr;
    contains("an address", &refused, &["names an address", ALLOW])?;
    stranger.run(&[ALLOW], &address).await?.with_code(4)?;
    stranger.is_inside()
}

impl<'a> Stranger<'a> {
    async fn come(desk: &'a Desk, who: Who) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let calls = Arc::new(AtomicUsize::new(0));
        tokio::spawn(listen(listener, Arc::clone(&calls)));
        let outside = desk.path("outside");
        let canary = outside.join("canary");
        for folder in ["outside", "wheels", "home"] {
            std::fs::create_dir(desk.path(folder))?;
        }
        let script = desk.path("strangers.py");
        std::fs::write(&script, include_str!("strangers.py"))?;
        let words = [script, desk.path("wheels"), canary.clone(), port.to_string().into()];
        let made = tokio::process::Command::new("python3").args(words).status().await?;
        ensure!(made.success(), "the packages were not made: {made}");
        let mut binary = desk.binary().to_owned();
        if who != Who::Me {
            let copy = desk.path("trainyard");
            std::fs::copy(&binary, &copy)?;
            binary = copy;
            for name in ["", "outside", "home"] {
                chown(desk.path(name), Some(NOBODY), Some(NOBODY))?;
            }
        }
        Ok(Self { desk, who, binary, canary, calls, port })
    }

    /// Runs a job that asks for packages.
    async fn run(&self, flags: &[&str], packages: &str) -> Result<Outcome> {
        let script = "exec python -c \"import sys; print('hooked', hasattr(sys, 'hooked'))\n\
                      try: import evil; print('built with', evil.BUILT)\n\
                      except ImportError: pass\"";
        let mut job = job("mnist", &[("Worker", 1, script, "Never")]);
        let template = &mut job["spec"]["tfReplicaSpecs"]["Worker"]["template"];
        template["spec"]["containers"][0]["image"] = "python:3".into();
        template["metadata"]["annotations"]["trainyard.dev/requirements"] = packages.into();
        let file = self.desk.write("job.yaml", &[job])?;
        let mut command = self.who.command(&self.binary);
        self.desk.furnish(&mut command);
        command.arg("run").args(flags).arg("--timeout=3m").arg(file);
        command.env("HOME", self.desk.path("home")).env("XDG_CACHE_HOME", self.desk.path("home/c"));
        command.env("PIP_FIND_LINKS", self.desk.path("wheels")).env("PIP_NO_INDEX", "1");
        command.env("PIP_RETRIES", "0").env("CANARY_SECRET", "known");
        finish(command, "").await.context("a run")
    }

    fn is_inside(&self) -> Result<()> {
        let written = std::fs::read_to_string(&self.canary).unwrap_or_default();
        ensure!(written.is_empty(), "a file outside was written: {written}");
        let calls = self.calls.load(Ordering::SeqCst);
        ensure!(calls == 0, "loopback was reached {calls} times");
        Ok(())
    }
}

async fn listen(listener: TcpListener, calls: Arc<AtomicUsize>) {
    while let Ok((mut peer, _)) = listener.accept().await {
        calls.fetch_add(1, Ordering::SeqCst);
        let mut said = String::new();
        // Whatever it says, it should not have come.
        let _ = peer.read_to_string(&mut said).await;
        crate::harness::note(format_args!("a stranger came: {said}"));
    }
}
