//! Conversation with the kernel about links, addresses and routes (`NETLINK_ROUTE`).
//!
//! Must not know what they are for.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour_table::{
    NeighbourTableAttribute, NeighbourTableMessage, NeighbourTableParameter,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::{RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;
/// A metric of routes: the name of a congestion control.
const CONGESTION_CONTROL: u16 = 16;

/// The far end of a pair of links.
pub(super) struct Peer<'a> {
    pub(super) space: &'a OwnedFd,
    pub(super) name: &'a str,
    pub(super) index: u32,
    pub(super) hardware: Vec<u8>,
}

/// A conversation about the network namespace in which it was opened, wherever it is used.
pub(crate) struct Routes {
    socket: OwnedFd,
    asked: u32,
}

impl Routes {
    pub(super) fn open() -> io::Result<Self> {
        let family = rustix::net::AddressFamily::NETLINK;
        // Without a protocol it is the one about routes.
        let socket = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, asked: 0 })
    }

    /// Asks and waits for the kernel's word, which comes at once.
    fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.asked = self.asked.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.asked;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(&self.socket, &bytes, SendFlags::empty())?;

        let mut answer = vec![0; 8192];
        loop {
            let (length, _) = match recv(&self.socket, answer.as_mut_slice(), RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length])
                .map_err(io::Error::other)?;
            if answer.header.sequence_number != self.asked {
                continue;
            }
            if let NetlinkPayload::Error(error) = answer.payload {
                return match error.code {
                    None => Ok(()),
                    Some(code) => Err(io::Error::from_raw_os_error(code.get().abs())),
                };
            }
        }
    }

    /// Makes a bridge.
    pub(super) fn add_bridge(
        &mut self,
        name: &str,
        index: u32,
        hardware: Vec<u8>,
    ) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            // Its own, or it would change with every pod that comes and goes.
            LinkAttribute::Address(hardware),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
        ];
        self.ask(RouteNetlinkMessage::NewLink(link), NEW)
    }

    /// Makes two links that are one: `name` here, on the bridge and up, and `peer` in its own
    /// namespace, where it has yet to be switched on: it cannot be before it is paired.
    /// The peer gets the number it shall have only when this end is given one too.
    pub(super) fn add_pair(
        &mut self,
        name: &str,
        index: u32,
        bridge: u32,
        peer: &Peer<'_>,
    ) -> io::Result<()> {
        let mut far = LinkMessage::default();
        far.header.index = peer.index;
        far.attributes = vec![
            LinkAttribute::IfName(peer.name.to_owned()),
            LinkAttribute::Address(peer.hardware.clone()),
            LinkAttribute::NetNsFd(peer.space.as_raw_fd()),
        ];
        let mut near = LinkMessage::default();
        near.header.index = index;
        near.header.flags = LinkFlags::Up;
        near.header.change_mask = LinkFlags::Up;
        near.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Controller(bridge),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
            ]),
        ];
        self.ask(RouteNetlinkMessage::NewLink(near), NEW)
    }

    /// Takes a link away, and the one it is a pair with.
    pub(super) fn delete(&mut self, name: &str) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        self.ask(RouteNetlinkMessage::DelLink(link), 0)
    }

    /// Switches a link on.
    pub(super) fn up(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::NewLink(link), 0)
    }

    /// Gives a link an address.
    pub(super) fn add_address(
        &mut self,
        index: u32,
        address: Ipv4Addr,
        prefix: u8,
    ) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.index = index;
        let address = IpAddr::V4(address);
        message.attributes =
            vec![AddressAttribute::Address(address), AddressAttribute::Local(address)];
        self.ask(RouteNetlinkMessage::NewAddress(message), NEW)
    }

    /// Sends what has no other way to a gateway; TCP slows down at losses there, whatever it does
    /// elsewhere.
    pub(super) fn add_default_route(&mut self, index: u32, gateway: Ipv4Addr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Boot,
            scope: RouteScope::Universe,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        let slows_down = DefaultNla::new(CONGESTION_CONTROL, b"reno\0".to_vec());
        message.attributes = vec![
            RouteAttribute::Gateway(RouteAddress::Inet(gateway)),
            RouteAttribute::Oif(index),
            RouteAttribute::Metrics(vec![RouteMetric::Other(slows_down)]),
        ];
        self.ask(RouteNetlinkMessage::NewRoute(message), NEW)
    }

    /// Answers for others on a link as soon as it is asked; the kernel's custom is to wait for up to
    /// 0.8 s. A setting of the kernel's by its file too, which only the machine's own root has.
    pub(super) fn answer_for_others_at_once(&mut self, index: u32) -> io::Result<()> {
        let mut message = NeighbourTableMessage::default();
        message.header.family = AddressFamily::Inet;
        message.attributes = vec![
            NeighbourTableAttribute::Name("arp_cache".to_owned()),
            NeighbourTableAttribute::Parms(vec![
                NeighbourTableParameter::Ifindex(index),
                NeighbourTableParameter::ProxyDelay(0),
            ]),
        ];
        self.ask(RouteNetlinkMessage::SetNeighbourTable(message), 0)
    }

    /// Refuses to send anything to a network, and says so to whoever tries.
    pub(super) fn prohibit(&mut self, network: (Ipv4Addr, u8)) -> io::Result<()> {
        self.ask(RouteNetlinkMessage::NewRoute(prohibition(network)), NEW)
    }

    /// Takes such a refusal back.
    pub(super) fn permit(&mut self, network: (Ipv4Addr, u8)) -> io::Result<()> {
        self.ask(RouteNetlinkMessage::DelRoute(prohibition(network)), 0)
    }
}

fn prohibition((network, prefix): (Ipv4Addr, u8)) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Boot,
        scope: RouteScope::Universe,
        kind: RouteType::Prohibit,
        destination_prefix_length: prefix,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Destination(RouteAddress::Inet(network))];
    message
}
