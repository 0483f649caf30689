//! More clients than the server takes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::ground::{BODIES_MB, CONNECTIONS, Ground, IN_FLIGHT, LONG, MAPS, hear};
use crate::harness::{Case, cases};
use crate::raw::Door;

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["crowd":
        requests, watches, bytes_of_bodies, connections, connections_that_come_and_go,
        strangers_with_half_a_head, strangers_who_stay]
}

/// What came of requests whose bodies do not come as a whole.
struct Crowd {
    /// Answers to those that were sent away at once.
    refused: Vec<String>,
    /// How many were sent away while they still spoke: who does not listen then hears no answer.
    cut: usize,
    /// How many found a place.
    waiting: usize,
}

async fn begin(ground: &Ground, count: usize, sent: usize) -> Result<Crowd> {
    let (mut streams, mut cut) = (Vec::new(), 0);
    let head = ground.head("POST", MAPS);
    let asked = format!("{head}Content-Length: 3000000\r\n\r\n{}", " ".repeat(sent));
    for _ in 0..count {
        let mut stream = ground.door().connect().await?;
        match stream.write_all(asked.as_bytes()).await.and(stream.flush().await) {
            Ok(()) => streams.push(stream),
            Err(error) if is_cut(&error) => cut += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let (mut refused, mut waiting) = (Vec::new(), 0);
    for mut stream in streams {
        let reply = tokio::time::timeout(Duration::from_secs(10), hear(&mut stream)).await??;
        if reply.is_empty() {
            cut += 1;
        } else if reply.starts_with("HTTP/1.1 429") {
            refused.push(reply);
        } else {
            ensure!(reply.starts_with("HTTP/1.1 408"), "{reply:.200}");
            waiting += 1;
        }
    }
    Ok(Crowd { refused, cut, waiting })
}

fn is_cut(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset)
}

async fn requests(ground: &Ground) -> Result<()> {
    let Crowd { refused, cut, waiting } = begin(ground, IN_FLIGHT * 2, 1).await?;
    ensure!(cut == 0, "{cut} of those that had said all they had to say heard no answer");
    ensure!(waiting <= IN_FLIGHT, "{waiting} requests at once");
    ensure!(refused.len() >= IN_FLIGHT, "{} were refused", refused.len());
    for refusal in refused {
        let told = refusal.to_lowercase().contains("retry-after: 1");
        ensure!(told && refusal.contains("TooManyRequests"), "{refusal:.400}");
    }
    Ok(())
}

async fn bytes_of_bodies(ground: &Ground) -> Result<()> {
    let sent = 2_000_000;
    let fit = BODIES_MB * 1024 * 1024 / sent;
    let Crowd { refused, cut, waiting } = begin(ground, IN_FLIGHT, sent).await?;
    ensure!(waiting <= fit, "{waiting} bodies at once, {fit} fit");
    ensure!(cut + refused.len() >= IN_FLIGHT - fit, "{cut} + {} were refused", refused.len());
    Ok(())
}

async fn watches(ground: &Ground) -> Result<()> {
    let path = format!("{MAPS}?watch=1&timeoutSeconds=60");
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..LONG + 10 {
        let mut talk = ground.door().open().await?;
        let answer = talk.begin(Method::GET, &path, "application/json", Bytes::new()).await?;
        if answer.status() == 429 {
            ensure!(answer.headers().contains_key("retry-after"), "{:?}", answer.headers());
            refused += 1;
        } else {
            ensure!(answer.status() == 200, "{}", answer.status());
            open.push((talk, answer));
        }
    }
    ensure!(refused == 10, "{refused} of {} watches were refused", LONG + 10);
    // Other requests have places of their own.
    ground.door().must_answer().await?;
    drop(open);
    // The places of those that are gone are free again.
    for _ in 0..50 {
        let mut talk = ground.door().open().await?;
        let answer = talk.begin(Method::GET, &path, "application/json", Bytes::new()).await?;
        if answer.status() == 200 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("no watch finds a place although all are gone")
}

async fn connections(ground: &Ground) -> Result<()> {
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS * 2 {
        silent.push(TcpStream::connect(ground.door().address()).await?);
    }
    // They are cut off for their silence, and then there is room.
    let answered = tokio::time::timeout(Duration::from_mins(1), ground.door().must_answer());
    answered.await.context("silent connections keep all others out")??;
    Ok(())
}

/// Connections of those who show no credentials, as many as a server takes of all.
const STRANGERS: usize = 2_000;
/// How many of them are opened at the same time.
const AT_ONCE: usize = 50;
/// How long one who may ask waits for an answer beside them, at most, on a loaded machine.
const BESIDE: Duration = Duration::from_secs(8);

/// Opens connections that say this much; those that are refused or cut are none.
async fn strangers(door: &Door, words: &'static [u8]) -> Vec<TlsStream<TcpStream>> {
    let mut open = Vec::new();
    for _ in 0..STRANGERS / AT_ONCE {
        let one = || async {
            let connecting = async {
                let mut stream = door.connect().await.ok()?;
                stream.write_all(words).await.ok()?;
                stream.flush().await.ok()?;
                Some(stream)
            };
            // Only so many are let in at once; the others are tried again with the next.
            tokio::time::timeout(BESIDE, connecting).await.ok().flatten()
        };
        open.extend(
            futures::future::join_all((0..AT_ONCE).map(|_| one())).await.into_iter().flatten(),
        );
    }
    open
}

/// One who may ask is answered, on a connection of their own and on a new one, while others crowd in.
async fn is_answered_beside(ground: &Ground, words: &'static [u8]) -> Result<()> {
    let mut lone = ground.usual().await?;
    let door = lone.door().clone();
    let mut talk = door.open().await?;
    let mut asking = async || -> Result<()> {
        let path = "/api/v1/namespaces?limit=1";
        let kept = tokio::time::timeout(BESIDE, talk.ask(Method::GET, path, Bytes::new()));
        let kept = kept.await.context("nobody answers on a connection that was there before")??;
        ensure!(kept.code == 200, "{}", kept.code);
        let new = tokio::time::timeout(BESIDE, door.must_answer());
        new.await.context("nobody answers a newcomer who may ask")?
    };
    let crowd = tokio::spawn({
        let door = lone.door().clone();
        async move { strangers(&door, words).await }
    });
    while !crowd.is_finished() {
        asking().await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let open = crowd.await?;
    ensure!(open.len() > CONNECTIONS, "the crowd is small: {}", open.len());
    for _ in 0..20 {
        asking().await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    lone.check()
}

/// Seen to succeed before: they took all places for 30 seconds, and again, and nobody else was let in.
async fn strangers_with_half_a_head(ground: &Ground) -> Result<()> {
    is_answered_beside(ground, b"GET /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
        .await
}

/// The same with connections that are kept alive by questions which everybody may ask.
async fn strangers_who_stay(ground: &Ground) -> Result<()> {
    is_answered_beside(ground, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await
}

async fn connections_that_come_and_go(ground: &Ground) -> Result<()> {
    for _ in 0..1_000 {
        drop(TcpStream::connect(ground.door().address()).await?);
    }
    for _ in 0..100 {
        let mut stream = ground.door().connect().await?;
        let asked = format!("{}\r\n", ground.head("GET", &format!("{MAPS}?watch=1")));
        stream.write_all(asked.as_bytes()).await?;
        let mut start = [0; 12];
        stream.read_exact(&mut start).await?;
    }
    Ok(())
}
