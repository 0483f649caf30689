//! Exec with a real websocket client over real TLS; the program is the test's.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;

use super::fake::{FakeNode, FakePods, Start, never};
use super::{ExecAsk, ExecSession, Refused};

const SOON: Duration = Duration::from_secs(20);

type Socket = WebSocketStream<TlsStream<TcpStream>>;

fn node(
    start: impl Fn(ExecAsk) -> Result<ExecSession, Refused> + Send + Sync + 'static,
) -> FakeNode {
    let start: Start = Box::new(start);
    FakeNode::new(FakePods { start: Some(start).into(), ..FakePods::default() })
}

async fn open(node: &FakeNode, path: &str, protocol: &'static str) -> Socket {
    let mut request = format!("wss://node{path}").into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
    let stream = node.connect().await;
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], protocol);
    socket
}

const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";

/// The next message's channel and bytes; none when the node has closed.
async fn next(socket: &mut Socket) -> Option<(u8, Vec<u8>)> {
    loop {
        match timeout(SOON, socket.next()).await.unwrap()?.unwrap() {
            Message::Binary(bytes) => return Some((bytes[0], bytes[1..].to_vec())),
            Message::Close(frame) => {
                assert_eq!(frame.unwrap().code, CloseCode::Normal);
            }
            _ => {}
        }
    }
}

/// Everything until the node closes: both outputs and the status.
async fn rest(socket: &mut Socket) -> (Vec<u8>, Vec<u8>, serde_json::Value) {
    let (mut out, mut err, mut status) = (Vec::new(), Vec::new(), serde_json::Value::Null);
    while let Some((channel, bytes)) = next(socket).await {
        match channel {
            1 => out.extend(bytes),
            2 => err.extend(bytes),
            3 if !bytes.is_empty() => status = serde_json::from_slice(&bytes).unwrap(),
            _ => {}
        }
    }
    (out, err, status)
}

async fn say(socket: &mut Socket, bytes: &[u8]) {
    socket.send(Message::Binary(Bytes::copy_from_slice(bytes))).await.unwrap();
}

#[tokio::test]
async fn outputs_and_exit_code_arrive() {
    for (protocol, code) in [(V5, 7), (V4, 7), (V5, 0)] {
        let (asked, asks) = mpsc::channel();
        let node = node(move |ask| {
            asked.send(ask).unwrap();
            Ok(ExecSession {
                stdin: None,
                stdout: Some(Box::new(&b"out\n"[..])),
                stderr: Some(Box::new(&b"err\n"[..])),
                resize: None,
                exit: Box::pin(async move { Ok(code) }),
            })
        });
        let path = "/exec/ns/pod/main?command=sh&command=-c&command=x%20y&output=1&error=1";
        let mut socket = open(&node, path, protocol).await;
        assert_eq!(next(&mut socket).await, Some((1, Vec::new())), "the connection stands");
        let (out, err, status) = rest(&mut socket).await;
        assert_eq!((out, err), (b"out\n".to_vec(), b"err\n".to_vec()));
        if code == 0 {
            assert_eq!(status["status"], "Success");
        } else {
            assert_eq!(status["reason"], "NonZeroExitCode");
            assert_eq!(status["details"]["causes"][0]["message"], "7");
        }
        let ask = asks.recv().unwrap();
        assert_eq!(ask.command, ["sh", "-c", "x y"]);
        assert_eq!((ask.pod.as_str(), ask.uid), ("pod", None));
    }
}

#[tokio::test]
async fn a_program_that_was_not_started_says_why() {
    let node = node(|ask| {
        assert_eq!(ask.uid.as_deref(), Some("uid"));
        Err(Refused::Internal("exec: \"nope\": executable file not found in $PATH".to_owned()))
    });
    let mut socket = open(&node, "/exec/ns/pod/uid/main?command=nope&error=1", V5).await;
    assert_eq!(next(&mut socket).await, Some((2, Vec::new())));
    let (_, _, status) = rest(&mut socket).await;
    assert_eq!(status["status"], "Failure");
    let words = "Internal error occurred: error executing command in container: \
                 exec: \"nope\": executable file not found in $PATH";
    assert_eq!(status["message"], words);
}

