//! The name server over real sockets, asked as a resolver asks.

use std::net::Ipv4Addr;

use hickory_proto::{
    op::{Edns, Message, MessageType, OpCode, Query, ResponseCode},
    rr::{DNSClass, Name, RData, Record, RecordType},
};
use tokio::{net::TcpListener as Listener, task::JoinHandle, time::Instant};

use super::*;
use crate::net::names::tests::yard;

/// Long enough for a loaded machine, short enough for a test that should fail.
const SOON: Duration = Duration::from_secs(5);

struct Running {
    address: SocketAddr,
    _serving: Aborted,
}

/// A task that ends with its handle.
struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One port that is free for both kinds of sockets.
fn sockets() -> (StdSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(udp) = StdSocket::bind(tcp.local_addr().unwrap()) {
            return (udp, tcp);
        }
    }
    panic!("no free port");
}

fn start(upstreams: Upstreams) -> Running {
    let (udp, tcp) = sockets();
    start_on(udp, tcp, upstreams)
}

fn start_on(udp: StdSocket, tcp: TcpListener, upstreams: Upstreams) -> Running {
    let address = udp.local_addr().unwrap();
    let serving = tokio::spawn(async move { serve(udp, tcp, yard(), upstreams).await.unwrap() });
    Running { address, _serving: Aborted(serving) }
}

fn query(name: &str, kind: RecordType) -> Message {
    let mut query = Message::query();
    query.metadata.recursion_desired = true;
    query.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    query
}

async fn ask_bytes(server: SocketAddr, packet: &[u8]) -> Option<Message> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    socket.send(packet).await.unwrap();
    let mut reply = vec![0; 65535];
    let length = timeout(SOON, socket.recv(&mut reply)).await.ok()?.unwrap();
    Some(Message::from_vec(&reply[..length]).unwrap())
}

async fn ask(server: SocketAddr, query: &Message) -> Message {
    let reply = ask_bytes(server, &query.to_vec().unwrap()).await.unwrap();
    assert_eq!(reply.metadata.id, query.metadata.id);
    assert_eq!(reply.metadata.message_type, MessageType::Response);
    reply
}

async fn ask_by_stream(server: SocketAddr, queries: &[Message]) -> Vec<Message> {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let mut replies = Vec::new();
    for query in queries {
        let packet = query.to_vec().unwrap();
        stream.write_u16(packet.len().try_into().unwrap()).await.unwrap();
        stream.write_all(&packet).await.unwrap();
        let length = timeout(SOON, stream.read_u16()).await.unwrap().unwrap();
        let mut reply = vec![0; length.into()];
        stream.read_exact(&mut reply).await.unwrap();
        replies.push(Message::from_vec(&reply).unwrap());
    }
    replies
}

fn addresses(reply: &Message) -> Vec<Ipv4Addr> {
    let mut addresses: Vec<Ipv4Addr> = reply
        .answers
        .iter()
        .filter_map(
            |record| if let RData::A(address) = &record.data { Some(address.0) } else { None },
        )
        .collect();
    addresses.sort();
    addresses
}

/// A server outside that answers every name with one address, and says what it was asked.
fn outside(code: ResponseCode) -> (SocketAddr, Arc<std::sync::Mutex<Vec<Message>>>, Aborted) {
    let (udp, tcp) = sockets();
    udp.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    let (udp, tcp) = (UdpSocket::from_std(udp).unwrap(), Listener::from_std(tcp).unwrap());
    let address = udp.local_addr().unwrap();
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let answer = {
        let heard = Arc::clone(&heard);
        move |packet: &[u8]| {
            let query = Message::from_vec(packet).unwrap();
            let mut reply = query.clone().into_response();
            reply.metadata.response_code = code;
            let name = query.queries[0].name().clone();
            let address = RData::from(Ipv4Addr::new(192, 0, 2, 7));
            reply.add_answer(Record::from_rdata(name, 60, address));
            heard.lock().unwrap().push(query);
            reply.to_vec().unwrap()
        }
    };
    let serving = tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        loop {
            tokio::select! {
                received = udp.recv_from(&mut buffer) => {
                    let (length, peer) = received.unwrap();
                    let reply = answer(&buffer[..length]);
                    // A forged answer with another number comes first and must not be believed.
                    let mut forged = reply.clone();
                    forged[0] ^= 0xff;
                    udp.send_to(&forged, peer).await.unwrap();
                    udp.send_to(&reply, peer).await.unwrap();
                }
                accepted = tcp.accept() => {
                    let (mut stream, _) = accepted.unwrap();
                    let length = stream.read_u16().await.unwrap();
                    let mut packet = vec![0; length.into()];
                    stream.read_exact(&mut packet).await.unwrap();
                    let reply = answer(&packet);
                    stream.write_u16(reply.len().try_into().unwrap()).await.unwrap();
                    stream.write_all(&reply).await.unwrap();
                }
            }
        }
    });
    (address, heard, Aborted(serving))
}

