//! Power is lost while several clients write over HTTPS, again and again on the same folder: nothing
//! that was acknowledged is lost, revisions grow, watches end and go on where they were.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::lone::{Lone, Wanted};
use crate::raw::Door;

/// How often power is lost, usually and where there is much time.
const ROUNDS: [u64; 2] = [60, 200];
/// Says that there is much time.
const LONG: &str = "TRAINYARD_LONG";
const WRITERS: usize = 4;
/// Objects of each writer.
const OBJECTS: u64 = 3;
const NAMESPACES: &str = "/api/v1/namespaces";
const MAPS: &str = "/api/v1/namespaces/power/configmaps";
const PATIENCE: Duration = Duration::from_secs(30);

/// What may be found of an object: what was last acknowledged, or what was under way; `None` is no
/// object.
type Known = Vec<Option<String>>;

/// What the clients know, whatever the server forgets.
#[derive(Debug, Default)]
struct Witness {
    objects: BTreeMap<String, Known>,
    /// The highest revision that anybody was told.
    revision: u64,
    acknowledged: u64,
}

type Shared = Arc<Mutex<Witness>>;

fn with<T>(shared: &Shared, action: impl FnOnce(&mut Witness) -> T) -> T {
    action(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

fn rounds() -> u64 {
    let is_long = std::env::var_os(LONG).is_some_and(|value| !value.is_empty() && value != "0");
    ROUNDS[usize::from(is_long)]
}

/// What the case is called.
pub(super) fn name() -> String {
    format!("attack/power/lost_{}_times", rounds())
}

/// Loses power so often, and looks after each time.
pub(super) async fn lost(program: &Path) -> Result<()> {
    let rounds = rounds();
    let folder = tempfile::Builder::new().prefix("trainyard-power-").tempdir()?;
    let shared = Shared::default();
    for round in 0..rounds {
        once(program, folder.path(), &shared, round)
            .await
            .with_context(|| format!("round {round}"))?;
    }
    let acknowledged = with(&shared, |witness| witness.acknowledged);
    ensure!(acknowledged > rounds * 2, "only {acknowledged} writes in {rounds} rounds");
    Ok(())
}

async fn once(program: &Path, folder: &Path, shared: &Shared, round: u64) -> Result<()> {
    let wanted = Wanted { folder: Some(folder.join("store")), ..Wanted::default() };
    let mut lone = Lone::start(program, &wanted).await?;
    lone.check()?;
    let door = lone.door().clone();
    if round == 0 {
        let namespace = json!({"metadata": {"name": "power"}}).to_string();
        let answer = door.ask(Method::POST, NAMESPACES, &namespace).await?;
        ensure!(answer.code == 201, "the namespace: {}", answer.code);
    }
    let before = with(shared, |witness| witness.revision);
    let revision = verify(&door, shared).await?;
    let watch = watch(&door, before.max(1), revision).await?;
    let writers: Vec<JoinHandle<()>> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(door.clone(), Arc::clone(shared), writer, round)))
        .collect();
    // Longer and shorter, so that it happens in the middle of everything.
    tokio::time::sleep(Duration::from_millis(30 + round * 37 % 90)).await;
    lone.kill().await?;
    for writer in writers {
        tokio::time::timeout(PATIENCE, writer).await.context("a writer hangs")??;
    }
    let seen = tokio::time::timeout(PATIENCE, watch).await.context("a watch does not end")??;
    let seen = seen?;
    with(shared, |witness| witness.revision = witness.revision.max(seen));
    Ok(())
}

/// What is there is what was acknowledged; tells the revision.
async fn verify(door: &Door, shared: &Shared) -> Result<u64> {
    let list = door.ask(Method::GET, MAPS, "").await?.value();
    let revision = number(&list["metadata"]["resourceVersion"]).context("a revision")?;
    let items = list["items"].as_array().context("a list")?;
    let found: BTreeMap<&str, &str> = items
        .iter()
        .filter_map(|item| Some((item["metadata"]["name"].as_str()?, item["data"]["n"].as_str()?)))
        .collect();
    with(shared, |witness| {
        ensure!(
            revision >= witness.revision,
            "revision {revision} after {} was told",
            witness.revision
        );
        for (name, known) in &mut witness.objects {
            let is = found.get(name.as_str()).map(|text| (*text).to_owned());
            ensure!(known.contains(&is), "{name} is {is:?}, not one of {known:?}");
            *known = vec![is];
        }
        witness.revision = revision;
        Ok(revision)
    })
}

fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// Watches from a revision of the last life, or from the present where that is forgotten. Gives the
/// last revision seen when the watch ends.
async fn watch(door: &Door, before: u64, now: u64) -> Result<JoinHandle<Result<u64>>> {
    for from in [before, now] {
        let mut talk = door.open().await?;
        let path = format!("{MAPS}?watch=1&resourceVersion={from}&allowWatchBookmarks=true");
        let answer = talk.begin(Method::GET, &path, "application/json", Bytes::new()).await?;
        ensure!(matches!(answer.status().as_u16(), 200 | 410), "{}", answer.status());
        if answer.status() != 200 {
            continue;
        }
        return Ok(tokio::spawn(async move {
            let seen = follow(answer.into_body(), from).await;
            drop(talk);
            seen
        }));
    }
    anyhow::bail!("the present revision {now} is told to be too old")
}

async fn follow(mut body: Incoming, from: u64) -> Result<u64> {
    let (mut text, mut last) = (Vec::new(), from);
    while let Some(Ok(frame)) = body.frame().await {
        text.extend(frame.into_data().unwrap_or_default());
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).context("an event")?;
            if event["type"] == "ERROR" {
                ensure!(event["object"]["code"] == 410, "{event}");
                return Ok(last);
            }
            let revision = number(&event["object"]["metadata"]["resourceVersion"]);
            let revision = revision.with_context(|| format!("no revision in {event}"))?;
            ensure!(revision > last, "an event of revision {revision} after {last}");
            last = revision;
        }
    }
    Ok(last)
}

/// Creates, changes and deletes objects of its own until the server is gone.
async fn write(door: Door, shared: Shared, writer: usize, round: u64) {
    let Ok(mut talk) = door.open().await else { return };
    for step in 0_u64.. {
        let name = format!("map-{writer}-{}", step % OBJECTS);
        let text = format!("{round}-{step}");
        let there = with(&shared, |witness| {
            witness.objects.get(&name).is_some_and(|known| known.iter().any(Option::is_some))
        });
        let (method, path, next) = match (there, step % 4) {
            (false, _) => (Method::POST, MAPS.to_owned(), Some(text)),
            (true, 3) => (Method::DELETE, format!("{MAPS}/{name}"), None),
            (true, _) => (Method::PUT, format!("{MAPS}/{name}"), Some(text)),
        };
        let body = match &next {
            Some(text) => json!({"metadata": {"name": name}, "data": {"n": text}}).to_string(),
            None => String::new(),
        };
        with(&shared, |witness| {
            let known = witness.objects.entry(name.clone()).or_insert_with(|| vec![None]);
            known.push(next.clone());
        });
        let Ok(answer) = talk.ask(method, &path, body.into()).await else { return };
        let revision = number(&answer.value()["metadata"]["resourceVersion"]).unwrap_or(0);
        with(&shared, |witness| {
            if answer.code < 300 {
                witness.objects.insert(name, vec![next]);
                witness.revision = witness.revision.max(revision);
                witness.acknowledged += 1;
            }
        });
    }
}
