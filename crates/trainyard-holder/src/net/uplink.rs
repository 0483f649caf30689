//! The way out of the yard's network: a link that a program of the machine has put there, to which the
//! yard forwards what is for other networks.
//!
//! The link is no port of the bridge. Only what the kernel routes comes to it: nothing that is addressed
//! to the machine's loopback, whatever frames a pod makes. Must not know the program.

use std::collections::BTreeSet;
use std::io;
use std::net::Ipv4Addr;

use rustix::fs::{Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use super::{Bridge, masquerade};
use crate::protocol::Uplink;
use crate::tree::Proc;

impl Bridge {
    /// Sends what is for other networks out by a link. What was made before a failure goes with the
    /// link, whose program is then of no use.
    pub(crate) fn uplink(&mut self, uplink: &Uplink, proc: &Proc) -> io::Result<()> {
        let index = index_of(&uplink.link)?;
        self.routes.up(index)?;
        self.routes.add_address(index, uplink.address, uplink.prefix)?;
        if uplink.masquerade {
            // Else what pods say to each other would be followed as well. Not there: not done.
            let _ = set(proc, "net/bridge/bridge-nf-call-iptables", "0");
            masquerade::masquerade(index)?;
        } else {
            set(proc, &format!("net/ipv4/conf/{}/proxy_arp", uplink.link), "1")?;
            // The program drops what waits for such an answer for a second.
            self.routes.answer_for_others_at_once(index)?;
        }
        set(proc, "net/ipv4/ip_forward", "1")?;
        self.routes.add_default_route(index, uplink.via)
    }

    /// Sends nothing to these networks, and to others again.
    pub(crate) fn keep_from(&mut self, networks: &[(Ipv4Addr, u8)]) -> io::Result<()> {
        let wanted: BTreeSet<_> =
            networks.iter().copied().filter(|(_, bits)| *bits <= 32).collect();
        let new: Vec<_> = wanted.difference(&self.kept_from).copied().collect();
        let old: Vec<_> = self.kept_from.difference(&wanted).copied().collect();
        for network in new {
            match self.routes.prohibit(network) {
                Err(error) if error.raw_os_error() != Some(libc::EEXIST) => return Err(error),
                _ => drop(self.kept_from.insert(network)),
            }
        }
        for network in old {
            match self.routes.permit(network) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
                _ => drop(self.kept_from.remove(&network)),
            }
        }
        Ok(())
    }
}

/// A link's number in the current namespace.
fn index_of(link: &str) -> io::Result<u32> {
    let asking = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    Ok(netdevice::name_to_index(&asking, link)?)
}

/// Sets one of the current network namespace's own settings.
fn set(proc: &Proc, name: &str, value: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(proc.folder(), format!("sys/{name}"), flags, Mode::empty())?;
    rustix::io::write(&file, value.as_bytes())?;
    Ok(())
}
