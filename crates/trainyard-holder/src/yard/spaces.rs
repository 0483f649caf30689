//! Namespaces of pods: made by the holder itself, which steps into them and comes back.
//!
//! Must not know what runs in them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::net::{NetSpace, come_back};
use crate::sys::{self, Pid};
use crate::tree::Proc;

/// The holder's own.
pub(super) struct Home {
    pub(super) net: OwnedFd,
    uts: OwnedFd,
    ipc: OwnedFd,
    pid: OwnedFd,
}

/// A pod's.
pub(super) struct Spaces {
    /// None: it uses another's.
    pub(super) net: Option<NetSpace>,
    pub(super) uts: OwnedFd,
    pub(super) ipc: OwnedFd,
}

impl Home {
    pub(super) fn new(proc: &Proc) -> io::Result<Self> {
        Ok(Self {
            net: proc.own("ns/net")?,
            uts: proc.own("ns/uts")?,
            ipc: proc.own("ns/ipc")?,
            pid: proc.own("ns/pid")?,
        })
    }

    /// Makes a network namespace alone.
    pub(super) fn new_network(&self, proc: &Proc) -> io::Result<NetSpace> {
        sys::unshare(UnshareFlags::NEWNET)?;
        let made = NetSpace::current(proc);
        come_back(&self.net, LinkNameSpaceType::Network);
        made
    }

    /// Makes a pod's namespaces; `network`: one of those too.
    pub(super) fn new_spaces(
        &self,
        proc: &Proc,
        hostname: &str,
        network: bool,
    ) -> io::Result<Spaces> {
        let mut flags = UnshareFlags::NEWUTS | UnshareFlags::NEWIPC;
        if network {
            flags |= UnshareFlags::NEWNET;
        }
        sys::unshare(flags)?;
        let made = (|| {
            rustix::system::sethostname(hostname.as_bytes())?;
            Ok(Spaces {
                net: network.then(|| NetSpace::current(proc)).transpose()?,
                uts: proc.own("ns/uts")?,
                ipc: proc.own("ns/ipc")?,
            })
        })();
        come_back(&self.uts, LinkNameSpaceType::HostNameAndNISDomainName);
        come_back(&self.ipc, LinkNameSpaceType::InterProcessCommunication);
        if network {
            come_back(&self.net, LinkNameSpaceType::Network);
        }
        made
    }

    /// Forks a child into a PID namespace that exists.
    pub(super) fn fork_into(
        &self,
        pids: &OwnedFd,
        namespaces: i32,
        child: impl FnOnce() -> i32,
    ) -> io::Result<Pid> {
        move_into_link_name_space(pids.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
        let forked = sys::fork(namespaces, child);
        come_back(&self.pid, LinkNameSpaceType::ProcessID);
        forked
    }
}
