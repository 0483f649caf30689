//! The proxy over real sockets, asked as programs ask.

use futures::future::BoxFuture;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener as Listener,
    task::JoinHandle,
};

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// A task that ends with its handle.
struct Aborted(JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A pods' network where every address is this one.
struct OnlyOne(Option<SocketAddr>);

impl Inside for OnlyOne {
    fn connect(&self, _: SocketAddrV4) -> BoxFuture<'_, std::io::Result<TcpStream>> {
        Box::pin(async {
            match self.0 {
                Some(address) => TcpStream::connect(address).await,
                None => Err(std::io::ErrorKind::HostUnreachable.into()),
            }
        })
    }

    fn listen(&self, _: SocketAddrV4) -> BoxFuture<'_, std::io::Result<TcpListener>> {
        Box::pin(async { Err(std::io::ErrorKind::Unsupported.into()) })
    }
}

fn start(policy: Policy) -> (SocketAddr, Aborted) {
    start_with(policy, Names::new(), OnlyOne(None))
}

fn start_with(policy: Policy, names: Names, inside: OnlyOne) -> (SocketAddr, Aborted) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let inside = Arc::new(inside);
    let serving = async move { serve(listener, policy, names, inside).await.unwrap() };
    (address, Aborted(tokio::spawn(serving)))
}

#[tokio::test]
async fn what_is_inside_is_reached_inside() {
    let (target, _far) = far(|mut stream| async move {
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\npod").await.unwrap();
    })
    .await;
    let names = crate::net::names::tests::yard();
    names.put_pod(Ipv4Addr::LOCALHOST, "team");
    let (proxy, _proxy) = start_with(Policy::default(), names.clone(), OnlyOne(Some(target)));
    for host in ["group", "mnist-worker-0.default", "10.77.0.5:2222"] {
        let request =
            format!("GET http://{host}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = ask(proxy, &request).await;
        assert!(answer.ends_with("pod"), "{host}: {answer}");
    }
    let (proxy, _proxy) = start_with(Policy::default(), names, OnlyOne(None));
    let answer = ask(proxy, "CONNECT group:80 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("cannot connect to group:80: 10.77.0.6:80"), "{answer}");
}

fn allowing(address: SocketAddr) -> Policy {
    Policy { allowed: vec![address], patience: Duration::from_secs(5), ..Policy::default() }
}

/// Serves each connection by `handle`.
async fn far<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> (SocketAddr, Aborted)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    });
    (address, Aborted(serving))
}