/// A program like `cat`: ends when its input does, with the number of bytes it read as its code.
fn cat() -> ExecSession {
    let (stdin, mut input) = duplex(1024);
    let (mut output, stdout) = duplex(1024);
    let copy = tokio::spawn(async move {
        let count = tokio::io::copy(&mut input, &mut output).await.unwrap();
        i32::try_from(count % 100).unwrap()
    });
    ExecSession {
        stdin: Some(Box::new(stdin)),
        stdout: Some(Box::new(stdout)),
        stderr: None,
        resize: None,
        exit: Box::pin(async move { copy.await.map_err(|error| error.to_string()) }),
    }
}

#[tokio::test]
async fn input_is_passed_on_until_it_is_closed() {
    let node = node(|_| Ok(cat()));
    let path = "/exec/ns/pod/main?command=cat&input=1&output=1";
    let mut socket = open(&node, path, V5).await;
    assert_eq!(next(&mut socket).await, Some((1, Vec::new())));
    for word in [&b"\0hello "[..], b"\0", b"\0world"] {
        say(&mut socket, word).await;
    }
    // Unknown channels, nothing at all, and a strange close are no reason to end.
    for odd in [&b"\x09what"[..], b"", b"\xff", b"\xff\x07", b"\x04no size"] {
        say(&mut socket, odd).await;
    }
    let mut echoed = Vec::new();
    while echoed.len() < 11 {
        echoed.extend(next(&mut socket).await.unwrap().1);
    }
    assert_eq!(echoed, b"hello world");
    say(&mut socket, b"\xff\0").await;
    let (out, _, status) = rest(&mut socket).await;
    assert_eq!((out.len(), &status["details"]["causes"][0]["message"]), (0, &"11".into()));
}

#[tokio::test]
async fn sizes_reach_the_terminal() {
    let (resized, sizes) = mpsc::channel();
    let node = node(move |ask| {
        assert!(ask.tty && !ask.stderr);
        let resized = resized.clone();
        let resize = move |size| resized.send(size).unwrap();
        Ok(ExecSession { resize: Some(Box::new(resize)), ..cat() })
    });
    let path = "/exec/ns/pod/main?command=sh&input=1&output=1&tty=1&error=1";
    let mut socket = open(&node, path, V5).await;
    say(&mut socket, b"\x04{\"Width\":120,\"Height\":40}\n").await;
    say(&mut socket, b"\x04{\"Width\":-1,\"Height\":40}").await;
    say(&mut socket, b"\x04{\"Width\":80,\"Height\":24}").await;
    say(&mut socket, b"\xff\0").await;
    rest(&mut socket).await;
    let sizes: Vec<_> = sizes.try_iter().map(|size| (size.width, size.height)).collect();
    assert_eq!(sizes, [(120, 40), (80, 24)]);
}

#[tokio::test]
async fn big_streams_go_both_ways_and_slow_each_other_down() {
    let node = node(|_| Ok(cat()));
    let path = "/exec/ns/pod/main?command=cat&input=1&output=1";
    let socket = open(&node, path, V5).await;
    let (mut sink, mut stream) = socket.split();
    let sent: Vec<u8> = (0..8 << 20).map(|number: u32| number.to_le_bytes()[1]).collect();
    let copy = sent.clone();
    let sender = tokio::spawn(async move {
        for piece in copy.chunks(100_000) {
            let mut message = vec![0];
            message.extend_from_slice(piece);
            sink.send(Message::binary(message)).await.unwrap();
        }
        sink.send(Message::binary(vec![255, 0])).await.unwrap();
        sink
    });
    let mut got = Vec::new();
    while let Some(message) = timeout(SOON, stream.next()).await.unwrap() {
        match message.unwrap() {
            Message::Binary(bytes) if bytes[0] == 1 => got.extend_from_slice(&bytes[1..]),
            Message::Binary(bytes) => assert_eq!(bytes[0], 3),
            _ => {}
        }
    }
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    drop(sender.await.unwrap());
}

