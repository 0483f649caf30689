//! Sockets made inside for the owner, addresses of the bridge, and what pods use.
//!
//! Must not know what the sockets are for.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use super::Yard;
use crate::net::{bound, connecting, within};
use crate::protocol::{ContainerUsage, Place, PodUsage, Refusal, RefusalKind, SocketKind, Uplink};
use crate::refuse::{OrRefuse, refusal};
use crate::sys;
use crate::tree::{self, Process};

/// Clock ticks in `/proc` are hundredths of a second on every machine.
const USEC_PER_TICK: u64 = 10_000;

impl Yard {
    pub(super) fn listen(
        &self,
        place: &Place,
        address: SocketAddrV4,
        kind: SocketKind,
    ) -> Result<OwnedFd, Refusal> {
        let step = || format!("listening on {address}");
        self.inside(place, step, || bound(address, kind))
    }

    pub(super) fn connect_to(
        &self,
        place: &Place,
        address: SocketAddrV4,
    ) -> Result<OwnedFd, Refusal> {
        self.inside(place, || format!("connecting to {address}"), || connecting(address))
    }

    /// Does something in a place's network. Without a bridge all places are the host's.
    fn inside<T>(
        &self,
        place: &Place,
        step: impl Fn() -> String,
        act: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, Refusal> {
        let unknown = |what| refusal(RefusalKind::BadRequest, step(), what);
        let space = match place {
            Place::Yard => None,
            _ if self.bridge.is_none() => None,
            Place::Node(name) => {
                let node = self.nodes.get(name);
                Some(node.ok_or_else(|| unknown(format!("there is no node {name}")))?)
            }
            Place::Pod(name) => {
                let pod = self.pods.get(name).filter(|pod| !pod.is_leaving());
                let pod = pod.ok_or_else(|| unknown(format!("there is no pod {name}")))?;
                let own = pod.spaces.as_ref().and_then(|spaces| spaces.net.as_ref());
                own.or_else(|| self.nodes.get(&pod.node))
            }
        };
        let home = self.home.as_ref().map(|home| &home.net);
        let space = space.map(|net| &net.space).zip(home);
        within(space, act).or_refuse(RefusalKind::Machine, step)
    }

    /// Without a bridge there is nothing to add: the host answers all its loopback addresses.
    pub(super) fn add_address(&mut self, address: Ipv4Addr) -> Result<(), Refusal> {
        let Some(bridge) = &mut self.bridge else { return Ok(()) };
        match bridge.add_address(address) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            other => {
                other.or_refuse(RefusalKind::Machine, || format!("adding the address {address}"))
            }
        }
    }

    /// Opens the way out of the pods' network.
    pub(super) fn uplink(&mut self, uplink: &Uplink) -> Result<(), Refusal> {
        let step = || format!("sending by {}", uplink.link);
        let bridge = self.bridge.as_mut().ok_or_else(|| without_bridge(step()))?;
        bridge.uplink(uplink, &self.proc).or_refuse(RefusalKind::Machine, step)
    }

    /// Says where it does not lead.
    pub(super) fn keep_from(&mut self, networks: &[(Ipv4Addr, u8)]) -> Result<(), Refusal> {
        let step = || "keeping pods from networks".to_owned();
        let bridge = self.bridge.as_mut().ok_or_else(|| without_bridge(step()))?;
        bridge.keep_from(networks).or_refuse(RefusalKind::Machine, step)
    }

    /// By cgroups where there are, else by adding up processes.
    pub(super) fn usage(&self) -> Vec<PodUsage> {
        let processes = match self.group {
            Some(_) => Vec::new(),
            None => self.proc.processes().unwrap_or_default(),
        };
        let page = sys::page_size();
        let containers = |name: &str| {
            let of_pod = self.containers.iter().filter(|(_, container)| container.pod == name);
            of_pod
                .filter_map(|(id, container)| match &container.group {
                    Some(group) => {
                        let usage = group.usage()?;
                        Some(ContainerUsage {
                            container: id.clone(),
                            cpu_usec: usage.cpu_usec,
                            memory: usage.memory,
                            pids: usage.pids,
                        })
                    }
                    None => Some(added_up(id, container.pid, &processes, page)),
                })
                .collect()
        };
        self.pods
            .keys()
            .map(|name| PodUsage { pod: name.clone(), containers: containers(name) })
            .collect()
    }
}

fn without_bridge(step: String) -> Refusal {
    refusal(RefusalKind::BadRequest, step, "this yard has no bridge")
}

/// The init itself counts only for the time of those it has waited for.
fn added_up(id: &str, init: sys::Pid, all: &[Process], page: u64) -> ContainerUsage {
    let below = tree::below(all, init);
    let waited = all.iter().filter(|process| process.pid == init);
    let ticks: u64 = below.iter().chain(waited).map(|process| process.ticks).sum();
    ContainerUsage {
        container: id.to_owned(),
        cpu_usec: ticks * USEC_PER_TICK,
        memory: below.iter().map(|process| process.pages * page).sum(),
        pids: below.iter().map(|process| process.threads).sum(),
    }
}
