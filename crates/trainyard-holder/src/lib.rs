//! The holder: a small single-threaded process that forks pods into sandboxes, is the init above
//! them, owns their namespaces, mounts and cgroups, and is tied to its owner by a socket. End of
//! file on that socket means: kill everything and clean up.
//!
//! Owns every system call that makes or ends a sandbox. Must not know Kubernetes, images or Python:
//! it is told what to mount, what to run and whom to tell.

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

pub mod beneath;
pub mod client;
pub mod memory;
pub mod protocol;
pub mod sweep;

mod cgroup;
mod container;
mod enter;
mod net;
mod refuse;
mod root;
mod sys;
mod tree;
mod wire;
mod yard;

/// The holder process, from its first instruction to its end. Its standard input is the socket that
/// [`client::Holder::spawn`] made.
#[must_use]
pub fn main() -> ExitCode {
    match socket() {
        Ok(socket) => ExitCode::from(enter::run(socket)),
        // Not started by its owner: there is nobody to tell but the caller's shell.
        Err(_) => ExitCode::from(2),
    }
}

/// A shared library for programs of pods that share the host's network, to be loaded by
/// `LD_PRELOAD`. It makes a listening socket on the wildcard address one on `$TRAINYARD_POD_IP`, and
/// finds names in the file `$TRAINYARD_HOSTS` before the C library looks for them.
#[must_use]
pub fn shim() -> &'static [u8] {
    include_bytes!(concat!(env!("OUT_DIR"), "/shim.so"))
}

/// Takes the socket from standard input, leaves the owner's session and working directory, and
/// closes whatever else was inherited.
fn socket() -> std::io::Result<UnixStream> {
    let stdin = rustix::stdio::stdin();
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(stdin)?.st_mode);
    if !kind.is_socket() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    sys::duplicate_onto(&null, 0)?;
    sys::duplicate_onto(&null, 1)?;
    drop(null);
    let keep = std::os::fd::AsRawFd::as_raw_fd(&socket);
    sys::close_all_but(&[0, 1, 2, keep])?;
    // The owner is told to stop by its terminal or its service manager, and then ends us by the
    // socket, in its own time.
    sys::block_signals()?;
    let _ = rustix::process::setsid();
    rustix::process::chdir("/")?;
    Ok(UnixStream::from(socket))
}
