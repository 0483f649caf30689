//! Sees from outside when pods are made and bound, by a watch of its own. Must not know who binds.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use http::Request;
use kube::{Client, core::WatchEvent};
use serde::Deserialize;
use tokio::{sync::watch, task::JoinSet, time::timeout};

use super::{SIZE, bindings::Bindings};
use crate::bench::NAMESPACE;

/// Who binds nothing for so long never will.
const STALL: Duration = Duration::from_mins(2);
/// Between two looks at those who bind.
const LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    metadata: Meta,
    spec: Spec,
}

#[derive(Debug, Clone, Deserialize)]
struct Meta {
    name: String,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Annotations {
    /// As [`super::gangs::GROUP_NAME`].
    #[serde(rename = "scheduling.k8s.io/group-name")]
    group: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

impl Pod {
    fn tell(&self, book: &mut Bindings) -> bool {
        let is_bound = self.spec.node_name.is_some();
        book.see(&self.metadata.name, self.metadata.annotations.group.as_deref(), is_bound)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Told {
    is_open: bool,
    bound: usize,
}

/// A watch on the pods of the load; it ends when this is dropped.
pub(super) struct Sight {
    told: watch::Receiver<Told>,
    book: Arc<Mutex<Bindings>>,
    _task: JoinSet<()>,
}

impl Sight {
    /// Returns when the watch is open, so that no pod is older than it looks.
    pub(super) async fn start(client: Client) -> Result<Self> {
        let book = Arc::new(Mutex::new(Bindings::new(SIZE)));
        let (tell, mut told) = watch::channel(Told::default());
        let mut task = JoinSet::new();
        task.spawn(follow(client, Arc::clone(&book), tell));
        timeout(STALL, told.wait_for(|told| told.is_open))
            .await
            .context("pods cannot be watched")??;
        Ok(Self { told, book, _task: task })
    }

    /// What has been seen so far.
    pub(super) fn book(&self) -> MutexGuard<'_, Bindings> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many pods are bound, as long as there is progress and `check` finds nothing
    /// wrong.
    pub(super) async fn until_bound(
        &mut self,
        pods: usize,
        mut check: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        let (mut before, mut since) = (0, Instant::now());
        loop {
            let all = self.told.wait_for(|told| told.bound >= pods);
            if let Ok(reached) = timeout(LOOK, all).await {
                reached.context("the watch stopped")?;
                return Ok(());
            }
            check()?;
            let bound = self.book().bound();
            if bound > before {
                (before, since) = (bound, Instant::now());
            } else if since.elapsed() > STALL {
                let partial = self.book().partial();
                bail!("{bound} of {pods} pods are bound, {partial} gangs in part, and no more come")
            }
        }
    }
}

/// Watches; a watch that ends is taken up again.
async fn follow(client: Client, book: Arc<Mutex<Bindings>>, tell: watch::Sender<Told>) {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?watch=1&timeoutSeconds=3600");
    loop {
        let Ok(request) = Request::get(&path).body(Vec::new()) else { return };
        if let Ok(events) = client.request_events::<Pod>(request).await {
            tell.send_modify(|told| told.is_open = true);
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
                let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                if pod.tell(&mut book) {
                    let bound = book.bound();
                    drop(book);
                    tell.send_modify(|told| told.bound = bound);
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How things stand by a list: nobody was bound and gone again.
pub(super) async fn listed(client: &Client) -> Result<Bindings> {
    #[derive(Deserialize)]
    struct Pods {
        items: Vec<Pod>,
    }
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let pods: Pods = client.request(Request::get(path).body(Vec::new())?).await?;
    let mut book = Bindings::new(SIZE);
    for pod in &pods.items {
        pod.tell(&mut book);
    }
    Ok(book)
}