#[tokio::test]
async fn a_program_waits_for_a_client_that_does_not_read() {
    let (count, written) = tokio::sync::watch::channel(0usize);
    let node = node(move |_| {
        let (mut output, stdout) = duplex(4096);
        let count = count.clone();
        let exit = tokio::spawn(async move {
            for _ in 0..16 << 10 {
                output.write_all(&[b'x'; 4096]).await.unwrap();
                count.send_modify(|count| *count += 4096);
            }
            0
        });
        Ok(ExecSession {
            stdin: None,
            stdout: Some(Box::new(stdout)),
            stderr: None,
            resize: None,
            exit: Box::pin(async move { exit.await.map_err(|error| error.to_string()) }),
        })
    });
    let mut socket = open(&node, "/exec/ns/pod/main?command=yes&output=1", V5).await;
    // The program fills the sockets' buffers and then waits.
    let mut before = usize::MAX;
    while before != *written.borrow() {
        before = *written.borrow();
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert!(before < 32 << 20, "{before} bytes were taken from the program");
    let (out, _, status) = rest(&mut socket).await;
    assert_eq!((out.len(), &status["status"]), (64 << 20, &"Success".into()));
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_program() {
    for politely in [true, false] {
        let dropped = CancellationToken::new();
        let token = dropped.clone();
        let node = node(move |_| {
            let (stdin, input) = duplex(16);
            // Nobody ever reads its input.
            std::mem::forget(input);
            Ok(ExecSession {
                stdin: Some(Box::new(stdin)),
                stdout: None,
                stderr: None,
                resize: None,
                exit: never(token.clone()),
            })
        });
        let mut socket = open(&node, "/exec/ns/pod/main?command=cat&input=1", V5).await;
        say(&mut socket, b"\0short").await;
        assert_eq!(next(&mut socket).await, Some((3, Vec::new())));
        if politely {
            socket.close(None).await.unwrap();
        }
        drop(socket);
        timeout(SOON, dropped.cancelled()).await.unwrap();
    }
}

#[tokio::test]
async fn output_held_open_by_something_left_running_ends_the_session() {
    let node = node(|_| {
        let (mut output, stdout) = duplex(64);
        tokio::spawn(async move {
            output.write_all(b"done").await.unwrap();
            std::future::pending::<()>().await;
        });
        Ok(ExecSession {
            stdin: None,
            stdout: Some(Box::new(stdout)),
            stderr: None,
            resize: None,
            exit: Box::pin(async { Ok(0) }),
        })
    });
    let mut socket = open(&node, "/exec/ns/pod/main?command=sh&output=1", V5).await;
    let (out, _, status) = rest(&mut socket).await;
    assert_eq!((out, &status["status"]), (b"done".to_vec(), &"Success".into()));
}

#[tokio::test]
async fn messages_are_bounded() {
    let dropped = CancellationToken::new();
    let token = dropped.clone();
    let node = node(move |_| Ok(ExecSession { exit: never(token.clone()), ..cat() }));
    let mut socket = open(&node, "/exec/ns/pod/main?command=cat&input=1&output=1", V5).await;
    // The node may have closed before all is sent.
    let _closed = socket.send(Message::binary(vec![0; 5 << 20])).await;
    timeout(SOON, dropped.cancelled()).await.unwrap();
}

#[tokio::test]
async fn stopping_the_node_ends_programs() {
    let dropped = CancellationToken::new();
    let token = dropped.clone();
    let node = node(move |_| Ok(ExecSession { exit: never(token.clone()), ..cat() }));
    let mut socket = open(&node, "/exec/ns/pod/main?command=cat&input=1&output=1", V5).await;
    assert_eq!(next(&mut socket).await, Some((1, Vec::new())));
    node.stop.cancel();
    timeout(SOON, node.server).await.unwrap().unwrap().unwrap();
    assert!(dropped.is_cancelled());
}

#[tokio::test]
async fn other_protocols_are_refused_in_words() {
    let node = node(|_| Ok(cat()));
    let path = "/exec/ns/pod/main?command=ls&output=1";
    let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let answer = node.begin("POST", path, &spdy).await;
    assert_eq!(answer.status(), 400);
    let mut request = format!("wss://node{path}").into_client_request().unwrap();
    let protocol = "base64.channel.k8s.io".parse().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", protocol);
    let stream = node.connect().await;
    match tokio_tungstenite::client_async(request, stream).await {
        Err(Error::Http(answer)) => assert_eq!(answer.status(), 400),
        other => panic!("{other:?}"),
    }
    let mut stream = node.connect().await;
    let plain = format!("GET {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n");
    stream.write_all(plain.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.contains("v5.channel.k8s.io"), "{text}");
}
