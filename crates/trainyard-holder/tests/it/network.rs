//! The network: addresses and ports of pods and nodes, sockets handed out, nothing of the host's.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};

use trainyard_holder::protocol::{
    Answer, Ending, Isolation, Network, Place, RefusalKind, Request, SocketKind,
};

use crate::bed::{Bed, Who, as_each, set_up};

fn pod(name: &str) -> Place {
    Place::Pod(name.to_owned())
}

fn address(last: [u8; 2], port: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 77, last[0], last[1]), port)
}

fn listener(bed: &Bed, place: Place, address: SocketAddrV4) -> TcpListener {
    let request = Request::Listen { place, address, kind: SocketKind::Stream };
    let (answer, mut sockets) = bed.holder.ask(request, Vec::new()).unwrap();
    assert_eq!((answer, sockets.len()), (Answer::Socket, 1));
    let listener = TcpListener::from(sockets.pop().unwrap());
    listener.set_nonblocking(false).unwrap();
    listener
}

fn connected(bed: &Bed, place: Place, address: SocketAddrV4) -> TcpStream {
    let request = Request::Connect { place, address };
    let (_, mut sockets) = bed.holder.ask(request, Vec::new()).unwrap();
    let stream = TcpStream::from(sockets.pop().unwrap());
    stream.set_nonblocking(false).unwrap();
    stream
}

const ANYWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 2222);

#[test]
fn pods_share_no_ports_and_reach_each_other_by_address() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        bed.add("q", 2);
        let servers = [("p", "one"), ("q", "two")].map(|(name, says)| {
            let server = listener(&bed, pod(name), ANYWHERE);
            std::thread::spawn(move || {
                for _ in 0..3 {
                    let (mut stream, _) = server.accept().unwrap();
                    stream
                        .write_all(
                            format!("{says} to {}\n", stream.peer_addr().unwrap().ip()).as_bytes(),
                        )
                        .unwrap();
                }
            })
        });
        let heard = |place, to| {
            let mut text = String::new();
            connected(&bed, place, to).read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(heard(pod("q"), address([1, 1], 2222)), "one to 10.77.1.2\n");
        assert_eq!(heard(pod("p"), address([1, 2], 2222)), "two to 10.77.1.1\n");
        assert_eq!(heard(Place::Yard, address([1, 1], 2222)), "one to 10.77.0.1\n");
        assert_eq!(heard(Place::Node("b".into()), address([1, 2], 2222)), "two to 10.77.0.3\n");
        // From within.
        let script = "exec 3<>/dev/tcp/10.77.1.1/2222 && cat <&3";
        let mut spec = bed.container("q", "c", "");
        spec.argv = ["bash", "-c", script].map(str::to_owned).to_vec();
        let (text, ending) = bed.run(spec);
        assert_eq!((text.as_str(), ending), ("one to 10.77.1.2\n", Ending::Code(0)));
        assert_eq!(heard(pod("q"), address([1, 2], 2222)), "two to 10.77.1.2\n");
        for server in servers {
            server.join().unwrap();
        }
    });
}

#[test]
fn a_pod_of_the_nodes_network_has_its_nodes_address() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        let mut spec = bed.pod("p", 0);
        (spec.address, spec.node) = (None, "b".to_owned());
        bed.ask(Request::AddPod(Box::new(spec))).unwrap();
        bed.add("q", 2);
        let server = listener(&bed, pod("p"), address([0, 3], 2222));
        let client = connected(&bed, pod("q"), address([0, 3], 2222));
        server.accept().unwrap();
        drop(client);
        let (text, _) = bed.run(bed.container("p", "c", "cat /proc/net/fib_trie; hostname"));
        assert!(text.contains("10.77.0.3") && text.contains("host-p"), "{text}");
    });
}

