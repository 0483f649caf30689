//! The two processes of a holder. The outer one takes the set-up, enters the namespaces, forks the
//! inner one, which is the holder proper, and watches it: whichever of the two goes first, the other
//! ends all pods and removes what they leave.
//!
//! Owns the entry and the words for its failure. Must not know requests beyond the set-up.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use crate::cgroup::{self, Group};
use crate::container::privileges::{Rights, write_maps};
use crate::net::tether;
use crate::protocol::{
    Call, Cgroups, Isolation, Message, Network, Refusal, RefusalKind, Request, SetUp,
};
use crate::refuse::{OrRefuse, refusal, words};
use crate::tree::{self, Proc};
use crate::yard::{self, Yard};
use crate::{memory, root, sweep, sys, wire};

/// What the outer process found and hands to the inner one.
pub(crate) struct Entered {
    pub(crate) set_up: SetUp,
    /// The call to answer when all is ready.
    pub(crate) call: u64,
    pub(crate) rights: Rights,
    pub(crate) groups: Result<Group, String>,
    pub(crate) descriptors: Rlimit,
    /// Ends when the outer process does.
    pub(crate) life: OwnedFd,
    pub(crate) ledger: Ledger,
}

impl Entered {
    pub(crate) fn cgroups(&self) -> (Cgroups, Option<String>) {
        match &self.groups {
            Ok(group) => (group.kind(), None),
            Err(reason) => (Cgroups::None, Some(reason.clone())),
        }
    }
}

/// Tells the outer process which folders would be left if the inner one vanished.
pub(crate) struct Ledger(fs::File);

impl Ledger {
    /// This folder is ours to remove now.
    pub(crate) fn add(&mut self, folder: &Path) -> io::Result<()> {
        self.0.write_all(&[b"+", folder.as_os_str().as_bytes(), b"\0"].concat())
    }

    /// It is removed, or no longer ours.
    pub(crate) fn strike(&mut self, folder: &Path) -> io::Result<()> {
        self.0.write_all(&[b"-", folder.as_os_str().as_bytes(), b"\0"].concat())
    }
}

/// The whole life of a holder; its exit code.
pub(crate) fn run(socket: UnixStream) -> u8 {
    let Ok(Some(frame)) = wire::receive(&socket) else { return 0 };
    let call: Call = match serde_json::from_slice(&frame.payload) {
        Ok(call) => call,
        Err(_) => return 2,
    };
    if let Request::Tether(tether) = &call.request {
        return tether::run(socket, call.id, tether, frame.descriptors);
    }
    let Request::SetUp(set_up) = call.request else {
        let first = refusal(RefusalKind::BadRequest, "setting up", "the first request must do it");
        refuse(&socket, call.id, first);
        return 2;
    };
    match prepare(set_up, call.id) {
        Ok(prepared) => watch(socket, prepared),
        Err(refusal) => {
            refuse(&socket, call.id, refusal);
            1
        }
    }
}

pub(crate) fn refuse(socket: &UnixStream, id: u64, refusal: Refusal) {
    // An owner that is gone needs no answer.
    drop(wire::send(socket, &Message::Answer { id, result: Err(refusal) }, &[]));
}

struct Prepared {
    entered: Entered,
    life: OwnedFd,
    ledger: OwnedFd,
}

fn prepare(set_up: SetUp, call: u64) -> Result<Prepared, Refusal> {
    yard::checked_name("yard", &set_up.yard)?;
    let step = || "setting up".to_owned();
    let groups = if set_up.cgroups {
        cgroup::find(&set_up.yard, &set_up.limits)
    } else {
        Err("they are switched off".to_owned())
    };
    let pipe = || pipe_with(PipeFlags::CLOEXEC).or_refuse(RefusalKind::Machine, step);
    let ((life, kept), (ledger, book)) = (pipe()?, pipe()?);
    let rights = match enter(&set_up) {
        Ok(rights) => rights,
        Err(refusal) => {
            if let Ok(group) = groups {
                group.remove_yard();
            }
            return Err(refusal);
        }
    };
    let ledger_of_inner = Ledger(fs::File::from(book));
    let descriptors = more_descriptors();
    let entered =
        Entered { set_up, call, rights, groups, descriptors, life, ledger: ledger_of_inner };
    Ok(Prepared { entered, life: kept, ledger })
}

/// A holder keeps several descriptors for each pod. Its programs get the limit that was found.
fn more_descriptors() -> Rlimit {
    let found = rustix::process::getrlimit(Resource::Nofile);
    let most = Rlimit { current: found.maximum, maximum: found.maximum };
    // With few descriptors fewer pods fit, and they say so.
    let _ = rustix::process::setrlimit(Resource::Nofile, most);
    found
}

