//! Clients that send too slowly, or do not read what they asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::ground::{Ground, MAPS, SECONDS, codes, hear};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!["slow": heads, bodies, readers_of_lists, readers_of_tables, readers_of_watches]
}

/// Longer than the server's patience, with room for a slow machine.
const LATE: Duration = Duration::from_secs(SECONDS * 6);

/// Sends a byte at a time until the server has had enough.
async fn trickle(stream: &mut TlsStream<TcpStream>, start: &str, byte: &[u8]) -> Result<()> {
    stream.write_all(start.as_bytes()).await?;
    let begun = Instant::now();
    while begun.elapsed() < LATE {
        let sent = async {
            stream.write_all(byte).await?;
            stream.flush().await
        };
        if sent.await.is_err() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn heads(ground: &Ground) -> Result<()> {
    let mut stream = ground.door().connect().await?;
    let start = ground.head("GET", MAPS) + "X-Slow: ";
    trickle(&mut stream, &start, b"a").await?;
    let reply = hear(&mut stream).await?;
    let codes = codes(&reply);
    ensure!(codes.is_empty() || codes == [408], "{reply:.200}");
    Ok(())
}

async fn bodies(ground: &Ground) -> Result<()> {
    let mut stream = ground.door().connect().await?;
    let start = ground.head("POST", MAPS) + "Content-Length: 1000\r\n\r\n";
    trickle(&mut stream, &start, b" ").await?;
    let reply = hear(&mut stream).await?;
    ensure!(codes(&reply) == [408], "{reply:.200}");
    Ok(())
}

/// Enough that no buffer between the two takes it all.
async fn fill(ground: &Ground) -> Result<()> {
    for n in 0..30 {
        ground.make_map(&format!("large-{n}"), 900_000).await?;
    }
    Ok(())
}

/// Asks on several connections, reads nothing for longer than the server's patience, and finds that
/// it gave up in the middle.
async fn ignore(ground: &Ground, path: &str, accept: &str) -> Result<()> {
    fill(ground).await?;
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut stream = ground.door().connect().await?;
        let asked = format!("{}Accept: {accept}\r\n\r\n", ground.head("GET", path));
        stream.write_all(asked.as_bytes()).await?;
        stream.flush().await?;
        streams.push(stream);
    }
    tokio::time::sleep(LATE).await;
    let memory = ground.lone.memory()?;
    ensure!(memory < 400.0, "{memory:.0} MB for readers that do not read");
    for mut stream in streams {
        let (mut length, mut piece) = (0, vec![0; 64 * 1024]);
        let reading = async {
            while let Ok(read @ 1..) = stream.read(&mut piece).await {
                length += read;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), reading).await?;
        ensure!(length < 20_000_000, "{length} bytes came although nobody read");
    }
    Ok(())
}

async fn readers_of_lists(ground: &Ground) -> Result<()> {
    ignore(ground, MAPS, "application/json").await
}

async fn readers_of_tables(ground: &Ground) -> Result<()> {
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    ignore(ground, &format!("{MAPS}?includeObject=Object"), accept).await
}

async fn readers_of_watches(ground: &Ground) -> Result<()> {
    ignore(ground, &format!("{MAPS}?watch=1"), "application/json").await?;
    // And with events that come while nobody reads.
    let mut stream = ground.door().connect().await?;
    let asked = format!("{}\r\n", ground.head("GET", &format!("{MAPS}?watch=1")));
    stream.write_all(asked.as_bytes()).await?;
    for n in 0..30 {
        let patch = json!({"metadata": {"labels": {"n": format!("{n}")}}}).to_string();
        ground.must(Method::PATCH, &format!("{MAPS}/large-0"), &patch, &[200]).await?;
    }
    Ok(())
}
