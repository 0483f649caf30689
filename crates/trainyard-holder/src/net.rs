//! The yard's network: a bridge in the holder's own network namespace, and a namespace for each
//! virtual node and pod that hangs on it.
//!
//! Owns addresses, links and routes; nothing of it is ever in the host's network. Must not know pods
//! beyond their address.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with, sockopt,
};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::protocol::SocketKind;
use crate::tree::Proc;

mod masquerade;
mod route;
pub(crate) mod tether;
mod uplink;

use route::Routes;

const BRIDGE: &str = "yard0";
/// Numbers of links that we choose, so that none has to be asked for.
const BRIDGE_INDEX: u32 = 100;
const INSIDE_INDEX: u32 = 100;
const LOOPBACK_INDEX: u32 = 1;
const BACKLOG: i32 = 1024;

/// The bridge.
pub(crate) struct Bridge {
    routes: Routes,
    gateway: Ipv4Addr,
    prefix: u8,
    /// The number of the next link.
    next: u32,
    /// Networks that nothing is sent to.
    kept_from: BTreeSet<(Ipv4Addr, u8)>,
}

/// The same address always has the same hardware address: whoever comes after a pod under its
/// address is found at once by those who knew the pod before.
fn hardware(address: Ipv4Addr) -> Vec<u8> {
    [&[0x02, 0x54][..], &address.octets()].concat()
}

fn link_name(address: Ipv4Addr) -> String {
    format!("p{:08x}", u32::from(address))
}

impl Bridge {
    /// Makes it in the current namespace, which is new and empty.
    pub(crate) fn new(gateway: Ipv4Addr, prefix: u8) -> io::Result<Self> {
        if !(1..=30).contains(&prefix) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a prefix of {prefix} bits leaves no room for pods: 1 to 30 do"),
            ));
        }
        let mut routes = Routes::open()?;
        routes.up(LOOPBACK_INDEX)?;
        routes.add_bridge(BRIDGE, BRIDGE_INDEX, hardware(gateway))?;
        routes.add_address(BRIDGE_INDEX, gateway, prefix)?;
        routes.up(BRIDGE_INDEX)?;
        Ok(Self { routes, gateway, prefix, next: BRIDGE_INDEX + 1, kept_from: BTreeSet::new() })
    }

    /// Whether an address can be a pod's or a node's.
    pub(crate) fn check(&self, address: Ipv4Addr) -> Result<(), String> {
        let mask = u32::MAX << (32 - u32::from(self.prefix));
        let (own, other) = (u32::from(self.gateway), u32::from(address));
        if own & mask != other & mask {
            return Err(format!("not in the yard's network {}/{}", self.gateway, self.prefix));
        }
        if own == other || other & !mask == 0 || other & !mask == !mask {
            return Err("it is the gateway's, the network's or the broadcast address".to_owned());
        }
        Ok(())
    }

    /// Gives the namespace that was just made its place on the bridge.
    pub(crate) fn join(&mut self, space: &mut NetSpace, address: Ipv4Addr) -> io::Result<()> {
        let name = link_name(address);
        let index = self.next;
        self.next += 1;
        self.routes.add_pair(
            &name,
            index,
            BRIDGE_INDEX,
            &route::Peer {
                space: &space.space,
                name: "eth0",
                index: INSIDE_INDEX,
                hardware: hardware(address),
            },
        )?;
        let (prefix, gateway) = (self.prefix, self.gateway);
        let mut inside = || {
            space.routes.up(LOOPBACK_INDEX)?;
            space.routes.up(INSIDE_INDEX)?;
            space.routes.add_address(INSIDE_INDEX, address, prefix)?;
            space.routes.add_default_route(INSIDE_INDEX, gateway)
        };
        inside().inspect_err(|_| drop(self.routes.delete(&name)))
    }

    /// One more address of the bridge itself.
    pub(crate) fn add_address(&mut self, address: Ipv4Addr) -> io::Result<()> {
        self.routes.add_address(BRIDGE_INDEX, address, 32)
    }
}

/// Takes a pod's link away from the bridge, in the current namespace.
pub(crate) fn leave(address: Ipv4Addr) -> io::Result<()> {
    Routes::open()?.delete(&link_name(address))
}

/// A network namespace, with a conversation for setting it up.
pub(crate) struct NetSpace {
    pub(crate) space: OwnedFd,
    routes: Routes,
}

impl NetSpace {
    /// The one that this process is in now.
    pub(crate) fn current(proc: &Proc) -> io::Result<Self> {
        Ok(Self { space: proc.own("ns/net")?, routes: Routes::open()? })
    }
}

/// Returns to a namespace of the holder's own. Being in a pod's is worse than not being at all: then
/// the outer process ends everything.
pub(crate) fn come_back(home: &OwnedFd, kind: LinkNameSpaceType) {
    if move_into_link_name_space(home.as_fd(), Some(kind)).is_err() {
        std::process::abort();
    }
}

/// Does something in another network; `None` is the current one.
pub(crate) fn within<T>(
    space: Option<(&OwnedFd, &OwnedFd)>,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let Some((space, home)) = space else { return act() };
    move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
    let done = act();
    come_back(home, LinkNameSpaceType::Network);
    done
}

/// A socket bound to an address, listening when it is a stream.
pub(crate) fn bound(address: SocketAddrV4, kind: SocketKind) -> io::Result<OwnedFd> {
    let socket_type = match kind {
        SocketKind::Stream => SocketType::STREAM,
        SocketKind::Datagram => SocketType::DGRAM,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, socket_type, flags, None)?;
    if kind == SocketKind::Stream {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &SocketAddr::V4(address))?;
    if kind == SocketKind::Stream {
        listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

/// A stream socket on its way to an address.
pub(crate) fn connecting(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddr::V4(address)) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}