/// Forks the inner process and waits for its end; then removes what it could not.
fn watch(socket: UnixStream, prepared: Prepared) -> u8 {
    let Prepared { entered, life, ledger } = prepared;
    let group = entered.groups.as_ref().ok().cloned();
    let isolation = entered.set_up.isolation;
    let keep = {
        let inner = [&entered.life].map(AsRawFd::as_raw_fd);
        [0, 1, 2, socket.as_raw_fd(), entered.ledger.0.as_raw_fd(), inner[0]]
    };
    if isolation == Isolation::Processes {
        // What the inner one leaves behind comes to this one.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }
    let call = entered.call;
    let inner_socket = socket.try_clone();
    let forked = inner_socket.and_then(|inner_socket| {
        sys::fork(0, || {
            let keep = [&keep[..], &[inner_socket.as_raw_fd()]].concat();
            if sys::close_all_but(&keep).is_err() {
                return 1;
            }
            Yard::live(inner_socket, entered)
        })
    });
    if let Err(error) = forked {
        refuse(&socket, call, refusal(RefusalKind::Machine, "forking", words(&error)));
        return 1;
    }
    drop(socket);
    memory::forget_code();
    let left = read_ledger(ledger);
    let mut code = 1;
    if isolation == Isolation::Processes {
        if let Ok(proc) = Proc::open() {
            tree::end_descendants(&proc);
        }
        code = 0;
    }
    while let Ok(Some(ended)) = sys::reap(true) {
        code = match ended.ending {
            crate::protocol::Ending::Code(code) => u8::try_from(code).unwrap_or(1),
            crate::protocol::Ending::Signal(_) => 1,
        };
    }
    drop(life);
    if isolation == Isolation::Namespaces {
        for folder in &left {
            root::unmount_below(folder);
        }
    }
    remove_left(&left, group.as_ref());
    code
}

/// Follows the ledger until the inner process is gone, and says what stands in it then.
fn read_ledger(ledger: OwnedFd) -> BTreeSet<PathBuf> {
    let mut left = BTreeSet::new();
    let mut reader = fs::File::from(ledger);
    let mut pending = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = match reader.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return left,
            Ok(length) => length,
        };
        pending.extend_from_slice(&buffer[..length]);
        while let Some(end) = pending.iter().position(|&byte| byte == 0) {
            let line: Vec<u8> = pending.drain(..=end).collect();
            let Some((sign, path)) = line[..end].split_first() else { continue };
            let path = PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()));
            if *sign == b'+' {
                left.insert(path);
            } else {
                left.remove(&path);
            }
        }
    }
}

fn remove_left(left: &BTreeSet<PathBuf>, group: Option<&Group>) {
    for folder in left {
        // Nobody is left to be told; the next agent finds what could not be removed.
        drop(sweep::sweep(folder));
    }
    for _ in 0..100 {
        if group.is_none_or(Group::remove_yard) {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Enters the namespaces that the set-up asks for; says what rights they leave.
fn enter(set_up: &SetUp) -> Result<Rights, Refusal> {
    let held = capabilities(None).map_or(CapabilitySet::empty(), |held| held.effective);
    let root_with = |needed| geteuid().is_root() && held.contains(needed);
    if set_up.isolation == Isolation::Processes {
        if set_up.network == Network::Bridge {
            return Err(refusal(
                RefusalKind::BadRequest,
                "setting up the network",
                "a bridge needs namespaces",
            ));
        }
        let users = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::SETPCAP;
        return Ok(Rights { isolation: set_up.isolation, rootless: !root_with(users) });
    }
    let rootless = !root_with(CapabilitySet::SYS_ADMIN);
    let rights = Rights { isolation: set_up.isolation, rootless };
    let mut spaces =
        UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC;
    if set_up.network == Network::Bridge {
        spaces |= UnshareFlags::NEWNET;
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let entered = (|| {
        if rootless {
            sys::unshare(UnshareFlags::NEWUSER)
                .map_err(|error| ("making a user namespace", error))?;
            write_maps((0, uid), (0, gid))
                .map_err(|error| ("mapping the user into its namespace", error))?;
        }
        sys::unshare(spaces).map_err(|error| ("making namespaces", error))?;
        root::follow_host_mounts().map_err(|error| ("leaving the host's mounts", error))
    })();
    match entered {
        Ok(()) => Ok(rights),
        Err((step, error)) => {
            Err(refusal(RefusalKind::NotPermitted, step, because(&error, rootless)))
        }
    }
}

/// Why namespaces are refused, from what the machine says about them.
pub(crate) fn because(error: &io::Error, rootless: bool) -> String {
    let setting = |path: &str| {
        fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let words = words(error);
    match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            let most = setting("/proc/sys/user/max_user_namespaces");
            format!("{words}: /proc/sys/user/max_user_namespaces allows {most}")
        }
        Some(libc::EPERM | libc::EACCES) if rootless => {
            if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
                format!(
                    "{words}: only root may make user namespaces here \
                     (kernel.unprivileged_userns_clone is 0)"
                )
            } else if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
                format!(
                    "{words}: AppArmor restricts user namespaces here \
                     (kernel.apparmor_restrict_unprivileged_userns is 1)"
                )
            } else if setting("/proc/self/status").contains("Seccomp:\t2") {
                format!("{words}: a seccomp filter, as containers have it, forbids it")
            } else {
                words
            }
        }
        Some(libc::ENOSYS) => format!("{words}: the kernel is too old or built without it"),
        _ => words,
    }
}
