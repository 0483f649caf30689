//! A program that somebody runs in a container: its pipes or its terminal, and its end.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use futures::FutureExt as _;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::net::unix::pipe;
use trainyard_holder::protocol::Refusal;

use super::Shared;
use crate::logs::Descriptor;
use crate::pod::{Run, exec};
use crate::serve::{ExecAsk, ExecSession, Refused, TerminalSize};

/// Starts it.
pub(super) async fn open(shared: &Shared, run: &Run, ask: ExecAsk) -> Result<ExecSession, Refused> {
    let broken = |error: io::Error| Refused::Internal(error.to_string());
    let refused = |refusal: Refusal| Refused::BadRequest(exec::words(&refusal));
    let yard = &shared.yard;
    if ask.tty {
        let command = ask.command.clone();
        let started = exec::start_on_terminal(yard, run, command).await;
        let (leash, ours) = started.map_err(refused)?;
        let mut session = terminal(&ask, ours).map_err(broken)?;
        session.exit = leash.exit_code().boxed();
        return Ok(session);
    }
    let (inside, mut session) = pipes(&ask).map_err(broken)?;
    let leash = exec::start(yard, run, ask.command, inside).await.map_err(refused)?;
    session.exit = leash.exit_code().boxed();
    Ok(session)
}

fn empty() -> ExecSession {
    let never = std::future::pending().boxed();
    ExecSession { stdin: None, stdout: None, stderr: None, resize: None, exit: never }
}

fn pipes(ask: &ExecAsk) -> io::Result<([OwnedFd; 3], ExecSession)> {
    let mut session = empty();
    let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    let stdin = if ask.stdin {
        let (inside, ours) = io::pipe()?;
        session.stdin = Some(Box::new(pipe::Sender::from_owned_fd(ours.into())?));
        inside.into()
    } else {
        null()?
    };
    let output = |wanted: bool| -> io::Result<(OwnedFd, Option<pipe::Receiver>)> {
        if !wanted {
            return Ok((null()?, None));
        }
        let (ours, inside) = io::pipe()?;
        Ok((inside.into(), Some(pipe::Receiver::from_owned_fd(ours.into())?)))
    };
    let (stdout, ours) = output(ask.stdout)?;
    session.stdout = ours.map(|ours| Box::new(ours) as _);
    let (stderr, ours) = output(ask.stderr)?;
    session.stderr = ours.map(|ours| Box::new(ours) as _);
    Ok(([stdin, stdout, stderr], session))
}

/// Whoever sits at this side of a program's terminal.
fn terminal(ask: &ExecAsk, ours: OwnedFd) -> io::Result<ExecSession> {
    let mut session = empty();
    if ask.stdin {
        session.stdin = Some(Box::new(Descriptor::new(ours.try_clone()?)?));
    }
    if ask.stdout {
        session.stdout = Some(Box::new(Descriptor::new(ours.try_clone()?)?));
    }
    session.resize = Some(Box::new(move |size: TerminalSize| {
        let size = Winsize { ws_row: size.height, ws_col: size.width, ws_xpixel: 0, ws_ypixel: 0 };
        // A terminal that is closed has no size.
        let _ = tcsetwinsize(ours.as_fd(), size);
    }));
    Ok(session)
}
