//! Probes over loopback: sockets, HTTP, TLS, commands.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::probes::plan::Kind;

/// This machine's loopback, and a made-up way to run commands.
#[derive(Default)]
struct Loopback {
    exec: Option<Result<(i32, Vec<u8>), String>>,
    execs: AtomicU32,
}

impl Target for Loopback {
    fn address(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        TcpStream::connect((host, port)).await
    }

    async fn exec(&self, _command: &[String]) -> Result<(i32, Vec<u8>), String> {
        self.execs.fetch_add(1, Ordering::Relaxed);
        match &self.exec {
            Some(result) => result.clone(),
            None => std::future::pending().await,
        }
    }
}

fn plan(action: Action) -> Plan {
    Plan {
        kind: Kind::Readiness,
        action,
        initial_delay: Duration::ZERO,
        period: Duration::from_secs(10),
        timeout: Duration::from_secs(1),
        success_threshold: 1,
        failure_threshold: 3,
        grace: None,
    }
}

fn get(port: u16, path: &str) -> Plan {
    plan(Action::Http { host: None, port, tls: false, path: path.to_owned(), headers: Vec::new() })
}

/// A port nothing listens on.
async fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Answers each connection with what `answer` makes of the request.
async fn server(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut chunk = [0; 1024];
                    let count = stream.read(&mut chunk).await.unwrap();
                    if count == 0 {
                        return;
                    }
                    request.extend_from_slice(&chunk[..count]);
                }
                let text = answer(&String::from_utf8_lossy(&request));
                stream.write_all(text.as_bytes()).await.unwrap();
            });
        }
    });
    port
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn sockets_open_closed_and_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let open = listener.local_addr().unwrap().port();
    let tcp = |host: Option<&str>, port| plan(Action::Tcp { host: host.map(str::to_owned), port });
    let target = Loopback::default();
    assert_eq!(run(&tcp(None, open), &target).await, Outcome::Success);
    assert_eq!(run(&tcp(Some("127.0.0.1"), open), &target).await, Outcome::Success);
    let closed = closed_port().await;
    assert_eq!(
        run(&tcp(None, closed), &target).await,
        Outcome::Failure(format!("dial tcp 127.0.0.1:{closed}: connect: connection refused"))
    );
}

#[tokio::test]
async fn http_statuses() {
    let port = server(|request| {
        let code = request.split(['/', ' ']).nth(2).unwrap();
        reply(&format!("{code} X"), "", "body")
    })
    .await;
    let target = Loopback::default();
    for (path, wanted) in [
        ("/200", Outcome::Success),
        ("/204", Outcome::Success),
        ("/304", Outcome::Warning("Probe terminated redirects, Response body: ".to_owned())),
        ("/399", Outcome::Warning("Probe terminated redirects, Response body: body".to_owned())),
        ("/400", Outcome::Failure("HTTP probe failed with statuscode: 400".to_owned())),
        ("/503", Outcome::Failure("HTTP probe failed with statuscode: 503".to_owned())),
    ] {
        assert_eq!(run(&get(port, path), &target).await, wanted, "{path}");
    }
}

#[tokio::test]
async fn redirects_on_the_same_host_are_followed_and_others_not() {
    let port = server(|request| match request.split(' ').nth(1).unwrap() {
        "/here" => reply("302 Found", "Location: /good\r\n", ""),
        "/away" => reply("302 Found", "Location: http://elsewhere.example/\r\n", "bye"),
        "/loop" => reply("302 Found", "Location: /loop\r\n", ""),
        "/lost" => reply("302 Found", "", "where?"),
        "/bad" => reply("301 Moved", "Location: fail\r\n", ""),
        "/good" => reply("200 OK", "", ""),
        _ => reply("500 No", "", ""),
    })
    .await;
    let target = Loopback::default();
    let answer = |path| {
        let (plan, target) = (get(port, path), &target);
        async move { run(&plan, target).await }
    };
    assert_eq!(answer("/here").await, Outcome::Success);
    assert_eq!(
        answer("/away").await,
        Outcome::Warning("Probe terminated redirects, Response body: bye".to_owned())
    );
    assert_eq!(
        answer("/loop").await,
        Outcome::Failure(format!(
            "Get \"http://127.0.0.1:{port}/loop\": stopped after 10 redirects"
        ))
    );
    assert!(matches!(answer("/lost").await, Outcome::Warning(_)));
    assert_eq!(
        answer("/bad").await,
        Outcome::Failure("HTTP probe failed with statuscode: 500".to_owned())
    );
}

