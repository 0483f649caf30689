//! A client that forwards ports, played over a pipe, with programs on loopback behind it.

use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use crate::serve::fake::FakePods;
use crate::serve::forward::wire;

const SOON: Duration = Duration::from_secs(10);

struct Client {
    pipe: DuplexStream,
    headers: Writer,
    came: BytesMut,
}

impl Client {
    /// A client of a node where these ports are open.
    fn new() -> Self {
        let (pipe, ours) = tokio::io::duplex(1 << 20);
        let target = ForwardTarget { namespace: "ns".to_owned(), pod: "p".to_owned(), uid: None };
        tokio::spawn(run(wire::plain(ours), target, Arc::new(FakePods::default())));
        Self { pipe, headers: Writer::default(), came: BytesMut::new() }
    }

    async fn send(&mut self, frame: Frame) {
        self.pipe.write_all(&frames::written(&frame)).await.unwrap();
    }

    /// Opens the two streams of a connection, as kubectl does.
    async fn open(&mut self, errors: u32, port: u16, request: &str) {
        let port = port.to_string();
        for (stream, kind) in [(errors, "error"), (errors + 2, "data")] {
            let pairs = [("streamType", kind), ("port", &*port), ("requestID", request)];
            let headers = self.headers.headers(&pairs);
            self.send(Frame::Open { stream, headers }).await;
        }
    }

    /// All that is said on a stream until its last piece or its reset.
    async fn hear(&mut self, stream: u32) -> Vec<u8> {
        let mut heard = Vec::new();
        loop {
            while let Some(frame) = frames::next(&mut self.came).unwrap() {
                match frame {
                    Frame::Data { stream: at, piece, last } if at == stream => {
                        heard.extend_from_slice(&piece);
                        if last {
                            return heard;
                        }
                    }
                    Frame::Reset { stream: at } if at == stream => return heard,
                    _ => {}
                }
            }
            let read = self.pipe.read_buf(&mut self.came);
            assert_ne!(timeout(SOON, read).await.expect("an answer").unwrap(), 0);
        }
    }
}

/// A program that sends back what it heard when the other side has ended.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                stream.write_all(&heard).await.unwrap();
            });
        }
    });
    port
}

#[tokio::test]
async fn connections_are_carried_side_by_side() {
    let port = echo().await;
    let mut client = Client::new();
    client.open(1, port, "0").await;
    client.open(5, port, "1").await;
    let large = Bytes::from(vec![7; 300_000]);
    for (stream, piece) in [(3, large.clone()), (7, Bytes::from_static(b"small"))] {
        client.send(Frame::Data { stream, piece, last: false }).await;
    }
    client.send(Frame::Data { stream: 7, piece: Bytes::new(), last: true }).await;
    assert_eq!(client.hear(7).await, b"small");
    assert_eq!(client.hear(5).await, b"", "nothing went wrong");
    client.send(Frame::Data { stream: 3, piece: Bytes::new(), last: true }).await;
    assert_eq!(client.hear(3).await, large);
}

#[tokio::test]
async fn what_cannot_be_reached_is_said_and_the_client_goes_on() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = gone.local_addr().unwrap().port();
    drop(gone);
    let mut client = Client::new();
    client.open(1, closed, "0").await;
    let words = String::from_utf8(client.hear(1).await).unwrap();
    assert!(words.contains(&format!("error forwarding port {closed}")), "{words}");
    let port = echo().await;
    client.open(5, port, "1").await;
    client.send(Frame::Data { stream: 7, piece: Bytes::from_static(b"x"), last: true }).await;
    assert_eq!(client.hear(7).await, b"x");
}

#[tokio::test]
async fn a_stream_that_is_given_up_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = Client::new();
    client.open(1, listener.local_addr().unwrap().port(), "0").await;
    let (mut far, _) = timeout(SOON, listener.accept()).await.unwrap().unwrap();
    client.send(Frame::Reset { stream: 3 }).await;
    assert_eq!(client.hear(1).await, b"");
    let read = timeout(SOON, far.read_u8()).await.expect("an end");
    assert!(read.is_err(), "{read:?}");
}

#[tokio::test]
async fn pings_come_back_and_strange_streams_do_not_open() {
    let mut client = Client::new();
    client.send(Frame::Ping { number: 9 }).await;
    let headers = client.headers.headers(&[("streamType", "data"), ("port", "80")]);
    client.send(Frame::Open { stream: 1, headers }).await;
    assert_eq!(client.hear(1).await, b"", "it has no stream for errors");
    let headers = client.headers.headers(&[("streamType", "error"), ("port", "no")]);
    client.send(Frame::Open { stream: 3, headers }).await;
    assert_eq!(client.hear(3).await, b"");
}