/// Reads a head: up to the empty line.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match timeout(SOON, stream.read_u8()).await.unwrap() {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// Sends a head and reads everything that comes back.
async fn ask(proxy: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn connects_and_passes_on_each_sides_end() {
    let (target, _far) = far(|mut stream| async move {
        let mut heard = String::new();
        // Ends only if the client's end is passed on; the answer still has to get back.
        stream.read_to_string(&mut heard).await.unwrap();
        stream.write_all(format!("heard {heard}").as_bytes()).await.unwrap();
    })
    .await;
    let (proxy, _proxy) = start(allowing(target));
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    // What is said before the answer has come must not be lost.
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nearly ");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    stream.write_all(b"late").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, "heard early late");
}

#[tokio::test]
async fn a_target_that_ends_first_is_passed_on_too() {
    let (target, _far) = far(|mut stream| async move {
        stream.write_all(b"bye").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
    })
    .await;
    let (proxy, _proxy) = start(allowing(target));
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    head(&mut stream).await;
    let mut answer = String::new();
    timeout(SOON, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert_eq!(answer, "bye");
    stream.write_all(b"still heard").await.unwrap();
}

#[tokio::test]
async fn fetches_urls_without_what_concerns_the_proxy() {
    let (target, _far) = far(|mut stream| async move {
        let asked = head(&mut stream).await;
        let mut body = [0; 4];
        stream.read_exact(&mut body).await.unwrap();
        let answer = format!(
            "HTTP/1.1 201 Created\r\nKeep-Alive: x\r\nX-Kind: test\r\nContent-Length: {}\r\n\r\n{asked}{}",
            asked.len() + 4,
            String::from_utf8_lossy(&body)
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        tokio::time::sleep(SOON).await;
    })
    .await;
    let (proxy, _proxy) = start(allowing(target));
    let request = format!(
        "POST http://me:secret@{target}/a/b?c=d HTTP/1.1\r\nHost: wrong\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic x\r\nConnection: X-Private, close\r\nX-Private: y\r\nAccept: */*\r\n\
         Content-Length: 4\r\n\r\nbody"
    );
    let answer = ask(proxy, &request).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
    assert!(answer.contains("X-Kind: test") && !answer.contains("Keep-Alive"), "{answer}");
    let asked = answer.split_once("\r\n\r\n").unwrap().1;
    assert!(asked.starts_with("POST /a/b?c=d HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("Host: {target}\r\n")), "{asked}");
    assert!(asked.contains("Accept: */*") && asked.ends_with("\r\n\r\nbody"), "{asked}");
    for absent in ["proxy", "private", "secret", "wrong"] {
        assert!(!asked.to_lowercase().contains(absent), "{absent}: {asked}");
    }
}

#[tokio::test]
async fn one_connection_may_ask_several_hosts() {
    async fn named(name: &'static str) -> (SocketAddr, Aborted) {
        far(move |mut stream| async move {
            head(&mut stream).await;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{name}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await
    }
    let (one, _one) = named("one").await;
    let (two, _two) = named("two").await;
    let (proxy, _proxy) = start(Policy { allowed: vec![one, two], ..Policy::default() });
    let answer = ask(
        proxy,
        &format!(
            "GET http://{one}/ HTTP/1.1\r\nHost: {one}\r\n\r\n\
             GET http://{two}/ HTTP/1.1\r\nHost: {two}\r\nConnection: close\r\n\r\n"
        ),
    )
    .await;
    assert!(answer.contains("\r\n\r\none") && answer.ends_with("\r\n\r\ntwo"), "{answer}");
}

#[tokio::test]
async fn this_machine_is_not_reached() {
    let (target, _far) = far(|_| async { panic!("reached") }).await;
    let (proxy, _proxy) =
        start(Policy { cluster: vec!["10.77.0.0/16".parse().unwrap()], ..Policy::default() });
    let port = target.port();
    for (host, why) in [
        ("127.0.0.1", "own machine"),
        ("localhost", "own machine"),
        ("127.1", "own machine"),
        ("0.0.0.0", "own machine"),
        ("[::1]", "own machine"),
        ("[::ffff:127.0.0.1]", "own machine"),
        ("169.254.169.254", "link-local"),
        ("10.77.0.5", "NO_PROXY"),
    ] {
        for request in [
            format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n"),
            format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n"),
        ] {
            let answer = ask(proxy, &request).await;
            assert!(answer.starts_with("HTTP/1.1 403 "), "{request}: {answer}");
            assert!(answer.contains(why), "{request}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_reached_is_said() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (proxy, _proxy) = start(allowing(gone));
    let answer = ask(proxy, &format!("CONNECT {gone} HTTP/1.1\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains(&gone.to_string()) && answer.contains("refused"), "{answer}");
    for request in [
        "CONNECT no-such-name.invalid:443 HTTP/1.1\r\n\r\n",
        "GET http://no-such-name.invalid/ HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let answer = ask(proxy, request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(answer.contains("cannot resolve no-such-name.invalid"), "{answer}");
    }
}

#[tokio::test]
async fn a_target_that_speaks_something_else_is_said() {
    let (target, _far) = far(|mut stream| async move {
        head(&mut stream).await;
        stream.write_all(b"220 mail ready\r\n").await.unwrap();
    })
    .await;
    let (proxy, _proxy) = start(allowing(target));
    let answer = ask(proxy, &format!("GET http://{target}/ HTTP/1.1\r\nHost: x\r\n\r\n")).await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("did not answer properly"),
        "{answer}"
    );
}

#[tokio::test]
async fn bad_requests_are_told_what_to_do() {
    let (proxy, _proxy) = start(Policy::default());
    for (request, words) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP_PROXY"),
        ("GET https://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n", "use CONNECT"),
        ("CONNECT example.com HTTP/1.1\r\n\r\n", "a host and a port"),
        ("CONNECT example.com:0 HTTP/1.1\r\n\r\n", "a host and a port"),
        ("rubbish\r\n\r\n", ""),
        ("\u{0}\u{1}\u{2}\r\n\r\n", ""),
    ] {
        let answer = ask(proxy, request).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request:?}: {answer}");
        assert!(answer.contains(words), "{request:?}: {answer}");
    }
}

#[tokio::test]
async fn more_than_there_may_be_are_told_so() {
    let (target, _far) = far(|mut stream| async move {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    })
    .await;
    let (proxy, _proxy) = start(Policy { connections: 2, ..allowing(target) });
    let request = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 200 "));
        open.push(stream);
    }
    let answer = ask(proxy, &request).await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("2 connections"), "{answer}");
    // One that ends makes room.
    open.pop();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        if head(&mut stream).await.starts_with("HTTP/1.1 200 ") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no room");
}