#[tokio::test]
async fn what_is_sent() {
    let port = server(|request| {
        let lower = request.to_ascii_lowercase();
        let good = request.starts_with("GET /a%20b?c=d HTTP/1.1\r\n")
            && lower.contains("\r\nhost: my.host\r\n")
            && lower.contains("\r\nuser-agent: kube-probe/1.33\r\n")
            && lower.contains("\r\naccept: */*\r\n")
            && lower.contains("\r\nconnection: close\r\n")
            && lower.contains("\r\nx-two: 1\r\nx-two: 2\r\n");
        reply(if good { "200 OK" } else { "500 No" }, "", "")
    })
    .await;
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let asked = plan(Action::Http {
        host: Some("127.0.0.1".to_owned()),
        port,
        tls: false,
        path: "a b?c=d".to_owned(),
        headers: vec![header("Host", "my.host"), header("X-Two", "1"), header("X-Two", "2")],
    });
    assert_eq!(run(&asked, &Loopback::default()).await, Outcome::Success);
}

#[tokio::test]
async fn http_that_fails_before_an_answer() {
    let target = Loopback::default();
    let closed = closed_port().await;
    assert_eq!(
        run(&get(closed, "/x"), &target).await,
        Outcome::Failure(format!(
            "Get \"http://127.0.0.1:{closed}/x\": dial tcp 127.0.0.1:{closed}: connect: connection \
             refused"
        ))
    );
    let rubbish = server(|_| "hello\r\n\r\n".to_owned()).await;
    assert!(matches!(run(&get(rubbish, "/"), &target).await, Outcome::Failure(_)));
    let hangs_up = server(|_| String::new()).await;
    assert!(matches!(run(&get(hangs_up, "/"), &target).await, Outcome::Failure(_)));
    // It accepts and says nothing.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hasty = Plan { timeout: Duration::from_millis(50), ..get(port, "/") };
    assert_eq!(
        run(&hasty, &target).await,
        Outcome::Failure(format!(
            "Get \"http://127.0.0.1:{port}/\": context deadline exceeded (Client.Timeout exceeded \
             while awaiting headers)"
        ))
    );
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut chunk = [0; 1024];
        let _ = stream.read(&mut chunk).await;
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    });
    assert_eq!(run(&get(port, "/"), &Loopback::default()).await, Outcome::Success);
}

#[tokio::test]
async fn tls_with_any_certificate() {
    let key = rcgen::generate_simple_self_signed(["nobody.example".to_owned()]).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(
        vec![key.cert.der().clone()],
        rustls::pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()).into(),
    )
    .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut chunk = [0; 1024];
            let _ = stream.read(&mut chunk).await;
            let _ = stream.write_all(reply("200 OK", "", "").as_bytes()).await;
            let _ = stream.flush().await;
        }
    });
    let target = Loopback::default();
    let secure = plan(Action::Http {
        host: None,
        port,
        tls: true,
        path: "/".to_owned(),
        headers: Vec::new(),
    });
    assert_eq!(run(&secure, &target).await, Outcome::Success);
    // Plain HTTP to a TLS port fails, and so does TLS to a plain one.
    assert!(matches!(run(&get(port, "/"), &target).await, Outcome::Failure(_)));
    let plain = server(|_| reply("200 OK", "", "")).await;
    let Action::Http { tls: true, .. } = &secure.action else { panic!("not secure") };
    let wrong = plan(Action::Http {
        host: None,
        port: plain,
        tls: true,
        path: "/".to_owned(),
        headers: Vec::new(),
    });
    let hasty = Plan { timeout: Duration::from_millis(200), ..wrong };
    assert!(matches!(run(&hasty, &target).await, Outcome::Failure(_)));
}

#[tokio::test(start_paused = true)]
async fn commands() {
    let command = plan(Action::Exec { command: vec!["cat".to_owned(), "/ok".to_owned()] });
    let ending = |result| Loopback { exec: Some(result), ..Loopback::default() };
    assert_eq!(run(&command, &ending(Ok((0, b"fine".to_vec())))).await, Outcome::Success);
    assert_eq!(
        run(&command, &ending(Ok((1, b"cat: /ok: No such file".to_vec())))).await,
        Outcome::Failure("cat: /ok: No such file".to_owned())
    );
    let long = run(&command, &ending(Ok((1, vec![b'x'; 1 << 20])))).await;
    assert!(matches!(long, Outcome::Failure(text) if text.len() == 10 << 10));
    let broken = ending(Err("no such container".to_owned()));
    assert_eq!(run(&command, &broken).await, Outcome::Errored("no such container".to_owned()));
    assert_eq!(broken.execs.load(Ordering::Relaxed), 3);
    assert_eq!(
        run(&command, &Loopback::default()).await,
        Outcome::Failure("command timed out: \"cat /ok\" timed out after 1s".to_owned())
    );
}

#[tokio::test]
async fn impossible_probes_are_errors_at_once() {
    let target = Loopback::default();
    let outcome = run(&plan(Action::Impossible("port db not found".to_owned())), &target).await;
    assert_eq!(outcome, Outcome::Errored("port db not found".to_owned()));
}
