//! One more program in a running container, for probes and for those who look into it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use trainyard_holder::protocol::{Ending, ExecSpec, Refusal, RefusalKind};

use super::Run;
use crate::yard::{Begun, Exited, Yard};

/// Programs have ids of their own, never used again.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Ends a program when nobody waits for it any more.
pub(crate) struct Leash {
    yard: Yard,
    id: String,
    exited: Exited,
    ended: bool,
}

impl Leash {
    /// Its exit code; 128 and the signal's number when one ended it.
    pub(crate) async fn exit_code(mut self) -> Result<i32, String> {
        let exit = (&mut self.exited).await;
        self.ended = true;
        match exit.map_err(|_| "the container has ended".to_owned())?.ending {
            Ending::Code(code) => Ok(code),
            Ending::Signal(signal) => Ok(128 + signal),
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if !self.ended {
            self.yard.kill(&self.id);
        }
    }
}

/// Begins a program in this run of a container, on these descriptors.
pub(crate) async fn start(
    yard: &Yard,
    run: &Run,
    argv: Vec<String>,
    stdio: [OwnedFd; 3],
) -> Result<Leash, Refusal> {
    begin(yard, run, argv, Some(stdio)).await.map(|(leash, _)| leash)
}

/// Begins a program in this run of a container on a terminal, whose other side comes along.
pub(crate) async fn start_on_terminal(
    yard: &Yard,
    run: &Run,
    argv: Vec<String>,
) -> Result<(Leash, OwnedFd), Refusal> {
    let (leash, terminal) = begin(yard, run, argv, None).await?;
    let terminal = terminal.ok_or_else(|| Refusal {
        step: "making a terminal".to_owned(),
        reason: "the holder gave none".to_owned(),
        kind: RefusalKind::Machine,
    })?;
    Ok((leash, terminal))
}

async fn begin(
    yard: &Yard,
    run: &Run,
    argv: Vec<String>,
    stdio: Option<[OwnedFd; 3]>,
) -> Result<(Leash, Option<OwnedFd>), Refusal> {
    let tty = stdio.is_none();
    let exec = format!("exec-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut env = run.env.clone();
    if tty && !env.iter().any(|(name, _)| name == "TERM") {
        env.push(("TERM".to_owned(), "xterm".to_owned()));
    }
    let spec = ExecSpec {
        exec: exec.clone(),
        container: run.id.clone(),
        argv,
        env,
        cwd: run.cwd.clone(),
        user: run.user.clone(),
        privileges: run.privileges.clone(),
        tty,
    };
    let Begun { exited, terminal } = yard.exec(spec, stdio).await?;
    Ok((Leash { yard: yard.clone(), id: exec, exited, ended: false }, terminal))
}

/// Runs a program to its end: its exit code and the beginning of what it printed.
pub(crate) async fn output(
    yard: &Yard,
    run: &Run,
    argv: &[String],
    most: usize,
) -> Result<(i32, Vec<u8>), String> {
    let broken = |error: io::Error| error.to_string();
    let (read, write) = io::pipe().map_err(broken)?;
    let null = std::fs::File::open("/dev/null").map_err(broken)?;
    let errors = write.try_clone().map_err(broken)?;
    let stdio = [null.into(), write.into(), errors.into()];
    let leash = start(yard, run, argv.to_vec(), stdio).await.map_err(|refusal| words(&refusal))?;
    let mut receiver = pipe::Receiver::from_owned_fd(read.into()).map_err(broken)?;
    let reading = async {
        let mut kept = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = receiver.read(&mut piece).await {
            let room = most.saturating_sub(kept.len());
            kept.extend_from_slice(&piece[..count.min(room)]);
        }
        kept
    };
    let (kept, code) = tokio::join!(reading, leash.exit_code());
    Ok((code?, kept))
}

/// A refusal as a person would want to read it.
pub(crate) fn words(refusal: &Refusal) -> String {
    match refusal.kind {
        RefusalKind::BadRequest => format!("the container is not running: {}", refusal.reason),
        _ => refusal.to_string(),
    }
}
