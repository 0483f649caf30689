//! A program of the machine that runs beside a yard and never outlives whoever asked for it.
//!
//! Owns two processes: one that waits, and below it the first of a PID namespace, with which the kernel
//! kills whatever the program has become. Must not know what the program does.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::enter::refuse;
use crate::protocol::{
    Answer, Event, Message, Refusal, RefusalKind, TETHERED, Tether, YARD_NETWORK,
};
use crate::refuse::{OrRefuse, refusal, words};
use crate::sys::{self, Ended};
use crate::{memory, root, wire};

/// What a program that could not be executed ends with.
const NOT_EXECUTED: i32 = 127;

/// The whole life of a holder that is a tether; its exit code.
pub(crate) fn run(socket: UnixStream, call: u64, tether: &Tether, descriptors: Vec<OwnedFd>) -> u8 {
    // It may be there for a moment longer than its owner, and whoever reads the owner's errors to their
    // end must not wait for that. The program has an output of its own.
    if let Ok(null) = fs::OpenOptions::new().write(true).open("/dev/null") {
        drop(sys::duplicate_onto(&null, 2));
    }
    match begin(&socket, call, tether, descriptors) {
        // Held until the other process has ended; it ends when this one does.
        Ok(_life) => {
            drop(socket);
            memory::forget_code();
            while let Ok(Some(_)) = sys::reap(true) {}
            0
        }
        Err(refusal) => {
            refuse(&socket, call, refusal);
            1
        }
    }
}

/// Forks the process that keeps the program. What is returned tells it that this one lives.
fn begin(
    socket: &UnixStream,
    call: u64,
    tether: &Tether,
    descriptors: Vec<OwnedFd>,
) -> Result<OwnedFd, Refusal> {
    let step = || "starting a program beside the yard".to_owned();
    let bad = |reason: &str| refusal(RefusalKind::BadRequest, step(), reason);
    let output = descriptors.into_iter().next().ok_or_else(|| bad("it has no output"))?;
    let argv: Result<Vec<CString>, _> =
        tether.argv.iter().map(|word| CString::new(word.as_bytes())).collect();
    let argv = argv.map_err(|_| bad("a word of it has a zero byte"))?;
    if argv.is_empty() {
        return Err(bad("it has no name"));
    }
    enter_users_of(tether.holder).or_refuse(RefusalKind::NotPermitted, || {
        format!("entering the user namespace of process {}", tether.holder)
    })?;
    show_network_of(tether.holder).or_refuse(RefusalKind::NotPermitted, || {
        format!("showing the network of process {}", tether.holder)
    })?;
    let (life, kept) = pipe_with(PipeFlags::CLOEXEC).or_refuse(RefusalKind::Machine, step)?;
    let keep = [0, 1, 2, socket.as_raw_fd(), life.as_raw_fd(), output.as_raw_fd()];
    let first = || {
        let kept = sys::close_all_but(&keep)
            .and_then(|()| keep_program(socket, call, &life, &output, &argv));
        i32::from(kept.is_err())
    };
    sys::fork(libc::CLONE_NEWPID, first).or_refuse(RefusalKind::NotPermitted, step)?;
    Ok(kept)
}

/// Becomes one of the users of a holder that has a user namespace of its own: only they may make PID
/// namespaces without root, and touch the yard's network.
fn enter_users_of(holder: u32) -> io::Result<()> {
    let theirs = format!("/proc/{holder}/ns/user");
    if fs::read_link("/proc/self/ns/user")? == fs::read_link(&theirs)? {
        return Ok(());
    }
    let space = fs::File::open(theirs)?;
    Ok(move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::User))?)
}

/// Puts the network namespace of a process where the program can open it by name, whatever rights it has
/// left by then: those that the folder of another process asks for, some give up before.
fn show_network_of(holder: u32) -> io::Result<()> {
    let source = format!("/proc/{holder}/ns/net");
    let target = Path::new(YARD_NETWORK);
    sys::unshare(UnshareFlags::NEWNS)?;
    // Not more: slirp4netns changes its root, which no mount with followers can be.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let folder = target.parent().ok_or(io::ErrorKind::InvalidInput)?;
    root::mount_memory(folder, None, 0o1777)?;
    fs::File::create_new(target)?;
    Ok(mount_bind(source, target)?)
}

/// Runs the program until it ends, or somebody goes that it is for. Everything in this PID namespace is
/// killed when this process, its first, returns.
fn keep_program(
    socket: &UnixStream,
    call: u64,
    life: &OwnedFd,
    output: &OwnedFd,
    argv: &[CString],
) -> io::Result<()> {
    let signals = sys::child_signals()?;
    let program = sys::fork(0, || execute(output, argv))?;
    wire::send(socket, &Message::Answer { id: call, result: Ok(Answer::Started) }, &[])?;
    memory::forget_code();
    loop {
        let mut sources = [
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(socket, PollFlags::IN),
            PollFd::new(life, PollFlags::IN),
        ];
        match poll(&mut sources, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => drop(other?),
        }
        let [child, owner, outer] = [0, 1, 2].map(|at: usize| !sources[at].revents().is_empty());
        if owner || outer {
            return Ok(());
        }
        if child && let Some(ended) = reaped(&signals, program) {
            let event = Event::Exited {
                target: TETHERED.to_owned(),
                ending: ended.ending,
                oom_killed: false,
                cpu_usec: Some(ended.cpu_usec),
                peak_memory: Some(ended.peak_memory),
            };
            return wire::send(socket, &Message::Event(event), &[]);
        }
    }
}

/// Takes all children that have ended; the program, if it is among them.
fn reaped(signals: &OwnedFd, program: sys::Pid) -> Option<Ended> {
    let mut notice = [0; 128];
    while rustix::io::read(signals, &mut notice).is_ok() {}
    let mut found = None;
    while let Ok(Some(ended)) = sys::reap(false) {
        if ended.pid == program {
            found = Some(ended);
        }
    }
    found
}

/// Becomes the program. Comes back only when it cannot, and says why where the program would speak.
fn execute(output: &OwnedFd, argv: &[CString]) -> i32 {
    sys::reset_signals();
    let ready = sys::duplicate_onto(output, 2).and_then(|()| sys::close_on_exec_from(3));
    let env = [c"PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned(), c"LC_ALL=C".to_owned()];
    let error = match (ready, argv.first()) {
        (Err(error), _) => error,
        (Ok(()), Some(program)) => sys::execute(program, argv, &env),
        (Ok(()), None) => io::ErrorKind::InvalidInput.into(),
    };
    // Whoever would read it may be gone.
    let _ = rustix::io::write(output, words(&error).as_bytes());
    NOT_EXECUTED
}
