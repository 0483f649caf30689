//! TensorBoard, as a person on this machine reaches it: its address, what it has read, and the page
//! that a browser makes of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{PATIENCE, browser};
use crate::check::contains;
use crate::harness::note;
use crate::yard::Bed;

/// TensorBoard looks for new summaries only every so often.
const READING: Duration = Duration::from_mins(2);
const ANSWER: Duration = Duration::from_mins(1);

/// Where the board of a job is reachable, once it is.
pub(super) async fn address(bed: &Bed, namespace: &str, pod: &str) -> Result<String> {
    let path = "-o=jsonpath={.metadata.annotations.trainyard\\.dev/address}";
    let words = ["-n", namespace, "get", "pod", pod, path];
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let seen = bed.kubectl.run(&words).await?;
        if seen.success() && !seen.stdout.is_empty() {
            let local = seen.stdout.starts_with("http://127.0.0.1:");
            ensure!(local, "the address is {}", seen.stdout);
            return Ok(seen.stdout);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("{pod} has no address")
}

/// The board at this address has read these runs and these scalars, and a browser shows them.
pub(super) async fn shows(url: &str, runs: &[&str], tags: &[&str]) -> Result<()> {
    let page = get(url, "/").await?;
    contains("the page", &page, &["TensorBoard"])?;
    let started = Instant::now();
    loop {
        let text = get(url, "/data/plugin/scalars/tags").await?;
        let known: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
        let has = |run: &&str, tag: &&str| known[*run].get(*tag).is_some();
        if runs.iter().all(|run| tags.iter().any(|tag| has(run, tag)))
            && tags.iter().all(|tag| runs.iter().any(|run| has(run, tag)))
        {
            break;
        }
        ensure!(started.elapsed() < READING, "it has read {known} only");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let Some(dom) = browser::page(&format!("{url}/?darkMode=false#timeseries")).await? else {
        ensure!(std::env::var_os("CI").is_none(), "this machine must have: chromium");
        note("there is no browser here; the page is only asked for");
        return Ok(());
    };
    let missing: Vec<_> = runs.iter().chain(tags).filter(|part| !dom.contains(**part)).collect();
    ensure!(missing.is_empty(), "the browser does not show {missing:?}:\n{dom}");
    ensure!(dom.contains("<scalar-card"), "the browser shows no scalars:\n{dom}");
    Ok(())
}

/// Nothing listens at an address any more.
pub(super) fn is_closed(url: &str) -> bool {
    let address = url.trim_start_matches("http://");
    std::net::TcpStream::connect(address).is_err()
}

/// What is answered to a plain request.
async fn get(url: &str, path: &str) -> Result<String> {
    let host = url.trim_start_matches("http://");
    let asked = async {
        let mut stream = TcpStream::connect(host).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(ANSWER, asked).await.context("no answer")??;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    ensure!(head.split(' ').nth(1) == Some("200"), "{path} is answered with {head}");
    Ok(body.to_owned())
}
