//! When each pod of a namespace was first seen in each phase, by one watch.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use http::Request;
use kube::{Client, core::WatchEvent};
use serde::Deserialize;
use tokio::{sync::watch, task::JoinHandle};

/// No pod takes longer; an environment may have to be made first.
const PATIENCE: Duration = Duration::from_mins(10);

type Times = BTreeMap<String, BTreeMap<String, Instant>>;

/// What one watch has shown.
pub(super) struct Phases {
    times: watch::Receiver<Times>,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Deserialize)]
struct Seen {
    metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
struct Meta {
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
}

impl Phases {
    /// Begins to watch; what happens after this returns is seen.
    pub(super) async fn follow(client: Client, namespace: &str) -> Result<Self> {
        let (sender, times) = watch::channel(Times::new());
        let path = format!("/api/v1/namespaces/{namespace}/pods?watch=1&timeoutSeconds=3600");
        let mut events = Box::pin(open(&client, &path).await?);
        let task = tokio::spawn(async move {
            loop {
                while let Some(Ok(event)) = events.next().await {
                    let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else {
                        continue;
                    };
                    let now = Instant::now();
                    sender.send_modify(|times| {
                        let phases = times.entry(pod.metadata.name).or_default();
                        phases.entry(pod.status.phase).or_insert(now);
                    });
                }
                // The API server ends a watch now and then; the next one begins with all there is.
                match open(&client, &path).await {
                    Ok(next) => events = Box::pin(next),
                    Err(_) => return,
                }
            }
        });
        Ok(Self { times, task })
    }

    /// Waits until all these pods have been in a phase; when the last one was.
    pub(super) async fn until(&self, names: &[String], phase: &str) -> Result<Instant> {
        let mut times = self.times.clone();
        let waiting = times.wait_for(|times| {
            names.iter().all(|name| times.get(name).is_some_and(|seen| is_over(seen, phase)))
        });
        let seen = tokio::time::timeout(PATIENCE, waiting)
            .await
            .with_context(|| format!("waiting for {} pods to be {phase}", names.len()))?
            .context("the watch ended")?;
        let mut last = None;
        for name in names {
            match seen.get(name).and_then(|seen| seen.get(phase)) {
                Some(at) => last = last.max(Some(*at)),
                None => bail!("pod {name} ended without having been {phase}"),
            }
        }
        last.context("no pod was waited for")
    }
}

fn is_over(seen: &BTreeMap<String, Instant>, phase: &str) -> bool {
    [phase, "Succeeded", "Failed"].iter().any(|phase| seen.contains_key(*phase))
}

async fn open(
    client: &Client,
    path: &str,
) -> Result<impl futures::Stream<Item = kube::Result<WatchEvent<Seen>>> + use<>> {
    let request = Request::get(path).body(Vec::new())?;
    Ok(client.request_events::<Seen>(request).await?)
}

impl Drop for Phases {
    fn drop(&mut self) {
        self.task.abort();
    }
}