fn nobody() -> Upstreams {
    Upstreams::fixed(Vec::new())
}

#[tokio::test]
async fn names_of_the_cluster_are_answered() {
    let server = start(nobody());
    let reply = ask(server.address, &query("Group.team.svc.cluster.local.", RecordType::A)).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::NoError);
    assert!(reply.metadata.authoritative && reply.metadata.recursion_available);
    assert!(reply.metadata.recursion_desired);
    let expected = [6, 8, 9].map(|last| Ipv4Addr::new(10, 77, 0, last));
    assert_eq!(addresses(&reply), expected);
    assert!(reply.answers.iter().all(|record| record.ttl == 5));
    // In the letters it was asked.
    assert!(reply.answers[0].name.eq_case(reply.queries[0].name()));

    let reply = ask(server.address, &query("node-a.", RecordType::A)).await;
    assert_eq!(addresses(&reply), [Ipv4Addr::new(10, 77, 0, 2)]);
}

#[tokio::test]
async fn a_known_name_without_such_records_is_empty() {
    let server = start(nobody());
    for kind in [RecordType::AAAA, RecordType::MX, RecordType::SRV, RecordType::TXT] {
        let reply =
            ask(server.address, &query("kubernetes.default.svc.cluster.local.", kind)).await;
        assert_eq!(reply.metadata.response_code, ResponseCode::NoError, "{kind}");
        assert!(reply.answers.is_empty(), "{kind}");
        assert_eq!(reply.authorities[0].record_type(), RecordType::SOA, "{kind}");
    }
}