#[test]
fn names_can_be_served_on_the_bridge_and_on_service_addresses() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let at = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 53);
        let request =
            Request::Listen { place: Place::Yard, address: at, kind: SocketKind::Datagram };
        let (_, mut sockets) = bed.holder.ask(request, Vec::new()).unwrap();
        let names = UdpSocket::from(sockets.pop().unwrap());
        names.set_nonblocking(false).unwrap();
        let mut spec = bed.container("p", "c", "");
        let script =
            "exec 3<>/dev/udp/10.77.0.1/53; echo who >&3; dd bs=10 count=1 <&3 2>/dev/null";
        spec.argv = ["bash", "-c", script].map(str::to_owned).to_vec();
        let output = bed.start(spec).unwrap();
        let mut question = [0; 10];
        let (length, from) = names.recv_from(&mut question).unwrap();
        assert_eq!(
            (&question[..length], from.ip().to_string().as_str()),
            (&b"who\n"[..], "10.77.1.1")
        );
        names.send_to(b"me\n", from).unwrap();
        assert_eq!(output.text(), "me\n");
        bed.ending("c");

        let service = SocketAddrV4::new(Ipv4Addr::new(10, 96, 0, 1), 443);
        let refused = bed.ask(Request::Listen {
            place: Place::Yard,
            address: service,
            kind: SocketKind::Stream,
        });
        assert!(refused.is_err());
        for _ in 0..2 {
            let answer = bed.ask(Request::AddAddress { address: *service.ip() });
            assert_eq!(answer, Ok(Answer::Done));
        }
        let server = listener(&bed, Place::Yard, service);
        let _client = connected(&bed, pod("p"), service);
        server.accept().unwrap();
    });
}

#[test]
fn a_new_pod_under_an_old_address_is_reached_at_once() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    bed.add("q", 2);
    for round in 0..5 {
        let name = format!("p{round}");
        bed.add(&name, 1);
        let server = listener(&bed, pod(&name), ANYWHERE);
        let client = connected(&bed, pod("q"), address([1, 1], 2222));
        client.set_write_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
        (&client).write_all(b"x").unwrap();
        server.accept().unwrap();
        bed.remove(&name);
    }
}

#[test]
fn the_hosts_network_is_not_there() {
    as_each(|who| {
        let Some(bed) = Bed::new(who) else { return };
        bed.add("p", 1);
        let host = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = host.local_addr().unwrap().port();
        let mut spec = bed.container("p", "c", "");
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
        spec.argv = ["bash", "-c", &script].map(str::to_owned).to_vec();
        let (text, _) = bed.run(spec);
        assert!(text.contains("Connection refused"), "{text}");
        let links = bed.run(bed.container("p", "d", "grep -c : /proc/net/dev")).0;
        assert_eq!(links.trim(), "2");
    });
}

#[test]
fn unknown_places_are_refused() {
    let Some(bed) = Bed::new(Who::Me) else { return };
    for place in [pod("nobody"), Place::Node("nowhere".to_owned())] {
        let refused = bed.ask(Request::Connect { place, address: ANYWHERE }).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::BadRequest);
    }
}

#[test]
fn without_a_bridge_pods_and_sockets_are_the_hosts() {
    as_each(|who| {
        let level = set_up(Isolation::Namespaces, Network::Loopback);
        let Some(bed) = Bed::with(who, level) else { return };
        bed.add("p", 1);
        let at = SocketAddrV4::new(Ipv4Addr::new(127, 77, 0, 5), 0);
        let server = listener(&bed, pod("p"), at);
        let port = server.local_addr().unwrap().port();
        TcpStream::connect((*at.ip(), port)).unwrap();
        let mut spec = bed.container("p", "c", "");
        let script = format!("exec 3<>/dev/tcp/127.77.0.5/{port} && echo reached");
        spec.argv = ["bash", "-c", &script].map(str::to_owned).to_vec();
        assert_eq!(bed.run(spec).0, "reached\n");
        bed.ask(Request::AddAddress { address: *at.ip() }).unwrap();
    });
}

#[test]
fn a_gateway_that_makes_no_network_is_refused() {
    let mut level = set_up(Isolation::Namespaces, Network::Bridge);
    level.prefix = 32;
    let refused = Bed::try_with(Who::Me, level).err().unwrap();
    assert!(refused.to_string().contains("making the bridge"), "{refused}");
    let level = set_up(Isolation::Processes, Network::Bridge);
    let refused = Bed::try_with(Who::Me, level).err().unwrap();
    assert_eq!(refused.kind, RefusalKind::BadRequest);
}