#[tokio::test]
async fn an_unknown_name_of_the_cluster_does_not_exist() {
    let (address, heard, _outside) = outside(ResponseCode::NoError);
    let server = start(Upstreams::fixed(vec![address]));
    for kind in [RecordType::A, RecordType::AAAA] {
        let reply = ask(server.address, &query("gone.team.svc.cluster.local.", kind)).await;
        assert_eq!(reply.metadata.response_code, ResponseCode::NXDomain);
        assert_eq!(reply.authorities[0].record_type(), RecordType::SOA);
    }
    assert!(heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn other_names_are_passed_on() {
    let (address, heard, _outside) = outside(ResponseCode::NoError);
    let server = start(Upstreams::fixed(vec![address]));
    let mut asked = query("pypi.example.org.", RecordType::A);
    asked.set_edns(Edns::new());
    let reply = ask(server.address, &asked).await;
    assert_eq!(addresses(&reply), [Ipv4Addr::new(192, 0, 2, 7)]);
    assert_eq!(reply.answers[0].ttl, 60);
    let passed = heard.lock().unwrap().pop().unwrap();
    assert_eq!(passed.queries, asked.queries);
    assert!(passed.edns.is_some() && passed.metadata.recursion_desired);

    let replies = ask_by_stream(
        server.address,
        &[
            query("a.example.", RecordType::A),
            query("kubernetes.default.svc.cluster.local.", RecordType::A),
        ],
    )
    .await;
    assert_eq!(addresses(&replies[0]), [Ipv4Addr::new(192, 0, 2, 7)]);
    assert_eq!(addresses(&replies[1]), [Ipv4Addr::new(10, 96, 0, 1)]);
}

#[tokio::test]
async fn a_silent_or_missing_server_is_a_failure_in_time() {
    let silent = StdSocket::bind("127.0.0.1:0").unwrap();
    let gone = StdSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let patience = Duration::from_millis(100);
    let silent_address = silent.local_addr().unwrap();
    for servers in [vec![], vec![silent_address], vec![gone], vec![silent_address, gone]] {
        let server = start(Upstreams::fixed(servers.clone()).with_patience(patience));
        let begun = Instant::now();
        let reply = ask(server.address, &query("pypi.example.org.", RecordType::A)).await;
        assert_eq!(reply.metadata.response_code, ResponseCode::ServFail, "{servers:?}");
        assert_eq!(reply.queries.len(), 1);
        assert!(begun.elapsed() < SOON);
        let replies = ask_by_stream(server.address, &[query("a.example.", RecordType::A)]).await;
        assert_eq!(replies[0].metadata.response_code, ResponseCode::ServFail, "{servers:?}");
    }
}

#[tokio::test]
async fn the_next_server_is_asked_and_remembered() {
    let silent = StdSocket::bind("127.0.0.1:0").unwrap();
    let (refusing, refused, _refusing) = outside(ResponseCode::Refused);
    let (good, _, _good) = outside(ResponseCode::NoError);
    let servers = vec![silent.local_addr().unwrap(), refusing, good];
    let server = start(Upstreams::fixed(servers).with_patience(Duration::from_millis(200)));
    for _ in 0..3 {
        let reply = ask(server.address, &query("a.example.", RecordType::A)).await;
        assert_eq!(reply.metadata.response_code, ResponseCode::NoError);
    }
    assert_eq!(refused.lock().unwrap().len(), 1);
    // Where nobody has better, what was said is passed on.
    let server = start(Upstreams::fixed(vec![refusing]));
    let reply = ask(server.address, &query("a.example.", RecordType::A)).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::Refused);
}

#[tokio::test]
async fn a_server_that_is_its_own_upstream_does_not_go_round() {
    let (udp, tcp) = sockets();
    let own = udp.local_addr().unwrap();
    let server = start_on(udp, tcp, Upstreams::fixed(vec![own]).with_patience(SOON));
    let begun = Instant::now();
    let reply = ask(server.address, &query("pypi.example.org.", RecordType::A)).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn what_is_no_query_is_ignored_and_harms_nothing() {
    let server = start(nobody());
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.address).await.unwrap();
    let good = query("kubernetes.default.svc.cluster.local.", RecordType::A);
    let bytes = good.to_vec().unwrap();
    let mut looping = bytes[..12].to_vec();
    looping.extend([0xc0, 12, 0, 1, 0, 1]);
    let answer = good.clone().into_response().to_vec().unwrap();
    for packet in [&[][..], &[0; 3], &bytes[..20], &[0xff; 40], &[7; 5000], &looping, &answer] {
        socket.send(packet).await.unwrap();
    }
    socket.send(&bytes).await.unwrap();
    let mut reply = vec![0; 4096];
    // The first answer that comes is the one to the good query.
    let length = timeout(SOON, socket.recv(&mut reply)).await.unwrap().unwrap();
    assert_eq!(Message::from_vec(&reply[..length]).unwrap().metadata.id, good.metadata.id);

    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(&[0, 3, 1, 2, 3]).await.unwrap();
    let mut rest = Vec::new();
    let ended = timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)), "{rest:?}");
}

#[tokio::test]
async fn queries_that_cannot_be_served_are_refused() {
    let server = start(nobody());
    let code = async |query: &Message| ask(server.address, query).await.metadata.response_code;
    let mut update = query("cluster.local.", RecordType::SOA);
    update.metadata.op_code = OpCode::Notify;
    assert_eq!(code(&update).await, ResponseCode::NotImp);
    let mut two = query("a.cluster.local.", RecordType::A);
    two.add_query(Query::query(Name::root(), RecordType::A));
    assert_eq!(code(&two).await, ResponseCode::FormErr);
    assert_eq!(code(&Message::query()).await, ResponseCode::FormErr);
    let mut chaos = query("version.bind.", RecordType::TXT);
    chaos.queries[0].set_query_class(DNSClass::CH);
    assert_eq!(code(&chaos).await, ResponseCode::Refused);
    let mut newer = query("cluster.local.", RecordType::A);
    let mut edns = Edns::new();
    edns.set_version(1);
    newer.set_edns(edns);
    let reply = ask(server.address, &newer).await;
    assert_eq!(reply.edns.as_ref().map(Edns::version), Some(0));
    assert_eq!(reply.edns.as_ref().map(Edns::rcode_high), Some(1));
}

#[tokio::test]
async fn a_large_answer_comes_by_stream() {
    let names = yard();
    names.put_many("default", "many", 100);
    names.put_many("default", "few", 60);
    let (udp, tcp) = sockets();
    let address = udp.local_addr().unwrap();
    let serving = tokio::spawn(async move { serve(udp, tcp, names, nobody()).await.unwrap() });
    let _serving = Aborted(serving);
    let asked = query("many.default.svc.cluster.local.", RecordType::A);
    let reply = ask(address, &asked).await;
    assert!(reply.metadata.truncation);
    assert_eq!(reply.metadata.response_code, ResponseCode::NoError);
    let replies = ask_by_stream(address, std::slice::from_ref(&asked)).await;
    assert!(!replies[0].metadata.truncation);
    assert_eq!(addresses(&replies[0]).len(), 100);
    // A client that takes more gets more.
    let small = query("few.default.svc.cluster.local.", RecordType::A);
    let mut large = small.clone();
    let mut edns = Edns::new();
    edns.set_max_payload(4096);
    large.set_edns(edns);
    assert!(ask(address, &small).await.metadata.truncation);
    assert_eq!(addresses(&ask(address, &large).await).len(), 60);
}

#[tokio::test]
async fn answers_begin_at_different_addresses() {
    let server = start(nobody());
    let mut firsts = std::collections::BTreeSet::new();
    for number in 0..3 {
        let mut asked = query("group.team.svc.cluster.local.", RecordType::A);
        asked.metadata.id = number;
        let reply = ask(server.address, &asked).await;
        firsts.insert(reply.answers[0].data.to_string());
    }
    assert_eq!(firsts.len(), 3);
}

#[tokio::test]
async fn a_service_that_stands_for_a_name_outside_is_followed() {
    let (address, heard, _outside) = outside(ResponseCode::NoError);
    let server = start(Upstreams::fixed(vec![address]));
    let reply = ask(server.address, &query("data.team.svc.cluster.local.", RecordType::A)).await;
    assert_eq!(reply.answers[0].record_type(), RecordType::CNAME);
    assert_eq!(addresses(&reply), [Ipv4Addr::new(192, 0, 2, 7)]);
    assert_eq!(reply.answers[1].name.to_ascii(), "data.example.com.");
    assert_eq!(heard.lock().unwrap().len(), 1);
    let reply =
        ask(server.address, &query("data.team.svc.cluster.local.", RecordType::CNAME)).await;
    assert_eq!(reply.answers.len(), 1);
    assert_eq!(heard.lock().unwrap().len(), 1);
    drop(server);
    let server = start(nobody());
    let reply = ask(server.address, &query("data.team.svc.cluster.local.", RecordType::A)).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
}

#[tokio::test]
async fn addresses_of_the_cluster_have_names() {
    let (address, heard, _outside) = outside(ResponseCode::NoError);
    let server = start(Upstreams::fixed(vec![address]));
    let reply = ask(server.address, &query("8.0.77.10.in-addr.arpa.", RecordType::PTR)).await;
    assert_eq!(reply.answers[0].data.to_string(), "a.group.team.svc.cluster.local.");
    let reply = ask(server.address, &query("99.0.77.10.in-addr.arpa.", RecordType::PTR)).await;
    assert_eq!(reply.metadata.response_code, ResponseCode::NXDomain);
    assert!(heard.lock().unwrap().is_empty());
    ask(server.address, &query("1.2.0.192.in-addr.arpa.", RecordType::PTR)).await;
    ask(server.address, &query("0.77.10.in-addr.arpa.", RecordType::PTR)).await;
    assert_eq!(heard.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn more_queries_than_can_wait_are_refused_at_once() {
    let silent = StdSocket::bind("127.0.0.1:0").unwrap();
    let upstreams = Upstreams::fixed(vec![silent.local_addr().unwrap()]).with_patience(SOON * 4);
    let server = start(upstreams);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.address).await.unwrap();
    let mut reply = vec![0; 4096];
    for _ in 0..WAITING * 2 {
        socket.send(&query("a.example.", RecordType::A).to_vec().unwrap()).await.unwrap();
        if let Ok(length) = timeout(Duration::from_millis(5), socket.recv(&mut reply)).await {
            let reply = Message::from_vec(&reply[..length.unwrap()]).unwrap();
            assert_eq!(reply.metadata.response_code, ResponseCode::ServFail);
            // Names of the cluster are answered all the same.
            let known = query("kubernetes.default.svc.cluster.local.", RecordType::A);
            assert_eq!(addresses(&ask(server.address, &known).await).len(), 1);
            return;
        }
    }
    panic!("{} queries wait", WAITING * 2);
}
